"""Rows of table `lease`: the process that does some work alone, with a counter of its heartbeats."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger.store import Store

NOBODY = ""  # owner of a lease that was released or never held

_TAKE = (
    "INSERT INTO lease (name, owner, beat, held_at) VALUES (?, ?, 1, ?) ON CONFLICT (name) DO UPDATE SET "
    "owner = excluded.owner, beat = lease.beat + 1, held_at = excluded.held_at "
    "WHERE lease.owner = ? AND lease.beat = ? RETURNING beat"
)


class StoredLease(NamedTuple):
    """A lease. held_at: time of the last heartbeat, microseconds since the epoch; None: never held."""

    owner: str
    beat: int
    held_at: int | None


def read(store: Store, name: str) -> StoredLease:
    """The lease of this name; owned by NOBODY, with no heartbeat, if it was never taken."""
    rows = store.all("SELECT owner, beat, held_at FROM lease WHERE name = ?", name)
    return StoredLease(*rows[0]) if rows else StoredLease(NOBODY, 0, None)


def take(store: Store, name: str, owner: str, held_at: int, known: tuple[str, int]) -> int | None:
    """Set the owner and increment the heartbeat, if the lease still has the (owner, heartbeat) `known`.

    Returns the new heartbeat; None: the lease has changed.
    """
    rows = store.all(_TAKE, name, owner, held_at, *known)
    return rows[0][0] if rows else None


def write_test(store: Store, name: str, held_at: int) -> None:
    """Write a row that no process holds, to see whether the database takes it."""
    sql = (
        "INSERT INTO lease (name, owner, beat, held_at) VALUES (?, ?, 1, ?) "
        "ON CONFLICT (name) DO UPDATE SET beat = lease.beat + 1, held_at = excluded.held_at"
    )
    store.run(sql, name, NOBODY, held_at)


def read_all(store: Store, prefix: str) -> dict[str, StoredLease]:
    """The leases whose names begin with a prefix, by name, in its order."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    sql = "SELECT name, owner, beat, held_at FROM lease WHERE name >= ? AND name < ? ORDER BY name"
    rows = store.all(sql, prefix, after)
    return {row[0]: StoredLease(*row[1:]) for row in rows}


def delete(store: Store, name: str, beat: int) -> None:
    """Delete a lease, unless its heartbeat has gone on."""
    store.run("DELETE FROM lease WHERE name = ? AND beat = ?", name, beat)


def release(store: Store, name: str, owner: str) -> None:
    """Give the lease to NOBODY, if this owner has it."""
    store.run("UPDATE lease SET owner = ? WHERE name = ? AND owner = ?", NOBODY, name, owner)
