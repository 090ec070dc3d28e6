"""Figures of the whole service, read from the database when somebody asks: every process tells the same ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from prometheus_client import Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenmatch import __version__
from evenmatch.errors import StoreError
from evenmatch.http.logs import log
from evenmatch.http.metrics import Metrics
from evenmatch.http.site import Site
from evenmatch.service.activity import Activity, Watch
from evenmatch.service.queueing.desk import Desk
from evenmatch.service.queueing.matchmaker import Matchmaker
from evenmatch.service.queueing.ticks import Stepped

TICKS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def watch(site: Site) -> None:
    """Add these figures to those of the process."""
    site.metrics.registry.register(Figures(Watch(site.desk)))
    told = "Requests that wait for news of a ticket: long polls and streams."
    site.metrics.watch("evenmatch_waiting_requests", told, (), lambda: [((), float(len(site.wakes)))])
    backend = site.service.database.url.get_backend_name()
    build = "The version of evenmatch, and the kind of its database; always 1."
    site.metrics.watch("evenmatch_build", build, ("version", "database"), lambda: [((__version__, backend), 1.0)])


class TimedMatchmaker(Matchmaker):
    """A matchmaker whose ticks are measured."""

    def __init__(self, desk: Desk, metrics: Metrics) -> None:
        super().__init__(desk)
        self._running = Gauge(
            "evenmatch_matchmaker_running",
            "1 where this process runs the matchmaker of the ladder.",
            ("ladder",),
            registry=metrics.registry,
        )
        self._seconds = Histogram(
            "evenmatch_tick_seconds",
            "Seconds that a tick of the ladder's matchmaker took.",
            ("ladder",),
            buckets=TICKS,
            registry=metrics.registry,
        )

    def step(self, ladder: str, now: int | None = None) -> Stepped | None:
        """One tick of a ladder."""
        begin = time.perf_counter()
        stepped = super().step(ladder, now)
        self._running.labels(ladder).set(stepped is not None)
        if stepped is not None:
            self._seconds.labels(ladder).observe(time.perf_counter() - begin)
        return stepped


class Figures(Collector):
    """What a watch reads, each time that somebody asks."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def describe(self) -> Iterable[Metric]:
        """The figures without values, which are not worth reading for that."""
        return _Families().all()

    def collect(self) -> Iterable[Metric]:
        """The figures as they are now; evenmatch_database_up alone where the database does not answer."""
        told = _Families()
        try:
            told.add(self._watch.read())
        except StoreError as error:
            log.warning("figures", error=str(error))
            told.up.add_metric((), 0.0)
        else:
            told.up.add_metric((), 1.0)
        return told.all()


class _Families:
    """The figures by name, for the moment without values."""

    def __init__(self) -> None:
        by_queue = ("ladder", "queue")
        self.up = GaugeMetricFamily("evenmatch_database_up", "1 where the database answers.", labels=())
        self.position = _gauge("ladder_position", "Events in the ladder's ledger.", ("ladder",))
        self.due = _gauge("ladder_rebuild_due", "1 where ratings are not what ledger and kernels say.", ("ladder",))
        self.players = _gauge("players_seated", "Players who wait in a queue or play.", ("ladder", "state"))
        self.matches = _gauge("matches_running", "Matches that are on and have players.", ("ladder",))
        self.tickets = _gauge("queue_tickets", "Parties that wait for an offer.", by_queue)
        self.waiting = _gauge("queue_players", "Players of those parties.", by_queue)
        self.oldest = _gauge("queue_oldest_seconds", "Seconds that the longest-waiting party has waited.", by_queue)
        self.deliveries = _gauge("webhook_deliveries", "Deliveries that wait to be sent, or are dead.", ("state",))
        self.offers = CounterMetricFamily(
            "evenmatch_offers", "Offers of matches by what became of them, made first.", labels=(*by_queue, "outcome")
        )

    def add(self, read: Activity) -> None:
        """Put in what was read."""
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
        self.deliveries.add_metric(("waiting",), read.waiting)
        self.deliveries.add_metric(("dead",), read.dead)
        for labels, number in read.offers.items():
            self.offers.add_metric(labels, number)

    def all(self) -> Iterator[Metric]:
        """Each of them."""
        yield from vars(self).values()


def _gauge(name: str, told: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"evenmatch_{name}", told, labels=labels)
