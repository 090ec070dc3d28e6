"""Prometheus metrics of a process: requests, durations, matches, tickets, and gauges that other modules add.

Several serving processes keep their counts in one folder, by the multiprocess mode of prometheus_client. Each of them
answers a scrape with the sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LABELS = ("method", "route", "status")
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the variable of prometheus_client that names the folder


class HttpMetrics:
    """The metrics of one process.

    registry    metrics of this process
    of_service  metrics that are the same in every process
    running     requests in progress
    waiting     requests that wait for a change: long polls and streams
    """

    def __init__(self) -> None:
        self.registry, self.of_service = CollectorRegistry(), CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("evenmatch_requests", "Answered requests.", LABELS, registry=self.registry)
        self.seconds = Histogram(
            "evenmatch_request_seconds",
            "Seconds until a response was sent, not counting long polls and streams.",
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
        self.offers = Counter(
            "evenmatch_offers",
            "Match offers by outcome, counted by the process that runs the matchmaker; `made` counts all of them.",
            ("ladder", "queue", "outcome"),
            registry=self.registry,
        )
        self.running = self._gauge("requests_running", "Requests in progress.")
        self.waiting = self._gauge("waiting_requests", "Requests that wait for a change: long polls and streams.")
        self.matchmaker = Gauge(
            "evenmatch_matchmaker_running",
            "1 if a process runs the matchmaker of the ladder.",
            ("ladder",),
            registry=self.registry,
            multiprocess_mode="livesum",
        )

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"evenmatch_{name}", meaning, registry=self.registry, multiprocess_mode="livesum")

    def answered(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request, and its duration unless `seconds` is None."""
        self.requests.labels(method, route, str(status)).inc()
        if seconds is not None:
            self.seconds.labels(route).observe(seconds)

    def watch(
        self,
        name: str,
        told: str,
        labels: tuple[str, ...],
        read: Callable[[], Iterable[Sample]],
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Add a gauge whose values are read at each scrape. registry: None for the one of this process."""
        (self.registry if registry is None else registry).register(_CallbackGauge(name, told, labels, read))

    def text(self) -> bytes:
        """All metrics in the Prometheus text format, summed over the serving processes if there are several."""
        folder, registry = os.environ.get(SHARED_FOLDER), self.registry
        if folder is not None:
            _forget_dead_processes(Path(folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + generate_latest(self.of_service)


def forget_process(pid: int) -> None:
    """Remove the gauges of a process that has ended. Its counters stay, since sums must not decrease."""
    if SHARED_FOLDER in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]


def _forget_dead_processes(folder: Path) -> None:
    for file in folder.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            with suppress(FileNotFoundError):  # another scrape was faster
                forget_process(pid)


Sample = tuple[tuple[str, ...], float]


class _CallbackGauge(Collector):
    def __init__(self, name: str, meaning: str, labels: tuple[str, ...], read: Callable[[], Iterable[Sample]]) -> None:
        self._name, self._meaning, self._labels, self._read = name, meaning, labels, read

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the gauge without values, so that registration does not read them."""
        return [GaugeMetricFamily(self._name, self._meaning, labels=self._labels)]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the gauge with its current values."""
        family = GaugeMetricFamily(self._name, self._meaning, labels=self._labels)
        for labels, value in self._read():
            family.add_metric(labels, value)
        return [family]
