"""Penalties: a player who let others down must wait before queueing again; strikes add up and fade with time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.service.queues.queue_rules import QueueRules

FARTHEST = 50.0  # strikes; the wait reaches penalty_most long before


class Penalty(NamedTuple):
    """A player's strikes, faded as of now. until: when they may queue again, microseconds since the epoch."""

    strikes: float
    until: int


def strike(store: Store, ladder: int, players: Sequence[int], now: int, rules: QueueRules) -> dict[int, Penalty]:
    """Give each of these players one more strike; return their penalties. Requires the ladder's change lock.

    s = faded former strikes + 1; the wait is penalty · 2^(s - 1), at most penalty_most.
    """
    sql = "SELECT player, strikes, struck_at FROM penalty WHERE ladder = ? AND player IN ({})"
    chosen = sorted(set(players))
    before: dict[int, tuple[float, int]] = {
        row[0]: (row[1], row[2]) for row in store.rows.among(store.connection, sql, (ladder,), chosen)
    }
    new: dict[int, Penalty] = {}
    for player in chosen:
        strikes = 1 + (faded(*before[player], now, rules) if player in before else 0.0)
        wait = min(rules.penalty * 2 ** (min(strikes, FARTHEST) - 1), rules.penalty_most)
        new[player] = Penalty(strikes, now + round(wait * SECOND))
    rows = [(ladder, player, penalty.strikes, now, penalty.until) for player, penalty in new.items()]
    columns = ("ladder", "player", "strikes", "struck_at", "until")
    store.rows.upsert(store.connection, live_schema.penalty, columns, rows)
    return new


def faded(strikes: float, struck_at: int, now: int, rules: QueueRules) -> float:
    """Strikes after fading: halved every `penalty_fades` seconds since `struck_at`."""
    left: float = strikes * 0.5 ** (max(now - struck_at, 0) / SECOND / rules.penalty_fades)
    return left


def waiting_out(store: Store, ladder: int, players: Sequence[int], now: int) -> dict[int, int]:
    """When each of these players may queue again, by id; only players who still have to wait."""
    sql = "SELECT player, until FROM penalty WHERE ladder = ? AND until > ? AND player IN ({})"
    return dict(store.rows.among(store.connection, sql, (ladder, now), players))


def of(store: Store, ladder: int, player: int, now: int, rules: QueueRules) -> Penalty | None:
    """A player's penalty; None: never struck, or forgiven."""
    sql = "SELECT strikes, struck_at, until FROM penalty WHERE ladder = ? AND player = ?"
    rows = store.all(sql, ladder, player)
    return Penalty(faded(rows[0][0], rows[0][1], now, rules), rows[0][2]) if rows else None


def forgive(store: Store, ladder: int, player: int) -> bool:
    """Delete a player's strikes; return whether there were any."""
    sql = "DELETE FROM penalty WHERE ladder = ? AND player = ? RETURNING player"
    return bool(store.all(sql, ladder, player))
