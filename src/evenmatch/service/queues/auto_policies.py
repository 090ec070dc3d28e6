"""Queues with a wait target: their policies are fitted to the players who join, once a day."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.durations import DAY, HOUR
from evenmatch.errors import EvenmatchError
from evenmatch.ledger.tables import queues, tickets
from evenmatch.service import stored_queues
from evenmatch.service.callers.access import SERVICE
from evenmatch.service.jobs import Job, Jobs, Work
from evenmatch.service.queues import policy_fits
from evenmatch.service.queues.queue_arrivals import KEPT, LEAST_JOINS
from evenmatch.service.queues.queue_service import QueueService
from evenmatch.service.replay.ledger_replay import Progress
from evenmatch.service.settings import Settings
from evenmatch.service.stored_queues import QueueSetup

EVERY = 60.0  # seconds
RETRY = HOUR  # after a fit that failed, or for which too few players had joined

log = logging.getLogger(__name__)


class LastFit(NamedTuple):
    """The last fit of a queue. fitted_at: when it began, microseconds;  adopted: whether the queue got its policy."""

    fitted_at: int
    adopted: bool
    explanation: tuple[str, ...]


class AutoPolicies:
    """Fits the policies of queues whose rules have `auto_within`. Safe to run in many processes.

    Each fit is a background job, so only one process does it. A policy is adopted if it keeps the target and is better
    than the present one by more than a tenth, and never during an experiment.

    every  seconds between two looks of the worker at the queues
    """

    def __init__(self, queue_service: QueueService, jobs: Jobs, every: float = EVERY) -> None:
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
        """Fit the policy of a queue and adopt it if it is better; return what was done, as JSON values.

        progress  called with the share that is done of `events`, as jobs count
        """
        service = self._queue_service.service
        setup, arrivals = policy_fits.read_arrivals(service, ladder, queue)
        result: dict[str, object] = {"queue": queue, "joins": arrivals.joins, "adopted": False}
        if setup.rules.target is None or setup.experiment is not None:
            return result | {"explanation": ["The queue is not fitted now; its policy stays as it is."]}
        if not arrivals.is_sufficient:
            return result | {"explanation": [policy_fits.too_few(setup, arrivals)]}
        fitted = policy_fits.fit(
            service, ladder, queue, setup.rules.target, lambda share: progress(round(share * events))
        )
        result |= {"fit": fitted.fit.to_data(), "explanation": fitted.explanation}
        if fitted.fit.is_better:
            policy_fits.adopt(service, ladder, fitted, SERVICE)
            result["adopted"] = True
        return result

    def run(self, stop: threading.Event) -> None:
        """Start due fits from time to time until `stop` is set."""
        while not stop.wait(self._every):
            try:
                self.step()
            except EvenmatchError as error:
                log.warning("the policies of queues were not fitted, which will be tried again: %s", error)

    def _work(self, ladder: str, setup: QueueSetup, events: int) -> Work:
        return lambda progress: self.refit(ladder, setup.name, progress, events)

    def _due(self) -> list[tuple[str, QueueSetup, int]]:
        """(ladder, queue, events of the ladder) of the queues to fit now."""
        service, due = self._queue_service.service, []
        now = service.clock()
        with service.database.read() as store:
            for ladder in sorted({ladder for ladder, _ in queues.read_names(store)}):
                head = store.head(ladder)
                if Settings.read(head.settings).archived:
                    continue
                joined: int | None = None
                for setup in stored_queues.read(store, head.ladder).values():
                    if setup.rules.target is None or setup.experiment is not None:
                        continue
                    joined = tickets.count_since(store, head.ladder, now - KEPT) if joined is None else joined
                    if joined * setup.policy.team_size >= LEAST_JOINS:
                        due.append((ladder, setup, head.position))
        return [entry for entry in due if self._is_due(entry[0], entry[1].name, now)]

    def _is_due(self, ladder: str, queue: str, now: int) -> bool:
        latest = self._jobs.latest(ladder, job_kind(queue))
        if latest is None:
            return True
        has_fit = latest.state == "done" and latest.result is not None and "fit" in latest.result
        return latest.state != "running" and now - latest.begun_at >= (DAY if has_fit else RETRY)


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
