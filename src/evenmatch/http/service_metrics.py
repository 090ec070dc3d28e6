"""Metrics of the whole service, read from the database at each scrape; every process reports the same values."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from math import isnan

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenmatch import __version__
from evenmatch.errors import StoreError
from evenmatch.http.logs import log
from evenmatch.http.metrics import HttpMetrics, Sample
from evenmatch.http.site import Site
from evenmatch.ladders.activity import ActivityReader, OfferCounts, ServiceActivity
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.tick import TickCounts

TICKS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def watch(site: Site) -> None:
    """Register these metrics."""
    site.metrics.of_service.register(Figures(ActivityReader(site.queue_service)))
    findings = "Findings of this process's last daily check of the database file; absent before the first check."
    site.metrics.watch("evenmatch_database_findings", findings, (), lambda: _findings(site))
    backend = site.service.database.url.get_backend_name()
    build = "The version of evenmatch and the kind of database; the value is always 1."
    site.metrics.watch(
        *("evenmatch_build", build, ("version", "database")),
        lambda: [((__version__, backend), 1.0)],
        site.metrics.of_service,
    )


def _findings(site: Site) -> list[Sample]:
    findings = site.daily_check.findings
    return [] if findings is None else [((), float(findings))]


COUNT_EVERY = 5.0  # seconds between two counts of a ladder's offers


class TimedMatchmaker(Matchmaker):
    """A matchmaker that measures the duration of its ticks and counts the outcomes of its offers."""

    def __init__(self, queue_service: QueueService, metrics: HttpMetrics) -> None:
        super().__init__(queue_service)
        self._running, self._offers = metrics.matchmaker, metrics.offers
        self._counts, self._counted_at = OfferCounts(queue_service.service.database), dict[str, float]()
        self._seconds = Histogram(
            "evenmatch_tick_seconds",
            "Duration in seconds of a tick of the ladder's matchmaker.",
            ("ladder",),
            buckets=TICKS,
            registry=metrics.registry,
        )

    def step(self, ladder: str, now: int | None = None) -> TickCounts | None:
        """Run one tick of a ladder's matchmaker. Return None if another process runs it."""
        begin = time.perf_counter()
        stepped = super().step(ladder, now)
        self._running.labels(ladder).set(stepped is not None)
        if stepped is None:
            self._counts.forget(ladder)
        else:
            end = time.perf_counter()
            self._seconds.labels(ladder).observe(end - begin)
            if end - self._counted_at.get(ladder, -COUNT_EVERY) >= COUNT_EVERY:
                self._counted_at[ladder] = end
                self.count_offers(ladder)
        return stepped

    def count_offers(self, ladder: str) -> None:
        """Add the offers of a ladder since the last count to the metrics. Raises StoreError."""
        for (queue, outcome), number in self._counts.since(ladder).items():
            self._offers.labels(ladder, queue, outcome).inc(number)


class Figures(Collector):
    """The metrics that an ActivityReader reads at each scrape."""

    def __init__(self, reader: ActivityReader) -> None:
        self._reader = reader

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without values, so that registration does not read them."""
        return _Families().all()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics. If the database does not answer, only evenmatch_database_up has a value."""
        families = _Families()
        try:
            families.add(self._reader.read())
        except StoreError as error:
            log.warning("figures", error=str(error))
            families.up.add_metric((), 0.0)
        else:
            families.up.add_metric((), 1.0)
        return families.all()


