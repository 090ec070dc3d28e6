"""Fit the policy of a queue to the players who recently joined it, on request or once a day for a wait target."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenmatch.accounts.access import SERVICE, Caller
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.corrections.replay import Progress
from evenmatch.durations import DAY, HOUR, SECOND
from evenmatch.errors import ConflictError, EvenmatchError, InputError
from evenmatch.jobs.jobs import Job, Jobs, Work
from evenmatch.ladders.settings import Settings
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.ledger.store import Store
from evenmatch.matchmaking import Ticket, Tickets
from evenmatch.operations.service import Service
from evenmatch.policy import WaitTarget
from evenmatch.queues import queue_sql, stored_queues
from evenmatch.queues.parties import ticket_of
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.queue_sql import TicketUpdate
from evenmatch.queues.state import LadderOdds
from evenmatch.queues.stored_queues import QueueSetup
from evenmatch.times import Time

if TYPE_CHECKING:
    from evenmatch.lab.queue.policy_fit import PolicyFit
    from evenmatch.policy import Policy


FITTED_PERIOD = DAY  # tickets are stored no longer
LEAST_JOINS = 200  # players; fewer say too little about a queue
TICKETS_READ_AT_MOST = 20_000  # sampled evenly if there are more
QUIETER = 0.25  # share of the players who join in hours quieter than the typical one


class QueueArrivals(NamedTuple):
    """The players who joined a queue in the last day.

    tickets   of the parties, or a sample if there are very many
    joins     players who joined
    arrivals  players per second in the typical hour; three of four players join in hours at least as busy
    """

    tickets: Tickets
    joins: int
    arrivals: float

    @property
    def is_sufficient(self) -> bool:
        """Whether enough players joined for a policy to be fitted to them."""
        return self.joins >= LEAST_JOINS and self.arrivals > 0


def read(store: Store, ladder: int, setup: QueueSetup, now: int) -> QueueArrivals:
    """Read the tickets of a queue from the day before `now`."""
    rows, every = queue_sql.read_tickets_since(store, ladder, now - FITTED_PERIOD, TICKETS_READ_AT_MOST)
    fitting = [ticket for row in rows if (ticket := _ticket(row, setup)) is not None]
    joined = Tickets.of(fitting)
    counts = np.diff(joined.start) * every
    return QueueArrivals(joined, int(counts.sum()), _typical_rate(joined.queued, counts, now))


def _ticket(row: TicketUpdate, setup: QueueSetup) -> Ticket | None:
    """The ticket as the matchmaker sees it; None: it is for other queues, or the present policy refuses it."""
    party = row.party
    if party is None or setup.name not in party.queues or len(party.members) > setup.policy.team_size:
        return None
    try:
        return ticket_of(party, row.ticket, row.queued_at, setup.policy.roles, lambda _player: ())
    except InputError:
        return None


def _typical_rate(queued: np.ndarray, players: np.ndarray, now: int) -> float:
    """Players per second in the typical hour since the first of them joined; see QueueArrivals."""
    if not len(queued):
        return 0.0
    first = int(queued.min())
    hours = max(1, -(-(now - first) // HOUR))
    length = max(now - first, SECOND) / hours
    hour = np.minimum(((queued - first) / length).astype(np.int64), hours - 1)
    joined = np.sort(np.bincount(hour, weights=players, minlength=hours))
    counting = int(np.searchsorted(np.cumsum(joined), QUIETER * joined.sum(), side="right"))
    return float(joined[min(counting, hours - 1)]) * SECOND / length


CHANGED = ("even_spread", "steps", "overdue_after")  # options that a fit sets


class FittedQueue(NamedTuple):
    """A policy fitted to a queue. before: the queue before the fit;  explanation: in sentences."""

    before: QueueSetup
    fit: PolicyFit
    explanation: list[str]

    @property
    def policy(self) -> Policy:
        """The fitted policy, in the form that is stored."""
        return replace(self.fit.policy, odds=None)


def read_arrivals(service: Service, ladder: str, queue: str) -> tuple[QueueSetup, QueueArrivals]:
    """A queue and its arrivals of the last day. Raises UnknownNameError."""
    with service.database.read() as store:
        number = store.head(ladder).ladder
        setup = stored_queues.find(stored_queues.read(store, number), queue)
        return setup, read(store, number, setup, service.clock())


def fit(
    service: Service,
    ladder: str,
    queue: str,
    target: WaitTarget,
    progress: Callable[[float], None] | None = None,
) -> FittedQueue:
    """Fit the policy of a queue to its players of the last day, without storing it. Takes up to a minute.

    progress  called with the share of the work that is done
    Raises UnknownNameError, and ConflictError if too few players joined.
    """
    setup, arrivals = read_arrivals(service, ladder, queue)
    if not arrivals.is_sufficient:
        raise ConflictError(too_few(setup, arrivals))
    from evenmatch.lab.queue import policy_fit  # noqa: PLC0415 - the lab is imported on first use

    odds = LadderOdds(service.database, ladder, arrivals.tickets.player.tolist)
    odds.begin_tick(service.clock())
    drawn = policy_fit.ticket_arrivals(arrivals.tickets, arrivals.arrivals, target)
    fitted = policy_fit.fit_policy(replace(setup.policy, odds=odds), drawn, target, progress)
    return FittedQueue(setup, fitted, policy_fit.explain(fitted))


def too_few(setup: QueueSetup, arrivals: QueueArrivals) -> str:
    """The sentence that says that too few players joined a queue."""
    return (
        f"{arrivals.joins} players joined queue {setup.name!r} in the last day; at least {LEAST_JOINS} are needed to "
        "fit its policy, which stays as it is"
    )


def adopt(service: Service, ladder: str, fitted: FittedQueue, caller: Caller) -> QueueSetup:
    """Give the queue the fitted policy, and record it with its explanation in the audit trail.

    Raises ConflictError if the target is not met, if the queue was changed since, or during an experiment.
    """
    name, kept = fitted.before.name, fitted.fit
    if not kept.is_kept:
        raise ConflictError(f"no width meets {kept.target.in_words} in queue {name!r}; its policy stays as it is")
    data = fitted.policy.to_data()
    body: dict[str, object] = {
        "within": kept.target.within,
        "share": kept.target.share,
        "policy": {option: data[option] for option in CHANGED},
        "explanation": fitted.explanation,
    }
    with service.database.write() as store:
        number = store.head(ladder).ladder
        change = reserve_changes(store, number, 1)
        setup = stored_queues.find(stored_queues.read(store, number), name)
        if setup.experiment is not None:
            raise setup.experiment.refusal("stop it before you fit the policy")
        if setup.change != fitted.before.change:
            raise ConflictError(f"queue {name!r} was changed while its policy was fitted; fit it again")
        setup = setup._replace(change=change, policy=fitted.policy)
        stored_queues.put(store, number, setup)
        AuditEntry(caller, "queue.fitted", ladder, name, body).note(store, service.clock())
    return setup


CHECK_EVERY = 60.0  # seconds
RETRY_AFTER = HOUR  # microseconds, after a fit that failed or for which too few players had joined

log = logging.getLogger(__name__)


class LastFit(NamedTuple):
    """The last fit of a queue's policy to the players who join it.

    fitted_at    when the fit began
    adopted      true: the queue got the fitted policy
    explanation  the result in sentences
    """

    fitted_at: Time
    adopted: bool
    explanation: tuple[str, ...]


class AutoPolicies:
    """Fits the policies of queues whose rules have `auto_within`. Safe to run in many processes.

    Each fit is a background job, so only one process does it. A policy is adopted if it meets the target and is better
    than the present one by more than a tenth, and never during an experiment.

    every  seconds between checks for due fits
    """

    def __init__(self, queue_service: QueueService, jobs: Jobs, every: float = CHECK_EVERY) -> None:
        self._queue_service, self._jobs, self._every = queue_service, jobs, every

    def step(self) -> list[Job]:
        """Start the fits that are due, and return their jobs."""
        loaded = self._queue_service.loaded
        if loaded is not None and not loaded.is_set():
            return []
        begun = []
        for ladder, setup, events in self._due():
            job, is_new = self._jobs.begin(job_kind(setup.name), ladder, self._work(ladder, setup, events), sort="lab")
            begun += [job] if is_new else []
        return begun

    def refit(self, ladder: str, queue: str, progress: Progress, events: int = 0) -> Mapping[str, object]:
        """Fit the policy of a queue and adopt it if it is better. Returns the result as JSON values.

        progress  called with the done share of `events`, which is how jobs count
        """
        service = self._queue_service.service
        setup, arrivals = read_arrivals(service, ladder, queue)
        result: dict[str, object] = {"queue": queue, "joins": arrivals.joins, "adopted": False}
        if setup.rules.target is None or setup.experiment is not None:
            return result | {"explanation": ["The policy is not fitted at present and stays as it is."]}
        if not arrivals.is_sufficient:
            return result | {"explanation": [too_few(setup, arrivals)]}
        fitted = fit(service, ladder, queue, setup.rules.target, lambda share: progress(round(share * events)))
        result |= {"fit": fitted.fit.to_data(), "explanation": fitted.explanation}
        if fitted.fit.is_better:
            adopt(service, ladder, fitted, SERVICE)
            result["adopted"] = True
        return result

    def run(self, stop: threading.Event) -> None:
        """Start due fits every few seconds until `stop` is set."""
        while not stop.wait(self._every):
            try:
                self.step()
            except EvenmatchError as error:
                log.warning("fitting the policies of queues failed and will be tried again: %s", error)

    def _work(self, ladder: str, setup: QueueSetup, events: int) -> Work:
        return lambda progress: self.refit(ladder, setup.name, progress, events)

    def _due(self) -> list[tuple[str, QueueSetup, int]]:
        """(ladder, queue, events of the ladder) of the queues to fit now."""
        service, due = self._queue_service.service, []
        now = service.clock()
        with service.database.read() as store:
            for ladder in sorted({ladder for _, ladder, _, _ in queue_sql.read_all_queues(store)}):
                head = store.head(ladder)
                if Settings.read(head.settings).archived:
                    continue
                joined: int | None = None
                for setup in stored_queues.read(store, head.ladder).values():
                    if setup.rules.target is None or setup.experiment is not None:
                        continue
                    if joined is None:
                        joined = queue_sql.count_tickets_since(store, head.ladder, now - FITTED_PERIOD)
                    if joined * setup.policy.team_size >= LEAST_JOINS:
                        due.append((ladder, setup, head.position))
        return [entry for entry in due if self._is_due(entry[0], entry[1].name, now)]

    def _is_due(self, ladder: str, queue: str, now: int) -> bool:
        latest = self._jobs.latest(ladder, job_kind(queue))
        if latest is None:
            return True
        has_fit = latest.state == "done" and latest.result is not None and "fit" in latest.result
        return latest.state != "running" and now - latest.begun_at >= (DAY if has_fit else RETRY_AFTER)


def job_kind(queue: str) -> str:
    """The kind of the jobs that fit the policy of a queue."""
    return f"policy of {queue}"


def last_fit(jobs: Jobs, ladder: str, setup: QueueSetup) -> LastFit | None:
    """The last fit of a queue; None if it has no target, or none has ended."""
    job = None if setup.rules.target is None else jobs.latest(ladder, job_kind(setup.name))
    if job is None or job.result is None:
        return None
    explanation = job.result.get("explanation")
    sentences = tuple(map(str, explanation)) if isinstance(explanation, list) else ()
    return LastFit(job.begun_at, job.result.get("adopted") is True, sentences)
