"""Who let others down waits before they may queue again: longer each time, forgotten by and by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store
from evenmatch.service.queueing.queue_rules import QueueRules

SECOND = 1_000_000
FARTHEST = 50.0  # strikes: the wait has long reached the most


class Penalty(NamedTuple):
    """strikes  as of now, faded;  until  when the player may queue again, microseconds since the epoch."""

    strikes: float
    until: int


def strike(store: Store, ladder: int, players: Sequence[int], now: int, rules: QueueRules) -> dict[int, Penalty]:
    """Give each of these players one strike more, and what follows from it. The ladder's line is locked.

    s = what is left of the former ones + 1; the wait is penalty · 2^(s - 1), at most penalty_most.
    """
    sql = "SELECT player, strikes, struck_at FROM penalty WHERE ladder = ? AND player IN ({})"
    chosen = sorted(set(players))
    before: dict[int, tuple[float, int]] = {
        row[0]: (row[1], row[2]) for row in store.rows.among(store.connection, sql, (ladder,), chosen)
    }
    found: dict[int, Penalty] = {}
    for player in chosen:
        strikes = 1 + (faded(*before[player], now, rules) if player in before else 0.0)
        wait = min(rules.penalty * 2 ** (min(strikes, FARTHEST) - 1), rules.penalty_most)
        found[player] = Penalty(strikes, now + round(wait * SECOND))
    rows = [(ladder, player, one.strikes, now, one.until) for player, one in found.items()]
    columns = ("ladder", "player", "strikes", "struck_at", "until")
    store.rows.upsert(store.connection, live_schema.penalty, columns, rows)
    return found


def faded(strikes: float, struck_at: int, now: int, rules: QueueRules) -> float:
    """What is left of strikes."""
    left: float = strikes * 0.5 ** (max(now - struck_at, 0) / SECOND / rules.penalty_fades)
    return left


def waiting_out(store: Store, ladder: int, players: Sequence[int], now: int) -> dict[int, int]:
    """Until when those of these players must wait who must."""
    sql = "SELECT player, until FROM penalty WHERE ladder = ? AND until > ? AND player IN ({})"
    return dict(store.rows.among(store.connection, sql, (ladder, now), players))


def of(store: Store, ladder: int, player: int, now: int, rules: QueueRules) -> Penalty | None:
    """A player's strikes and what they wait out; None: they never had one, or were forgiven."""
    sql = "SELECT strikes, struck_at, until FROM penalty WHERE ladder = ? AND player = ?"
    found = store.all(sql, ladder, player)
    return Penalty(faded(found[0][0], found[0][1], now, rules), found[0][2]) if found else None


def forgive(store: Store, ladder: int, player: int) -> bool:
    """Forget a player's strikes; whether there were any."""
    sql = "DELETE FROM penalty WHERE ladder = ? AND player = ? RETURNING player"
    return bool(store.all(sql, ladder, player))