class _Families:
    """The metric families, without values until `add`."""

    def __init__(self) -> None:
        by_queue = ("ladder", "queue")
        self.up = GaugeMetricFamily("evenmatch_database_up", "1 if the database answers.", labels=())
        self.position = _gauge("ladder_position", "Events in the ladder's ledger.", ("ladder",))
        self.due = _gauge("ladder_rebuild_due", "1 if ratings are out of date and a rebuild is due.", ("ladder",))
        self.players = _gauge("players_seated", "Players who wait in a queue or play a match.", ("ladder", "state"))
        self.matches = _gauge("matches_running", "Running matches that have players.", ("ladder",))
        self.tickets = _gauge("queue_tickets", "Parties that wait for an offer.", by_queue)
        self.waiting = _gauge("queue_players", "Players of the waiting parties.", by_queue)
        self.oldest = _gauge(
            "queue_oldest_seconds", "Waiting time in seconds of the party that waits longest.", by_queue
        )
        self.slope = _gauge(
            "queue_calibration_slope",
            "Calibration slope of the odds of the latest matches; 1 is ideal.",
            by_queue,
        )
        self.brier = _gauge("queue_brier", "Brier score of the odds of a queue's latest matches.", by_queue)
        self.stomps = _gauge("queue_stomps", "Share of stomps among a queue's latest matches.", by_queue)
        self.quits = _gauge("queue_quits", "Share of matches with a quitter among a queue's latest ones.", by_queue)
        self.within_estimate = _gauge(
            "queue_waits_within_estimate",
            "Share of parties of a queue's latest matches that waited less than estimated; 0.5 is ideal.",
            by_queue,
        )
        self.within_upper = _gauge(
            "queue_waits_within_upper",
            "Share of parties of a queue's latest matches that waited less than the upper estimate; 0.9 is ideal.",
            by_queue,
        )
        self.experiment = _gauge(
            "queue_experiment",
            "Figures of the two policies of a queue's running experiment; arm a is the queue's own policy.",
            (*by_queue, "figure", "arm"),
        )
        self.apart = _gauge(
            "queue_experiment_difference",
            "Figure of policy b minus that of policy a: its value, and the bounds low and high of its 95 % interval.",
            (*by_queue, "figure", "bound"),
        )
        self.deliveries = _gauge(
            "webhook_deliveries", "Deliveries that wait to be sent or were given up (dead).", ("state",)
        )
        self.failing = _gauge("webhooks_failing", "Webhooks whose last attempt failed.", ())

    def add(self, read: ServiceActivity) -> None:
        """Add values."""
        for ladder, position in read.positions.items():
            self.position.add_metric((ladder,), position)
        for ladder, is_due in read.due.items():
            self.due.add_metric((ladder,), is_due)
        for ladder, waiting, playing, matches in read.seats:
            self.players.add_metric((ladder, "waiting"), waiting)
            self.players.add_metric((ladder, "playing"), playing)
            self.matches.add_metric((ladder,), matches)
        for ladder, queues in read.queues.items():
            for queue, count in queues.items():
                self.tickets.add_metric((ladder, queue), count.tickets)
                self.waiting.add_metric((ladder, queue), count.players)
                self.oldest.add_metric((ladder, queue), count.oldest)
        for ladder, queue, audited in read.audits:
            group = audited.overall
            for family, estimate in (
                (self.slope, group.slope),
                (self.brier, group.brier),
                (self.stomps, group.stomps),
                (self.quits, group.quits),
                (self.within_estimate, audited.waits.within_estimate),
                (self.within_upper, audited.waits.within_upper),
            ):
                if not isnan(estimate.value):
                    family.add_metric((ladder, queue), estimate.value)
        for ladder, queue, experiment in read.experiments:
            for compared in experiment.figures:
                labels = ladder, queue, compared.figure.name
                _add_known(self.experiment, labels, {"a": compared.first.value, "b": compared.second.value})
                _add_known(self.apart, labels, asdict(compared.difference))
        self.deliveries.add_metric(("waiting",), read.waiting)
        self.deliveries.add_metric(("dead",), read.dead)
        self.failing.add_metric((), read.failing)

    def all(self) -> Iterator[Metric]:
        """Yield every metric family."""
        yield from vars(self).values()


def _add_known(family: GaugeMetricFamily, labels: tuple[str, ...], values: Mapping[str, float]) -> None:
    """Add the known values, each with its own last label."""
    for label, value in values.items():
        if not isnan(value):
            family.add_metric((*labels, label), value)


def _gauge(name: str, meaning: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"evenmatch_{name}", meaning, labels=labels)
