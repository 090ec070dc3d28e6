"""Penalties: a player who let others down must wait before queueing again; strikes add up and fade with time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.ledger import player_rows
from evenmatch.ledger.store import Store
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.queue_sql import StoredPenalty
from evenmatch.queues.stored_queues import QueueRules

FARTHEST = 50.0  # strikes; the wait reaches penalty_most long before


class Penalty(NamedTuple):
    """A player's strikes, faded as of now. until: when they may queue again, microseconds since the epoch."""

    strikes: float
    until: int


def strike(store: Store, ladder: int, players: Sequence[int], now: int, rules: QueueRules) -> dict[int, StoredPenalty]:
    """Give each of these players one more strike; return their penalties. Requires the ladder's change lock.

    s = faded former strikes + 1; the wait is penalty · 2^(s - 1), at most penalty_most.
    """
    chosen = sorted(set(players))
    before = queue_sql.read_penalties(store, ladder, chosen)
    new: dict[int, StoredPenalty] = {}
    for player in chosen:
        former = before.get(player)
        strikes = 1 + (0.0 if former is None else faded(former.strikes, former.struck_at, now, rules))
        wait = min(rules.penalty * 2 ** (min(strikes, FARTHEST) - 1), rules.penalty_most)
        new[player] = StoredPenalty(strikes, now, now + round(wait * SECOND))
    queue_sql.put_penalties(store, ladder, new)
    return new


def faded(strikes: float, struck_at: int, now: int, rules: QueueRules) -> float:
    """Strikes after fading: halved every `penalty_fades` seconds since `struck_at`."""
    left: float = strikes * 0.5 ** (max(now - struck_at, 0) / SECOND / rules.penalty_fades)
    return left


def penalty_of(store: Store, ladder: int, name: str, now: int) -> Penalty | None:
    """A player's penalty; None: never struck, or forgiven, or an unknown name.

    Strikes are faded by the queue of the ladder in which they fade slowest.
    """
    player = player_rows.ids_of(store, [name]).get(name)
    stored = None if player is None else queue_sql.read_penalties(store, ladder, [player]).get(player)
    if stored is None:
        return None
    all_rules = [setup.rules for setup in stored_queues.read(store, ladder).values()] or [QueueRules()]
    slowest = max(all_rules, key=lambda rules: rules.penalty_fades)
    return Penalty(faded(stored.strikes, stored.struck_at, now, slowest), stored.until)
