"""Rows of table `queue_experiment`: experiments with two policies in one queue; at most one of a queue runs."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store


class StoredExperiment(NamedTuple):
    """A stored experiment. number: of the change that started it;  body: JSON text;  microseconds, None: it runs."""

    number: int
    queue: str
    started_at: int
    stopped_at: int | None
    body: str


_COLUMNS = ("experiment", "queue", "started_at", "stopped_at", "body")


def insert(store: Store, ladder: int, experiment: StoredExperiment) -> None:
    """Insert an experiment."""
    store.insert(live_schema.queue_experiment, ("ladder", *_COLUMNS), [(ladder, *experiment)])


def stop(store: Store, ladder: int, queue: str, now: int) -> None:
    """End the running experiment of a queue, if there is one."""
    sql = "UPDATE queue_experiment SET stopped_at = ? WHERE ladder = ? AND queue = ? AND stopped_at IS NULL"
    store.run(sql, now, ladder, queue)


def read(store: Store, ladder: int, queue: str, since: int, until: int) -> list[StoredExperiment]:
    """The experiments of a queue that ran at some time from `since` until before `until`, the latest first."""
    sql = (
        f"SELECT {', '.join(_COLUMNS)} FROM queue_experiment WHERE ladder = ? AND queue = ? AND started_at < ? "
        "AND (stopped_at IS NULL OR stopped_at > ?) ORDER BY experiment DESC"
    )
    return [StoredExperiment(*row) for row in store.all(sql, ladder, queue, until, since)]
