"""Rows of table `penalty`: the strikes of each player on a ladder. Writers hold the ladder's change lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store


class StoredPenalty(NamedTuple):
    """A player's strikes as of `struck_at`. until: when they may queue again; microseconds since the epoch."""

    strikes: float
    struck_at: int
    until: int


_COLUMNS = ("player", *StoredPenalty._fields)


def read(store: Store, ladder: int, players: Sequence[int]) -> dict[int, StoredPenalty]:
    """The penalties of those of these players who have any, by player id."""
    sql = f"SELECT {', '.join(_COLUMNS)} FROM penalty WHERE ladder = ? AND player IN ({{}})"
    return {row[0]: StoredPenalty(*row[1:]) for row in store.among(sql, (ladder,), players)}


def read_waits(store: Store, ladder: int, players: Sequence[int], now: int) -> dict[int, int]:
    """When each of these players may queue again, by id; only players who still have to wait."""
    sql = "SELECT player, until FROM penalty WHERE ladder = ? AND until > ? AND player IN ({})"
    return dict(store.among(sql, (ladder, now), players))


def put(store: Store, ladder: int, penalties: Mapping[int, StoredPenalty]) -> None:
    """Insert or replace the penalties of players, by id."""
    rows = [(ladder, player, *penalty) for player, penalty in penalties.items()]
    store.upsert(live_schema.penalty, ("ladder", *_COLUMNS), rows)


def delete(store: Store, ladder: int, player: int) -> bool:
    """Delete a player's penalty; return whether there was one."""
    sql = "DELETE FROM penalty WHERE ladder = ? AND player = ? RETURNING player"
    return bool(store.all(sql, ladder, player))
