"""Fit the policy of a queue to the players who joined it, and adopt it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from evenmatch.errors import ConflictError
from evenmatch.service import stored_queues
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.audit_entry import AuditEntry
from evenmatch.service.queues import queue_arrivals, queue_setup
from evenmatch.service.queues.odds import LadderOdds
from evenmatch.service.queues.queue_arrivals import LEAST_JOINS, QueueArrivals
from evenmatch.service.service import Service
from evenmatch.service.stored_queues import QueueSetup
from evenmatch.wait_target import WaitTarget

if TYPE_CHECKING:
    from evenmatch.lab.queue.policy_fit import PolicyFit
    from evenmatch.policy import Policy

CHANGED = ("even_spread", "steps", "overdue_after")  # options that a fit sets


class FittedQueue(NamedTuple):
    """A policy fitted to a queue. before: the queue as it was;  explanation: in sentences."""

    before: QueueSetup
    fit: PolicyFit
    explanation: list[str]

    @property
    def policy(self) -> Policy:
        """The fitted policy, as it would be stored."""
        return replace(self.fit.policy, odds=None)


def read_arrivals(service: Service, ladder: str, queue: str) -> tuple[QueueSetup, QueueArrivals]:
    """A queue and those who joined it in the last day. Raises UnknownNameError."""
    with service.database.read() as store:
        number = store.head(ladder).ladder
        setup = stored_queues.find(stored_queues.read(store, number), queue)
        return setup, queue_arrivals.read(store, number, setup, service.clock())


def fit(
    service: Service,
    ladder: str,
    queue: str,
    target: WaitTarget,
    progress: Callable[[float], None] | None = None,
) -> FittedQueue:
    """Fit the policy of a queue to the players of its last day; nothing is stored. Takes up to a minute.

    progress  called with the share of the work that is done
    Raises UnknownNameError; ConflictError if too few players joined, see `too_few`.
    """
    setup, arrivals = read_arrivals(service, ladder, queue)
    if not arrivals.is_sufficient:
        raise ConflictError(too_few(setup, arrivals))
    from evenmatch.lab.queue import policy_explanation, policy_fit  # noqa: PLC0415 - the lab is imported on first use

    odds = LadderOdds(service.database, ladder, arrivals.tickets.player.tolist)
    odds.begin_tick(service.clock())
    drawn = policy_fit.ticket_arrivals(arrivals.tickets, arrivals.arrivals, target)
    fitted = policy_fit.fit_policy(replace(setup.policy, odds=odds), drawn, target, progress)
    return FittedQueue(setup, fitted, policy_explanation.explain(fitted))


def too_few(setup: QueueSetup, arrivals: QueueArrivals) -> str:
    """The sentence for a queue that too few players joined."""
    return (
        f"{arrivals.joins} players joined queue {setup.name!r} in the last day; at least {LEAST_JOINS} are needed to "
        f"fit its policy, which stays as it is"
    )


def adopt(service: Service, ladder: str, fitted: FittedQueue, caller: Caller) -> QueueSetup:
    """Give the queue the fitted policy, and note that with its explanation in the audit trail.

    Raises ConflictError if the target is not kept, if the queue was changed since, or while it runs an experiment.
    """
    name, kept = fitted.before.name, fitted.fit
    if not kept.is_kept:
        raise ConflictError(f"no width keeps {kept.target.in_words} in queue {name!r}; its policy stays as it is")
    data = fitted.policy.to_data()
    body: dict[str, object] = {
        "within": kept.target.within,
        "share": kept.target.share,
        "policy": {option: data[option] for option in CHANGED},
        "explanation": fitted.explanation,
    }
    with service.database.write() as store:
        setup = queue_setup.replace_policy(store, store.head(ladder).ladder, fitted.before, fitted.policy)
        AuditEntry(caller, "queue.fitted", ladder, name, body).note(store, service.clock())
    return setup
