"""Making and removing the queues of a ladder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.errors import ConflictError
from evenmatch.ledger.store import Store
from evenmatch.service.queueing import queue_rules, tickets
from evenmatch.service.queueing.levels import Levels
from evenmatch.service.queueing.lines import advance
from evenmatch.service.queueing.queue_rules import QueueRules, QueueSetup
from evenmatch.service.queueing.turns import Turn


class Removed(NamedTuple):
    """How many tickets are gone with a queue, and of which ones somebody may want to hear."""

    gone: int
    touched: list[int]


def set_queue(
    store: Store, levels: Levels, name: str, policy: Mapping[str, object], rules: QueueRules | None
) -> QueueSetup:
    """Make a queue, or replace it: see Desk.set_queue."""
    queue_rules.check_name(name)
    made = queue_rules.policy_of(policy, levels.view.settings.team_size)
    setup = QueueSetup(name, advance(store, levels.ladder, 1), made, rules or QueueRules())
    queue_rules.put(store, levels.ladder, setup)
    return setup


def remove_queue(store: Store, ladder: int, name: str, *, force: bool, now: int) -> Removed:
    """Remove a queue with the tickets in it: see Desk.remove_queue."""
    first = advance(store, ladder, 1)
    setups = queue_rules.read(store, ladder)
    queue_rules.find(setups, name)
    there = [row for row in tickets.present(store, ladder) if name in row.party.queues]
    if there and not force:
        count = f"{len(there)} ticket{'s wait' if len(there) > 1 else ' waits'}"
        raise ConflictError(f"{count} in queue {name!r}; accepted is an empty queue, or to force it")
    turn = Turn(store, ladder, setups, now, first, 1)
    said = f"queue {name!r} was removed"
    turn.read([row.ticket for row in there])
    for offer in list(turn.offers.values()):
        turn.call_off(offer, {row.ticket: said for row in there})
    for row in there:
        if row.offer is None:
            turn.drop(row.ticket, row.party.players, said)
    turn.keep()
    store.run("DELETE FROM queue WHERE ladder = ? AND queue = ?", ladder, name)
    return Removed(len(there), sorted(turn.touched))
