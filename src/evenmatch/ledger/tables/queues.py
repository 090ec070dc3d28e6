"""Rows of table `queue`: the policy and the rules of each queue, as JSON."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables.queue_experiments import StoredExperiment


class StoredQueue(NamedTuple):
    """A stored queue. change: the number of the change that last set it;  policy, rules: JSON texts."""

    name: str
    change: int
    policy: str
    rules: str


def read(store: Store, ladder: int) -> list[tuple[StoredQueue, StoredExperiment | None]]:
    """The queues of a ladder, ordered by name, each with its running experiment."""
    sql = (
        "SELECT q.queue, q.change, q.policy, q.rules, e.experiment, e.queue, e.started_at, e.stopped_at, e.body "
        "FROM queue q LEFT JOIN queue_experiment e ON e.ladder = q.ladder AND e.queue = q.queue "
        "AND e.stopped_at IS NULL WHERE q.ladder = ? ORDER BY q.queue"
    )
    return [
        (StoredQueue(*row[:4]), None if row[4] is None else StoredExperiment(*row[4:]))
        for row in store.all(sql, ladder)
    ]


def read_changes(store: Store, ladder: int) -> dict[str, int]:
    """The change number of each queue's present configuration, by queue name."""
    return dict(store.all("SELECT queue, change FROM queue WHERE ladder = ?", ladder))


def read_rules(store: Store, ladder: int, queue: str) -> str | None:
    """The rules of a queue as JSON; None: there is no such queue."""
    rows = store.all("SELECT rules FROM queue WHERE ladder = ? AND queue = ?", ladder, queue)
    return rows[0][0] if rows else None


def read_all_rules(store: Store) -> list[tuple[str, str]]:
    """(ladder name, rules as JSON) of every queue of all ladders, ordered by ladder name."""
    sql = "SELECT l.name, q.rules FROM queue q JOIN ladder l ON l.ladder = q.ladder ORDER BY l.name"
    return [(ladder, rules) for ladder, rules in store.all(sql)]


def read_names(store: Store) -> list[tuple[str, str]]:
    """(ladder name, queue name) of every queue, ordered."""
    sql = "SELECT l.name, q.queue FROM queue q JOIN ladder l ON l.ladder = q.ladder ORDER BY l.name, q.queue"
    return [(ladder, queue) for ladder, queue in store.all(sql)]


def put(store: Store, ladder: int, queue: StoredQueue) -> None:
    """Insert a queue, or replace the one with its name."""
    columns = ("ladder", "queue", "change", "policy", "rules")
    store.upsert(live_schema.queue, columns, [(ladder, *queue)])


def delete(store: Store, ladder: int, queue: str) -> None:
    """Delete a queue."""
    store.run("DELETE FROM queue WHERE ladder = ? AND queue = ?", ladder, queue)


def ladders_with_queues(store: Store) -> list[int]:
    """The ids of the ladders that have a queue, in no particular order."""
    return [row[0] for row in store.all("SELECT DISTINCT ladder FROM queue")]
