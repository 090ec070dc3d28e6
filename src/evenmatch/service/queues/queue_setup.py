"""Create and remove queues of a ladder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.errors import ConflictError
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import queues, tickets
from evenmatch.ledger.tables.change_locks import advance
from evenmatch.service import stored_queues
from evenmatch.service.queue_rules import QueueRules
from evenmatch.service.queues.changes import QueueChanges
from evenmatch.service.queues.join_profiles import JoinProfiles
from evenmatch.service.stored_queues import QueueSetup


class RemovedQueue(NamedTuple):
    """The number of tickets removed with a queue, and the tickets whose followers must be notified, by ladder id."""

    gone: int
    touched: Mapping[int, set[int]]


def set_queue(
    store: Store, levels: JoinProfiles, name: str, policy: Mapping[str, object], rules: QueueRules | None
) -> QueueSetup:
    """Create or replace a queue: see QueueService.set_queue."""
    stored_queues.check_name(name)
    parsed = stored_queues.policy_of(policy, levels.view.settings.team_size)
    setup = QueueSetup(name, advance(store, levels.ladder, 1), parsed, rules or QueueRules())
    stored_queues.put(store, levels.ladder, setup)
    return setup


def remove_queue(
    store: Store, ladder: int, name: str, *, force: bool, now: int, counts: Mapping[int, int]
) -> RemovedQueue:
    """Remove a queue with its tickets: see QueueService.remove_queue; `counts`: see QueueChanges."""
    changes = QueueChanges(store, ladder, now, counts)
    setups = changes.setups
    stored_queues.find(setups, name)
    open_tickets = [row for row in tickets.read_open(store, ladder) if name in row.party.queues]
    if open_tickets and not force:
        count = f"{len(open_tickets)} ticket{'s wait' if len(open_tickets) > 1 else ' waits'}"
        raise ConflictError(f"{count} in queue {name!r}; remove it when it is empty, or force the removal")
    reason = f"queue {name!r} was removed"
    changes.read([row.ticket for row in open_tickets])
    for offer in list(changes.offers.values()):
        changes.call_off(offer, {row.ticket: reason for row in open_tickets})
    for row in open_tickets:
        if row.offer is None:
            changes.drop(row.ticket, row.party.players, reason)
    changes.keep()
    queues.delete(store, ladder, name)
    return RemovedQueue(len(open_tickets), changes.touched)
