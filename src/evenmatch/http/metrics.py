"""Prometheus metrics of one process: requests, their durations, matches and tickets; and where others are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LABELS = ("method", "route", "status")


class HttpMetrics:
    """The metrics of one process. running: number of requests in progress.

    registry  figures of this process;  of_service  figures that are the same in every process
    """

    def __init__(self) -> None:
        self.registry, self.of_service = CollectorRegistry(), CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("evenmatch_requests", "Answered requests.", LABELS, registry=self.registry)
        self.seconds = Histogram(
            "evenmatch_request_seconds",
            "Seconds until a response was sent; without long polls and streams.",
            ("route",),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.matches = Counter(
            "evenmatch_matches",
            "Reported matches by outcome.",
            ("ladder", "outcome"),
            registry=self.registry,
        )
        self.tickets = Counter(
            "evenmatch_tickets", "Queue requests by outcome.", ("ladder", "outcome"), registry=self.registry
        )
        self.refused_connections = Counter(
            "evenmatch_connections_refused",
            "Connections closed for a limit, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.running = 0
        meaning = "Requests in progress."
        Gauge("evenmatch_requests_running", meaning, registry=self.registry).set_function(lambda: self.running)
        self._counts: dict[tuple[str, str, int], Counter] = {}
        self._times: dict[str, Histogram] = {}

    def answered(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request, and its duration unless `seconds` is None. Call only in the event loop's thread."""
        count = self._counts.get((method, route, status))
        if count is None:
            count = self._counts[method, route, status] = self.requests.labels(method, route, str(status))
        count.inc()
        if seconds is not None:
            time = self._times.get(route)
            if time is None:
                time = self._times[route] = self.seconds.labels(route)
            time.observe(seconds)

    def count_refused_connection(self, reason: str) -> None:
        """Count a connection that was refused or closed for a limit."""
        self.refused_connections.labels(reason).inc()

    def watch(
        self,
        name: str,
        told: str,
        labels: tuple[str, ...],
        read: Callable[[], Iterable[Sample]],
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Add a gauge whose values are read at each scrape. registry: None for that of this process."""
        (self.registry if registry is None else registry).register(_CallbackGauge(name, told, labels, read))

    def text(self, processes: Collector | None = None) -> bytes:
        """All metrics in the Prometheus text format.

        processes  the figures of all serving processes at the port and of the service; None: this one is alone
        """
        if processes is not None:
            return generate_latest(processes)
        return generate_latest(self.registry) + generate_latest(self.of_service)


Sample = tuple[tuple[str, ...], float]


class _CallbackGauge(Collector):
    def __init__(self, name: str, meaning: str, labels: tuple[str, ...], read: Callable[[], Iterable[Sample]]) -> None:
        self._name, self._meaning, self._labels, self._read = name, meaning, labels, read

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The gauge without values, so that registration does not read them."""
        return [GaugeMetricFamily(self._name, self._meaning, labels=self._labels)]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The gauge with its current values."""
        family = GaugeMetricFamily(self._name, self._meaning, labels=self._labels)
        for labels, value in self._read():
            family.add_metric(labels, value)
        return [family]
