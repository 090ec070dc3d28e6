"""What Prometheus reads: requests, how long they took, and what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LABELS = ("method", "route", "status")


class Metrics:
    """The figures of one process. running: how many requests are being answered."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("evenmatch_requests", "Requests that were answered.", LABELS, registry=self.registry)
        self.seconds = Histogram(
            "evenmatch_request_seconds",
            "Seconds until the answer began; long polls and streams are not among them.",
            ("route",),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.matches = Counter(
            "evenmatch_matches",
            "Reported matches, by what became of them.",
            ("ladder", "outcome"),
            registry=self.registry,
        )
        self.tickets = Counter(
            "evenmatch_tickets", "What became of wishes to the queues.", ("ladder", "outcome"), registry=self.registry
        )
        self.running = 0
        told = "Requests that are being answered."
        Gauge("evenmatch_requests_running", told, registry=self.registry).set_function(lambda: self.running)
        self._counts: dict[tuple[str, str, int], Counter] = {}
        self._times: dict[str, Histogram] = {}

    def answered(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request, and the time that it took where that means something. For the event loop's thread."""
        count = self._counts.get((method, route, status))
        if count is None:
            count = self._counts[method, route, status] = self.requests.labels(method, route, str(status))
        count.inc()
        if seconds is not None:
            time = self._times.get(route)
            if time is None:
                time = self._times[route] = self.seconds.labels(route)
            time.observe(seconds)

    def watch(self, name: str, told: str, labels: tuple[str, ...], read: Callable[[], Iterable[Sample]]) -> None:
        """A gauge whose values are read when somebody asks."""
        self.registry.register(_Read(name, told, labels, read))

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)


Sample = tuple[tuple[str, ...], float]


class _Read(Collector):
    def __init__(self, name: str, told: str, labels: tuple[str, ...], read: Callable[[], Iterable[Sample]]) -> None:
        self._name, self._told, self._labels, self._read = name, told, labels, read

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The gauge without its values, which are not worth reading for that."""
        return [GaugeMetricFamily(self._name, self._told, labels=self._labels)]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The gauge as it is now."""
        family = GaugeMetricFamily(self._name, self._told, labels=self._labels)
        for labels, value in self._read():
            family.add_metric(labels, value)
        return [family]
