"""Rows of table `seen_signature`: digests of signatures that were accepted, until their timestamp is too old."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from evenmatch.ledger.store import Store

_TOGETHER = 500  # rows per statement


def insert_new(store: Store, rows: Sequence[tuple[int, bytes]]) -> set[bytes]:
    """Insert those of these (until, digest) that are new; return their digests.

    A digest always has the same `until`. Rows are inserted in order, so that two writers do not deadlock.
    """
    new: set[bytes] = set()
    ordered = sorted(set(rows))
    for first in range(0, len(ordered), _TOGETHER):
        batch = ordered[first : first + _TOGETHER]
        values = ", ".join(["(?, ?)"] * len(batch))
        sql = f"INSERT INTO seen_signature (until, digest) VALUES {values} ON CONFLICT DO NOTHING RETURNING digest"
        new |= {bytes(row[0]) for row in store.all(sql, *chain.from_iterable(batch))}
    return new


def delete_past(store: Store, now: int) -> None:
    """Delete those whose time is over. now: seconds since the epoch"""
    store.run("DELETE FROM seen_signature WHERE until < ?", now)
