"""Create and remove queues of a ladder; start and stop experiments with two policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.errors import ConflictError
from evenmatch.experiment import ExperimentDesign
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.ledger.store import Store
from evenmatch.policy import Policy
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.changes import QueueChanges
from evenmatch.queues.parties import JoinProfiles
from evenmatch.queues.stored_queues import QueueExperiment, QueueRules, QueueSetup, second_policy
from evenmatch.times import iso_time


class RemovedQueue(NamedTuple):
    """The number of tickets removed with a queue, and the tickets whose followers must be notified, by ladder id."""

    gone: int
    touched: Mapping[int, set[int]]


def set_queue(
    store: Store, levels: JoinProfiles, name: str, policy: Mapping[str, object], rules: QueueRules | None
) -> QueueSetup:
    """Create or replace a queue: see QueueService.set_queue."""
    stored_queues.check_name(name)
    change = reserve_changes(store, levels.ladder, 1)
    before = stored_queues.read(store, levels.ladder).get(name)
    given, chosen = stored_queues.with_auto(policy, QueueRules() if rules is None else rules, before)
    parsed = stored_queues.policy_of(given, levels.view.settings.team_size)
    experiment = None if before is None else before.experiment
    if experiment is not None and parsed != experiment.first:
        raise ConflictError(
            f"queue {name!r} runs an experiment since {iso_time(experiment.started_at)}, which compares its policy "
            f"with another one; stop the experiment before you change the policy"
        )
    setup = QueueSetup(name, change, parsed, chosen, experiment)
    stored_queues.put(store, levels.ladder, setup)
    return setup


def replace_policy(store: Store, ladder: int, before: QueueSetup, policy: Policy) -> QueueSetup:
    """Replace the policy of a queue that is still set up as `before`; its tickets and rules stay.

    Raises UnknownNameError or ConflictError if the queue was removed or changed since, or runs an experiment.
    """
    change = reserve_changes(store, ladder, 1)
    setup = stored_queues.find(stored_queues.read(store, ladder), before.name)
    if setup.experiment is not None:
        raise ConflictError(
            f"queue {setup.name!r} runs an experiment since {iso_time(setup.experiment.started_at)}, which compares "
            f"its policy with another one; its policy stays"
        )
    if setup.change != before.change:
        raise ConflictError(f"queue {setup.name!r} was changed while its policy was fitted; fit it again")
    replaced = setup._replace(change=change, policy=policy)
    stored_queues.put(store, ladder, replaced)
    return replaced


def start_experiment(
    store: Store, ladder: int, name: str, policy: Mapping[str, object], design: Mapping[str, object], now: int
) -> QueueExperiment:
    """Start an experiment in a queue: see QueueService.start_experiment."""
    change = reserve_changes(store, ladder, 1)
    setup = stored_queues.find(stored_queues.read(store, ladder), name)
    second, made = second_policy(policy, setup.policy), ExperimentDesign.from_data(design)
    running = setup.experiment
    if running is not None:
        if (second, made) == (running.second, running.design):
            return running  # the request was repeated
        raise ConflictError(
            f"queue {name!r} runs an experiment since {iso_time(running.started_at)}; stop it before you start another"
        )
    experiment = QueueExperiment(change, name, now, None, made, setup.policy, second)
    queue_sql.insert_experiment(store, ladder, experiment.stored)
    stored_queues.put(store, ladder, setup._replace(change=change))
    return experiment


def stop_experiment(store: Store, ladder: int, name: str, now: int) -> QueueExperiment:
    """Stop the experiment of a queue: see QueueService.stop_experiment."""
    change = reserve_changes(store, ladder, 1)
    setup = stored_queues.find(stored_queues.read(store, ladder), name)
    if setup.experiment is None:
        earlier = queue_sql.read_experiments(store, ladder, name, 0, now)
        if not earlier:
            raise ConflictError(f"queue {name!r} runs no experiment")
        return QueueExperiment.of(earlier[0])  # the request was repeated
    queue_sql.stop_experiment(store, ladder, name, now)
    stored_queues.put(store, ladder, setup._replace(change=change))
    return setup.experiment._replace(stopped_at=now)


def remove_queue(
    store: Store, ladder: int, name: str, *, force: bool, now: int, counts: Mapping[int, int]
) -> RemovedQueue:
    """Remove a queue with its tickets: see QueueService.remove_queue; `counts`: see QueueChanges."""
    changes = QueueChanges(store, ladder, now, counts)
    setups = changes.setups
    stored_queues.find(setups, name)
    open_tickets = [row for row in queue_sql.read_open_tickets(store, ladder) if name in row.party.queues]
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
    queue_sql.delete_queue(store, ladder, name)
    queue_sql.stop_experiment(store, ladder, name, now)
    return RemovedQueue(len(open_tickets), changes.touched)
