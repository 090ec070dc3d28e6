"""Talks: sequences of requests and pauses with retries, independent of blocking or asynchronous input and output.

A talk is a generator. It yields calls and pauses, is sent the outcome of each, and returns its result. `Client` carries
talks out with blocking calls, `AsyncClient` with awaited ones.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from typing import NamedTuple, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from evenmatch.client.call import Call, get
from evenmatch.client.errors import ProblemError, UnreachableError, problem_of, unreachable
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.problems import Problem

T = TypeVar("T")
JSON: TypeAdapter[object] = TypeAdapter(object)
LONG, WATCHED = 30.0, 2.0  # seconds of one long poll for a job: usually, and if its progress is shown
FIRST, LONGEST = 0.1, 5.0  # seconds before a retry: doubled each time up to LONGEST


class RetryPause(NamedTuple):
    """Wait before the next step."""

    seconds: float


Step = Call[object] | RetryPause
Outcome = httpx.Response | httpx.RequestError | None  # None: after a pause
Talk = Generator[Step, Outcome, T]


class Patience:
    """The time left for retries: `seconds` from now on."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self.renew()

    def renew(self) -> None:
        """Start the time again, after a successful exchange."""
        self._end, self._next = self._clock() + self._seconds, FIRST

    def pause(self, error: ProblemError | UnreachableError) -> RetryPause:
        """The pause before the next attempt. Raises the error if a retry cannot help or no time is left."""
        if isinstance(error, ProblemError) and not error.passes:
            raise error
        retry_after = error.problem.retry_after if isinstance(error, ProblemError) else None
        seconds = self._next * random.uniform(0.5, 1.0)  # jitter: clients that failed together do not retry together
        seconds = seconds if retry_after is None else max(seconds, retry_after)
        if self._clock() + seconds > self._end:
            raise error
        self._next = min(LONGEST, 2 * self._next)
        return RetryPause(seconds)


def ask(call: Call[T], patience: float, on_job: Callable[[JobOut], None] | None = None) -> Talk[T]:
    """Make one call and return its parsed response; most calls are retried for `patience` seconds if they fail.

    If the service answers by a job, wait for its end. on_job: called with the job while it runs.
    Raises ProblemError, UnreachableError.
    """
    retries = Patience(0.0 if call.once else patience + call.wait)
    while True:
        outcome = yield call
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            if outcome.status_code == httpx.codes.ACCEPTED and call.of_job is not None:
                begun = _read(str(call), JobOut.model_validate_json, outcome)
                return call.read(JSON.dump_json(call.of_job((yield from _result_of(begun.job, patience, on_job)))))
            return _read(str(call), call.read, outcome)
        yield retries.pause(failure(str(call), outcome))


def follow_job(job: str, patience: float, on_job: Callable[[JobOut], None] | None) -> Talk[JobOut]:
    """Wait until a job has ended and return it. on_job: called with it while it runs, every few seconds."""
    wait = LONG if on_job is None else WATCHED
    while True:
        current = yield from ask(get(JobOut, f"/v1/jobs/{job}", {"wait": wait}, wait=wait), patience)
        if on_job is not None:
            on_job(current)
        if current.state != "running":
            return current


def _result_of(job: str, patience: float, on_job: Callable[[JobOut], None] | None) -> Talk[dict[str, object]]:
    """The result of a job. Raises ProblemError if it has none."""
    ended = yield from follow_job(job, patience, on_job)
    if ended.result is None:
        problem = Problem(
            type="urn:evenmatch:problem:job",
            title="The job has no result",
            status=409,
            detail=f"{job} is {ended.state}: {ended.told}",
            problems=ended.problems or None,
        )
        raise ProblemError(problem)
    return ended.result


def failure(request: str, outcome: Outcome) -> ProblemError | UnreachableError:
    """The error for an outcome that is not a success."""
    if isinstance(outcome, httpx.Response):
        return problem_of(outcome)
    return unreachable(request, outcome or "nothing was sent")


def _read(request: str, read: Callable[[bytes], T], response: httpx.Response) -> T:
    try:
        return read(response.content)
    except ValidationError as error:
        reason = f"the response is not from evenmatch ({error.error_count()} faults); is this `evenmatch serve`?"
        raise unreachable(request, reason) from error
