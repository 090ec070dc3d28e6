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
from pydantic import ValidationError

from evenmatch.client.call import Call
from evenmatch.client.errors import ProblemError, UnreachableError, problem_of, unreachable

T = TypeVar("T")
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


def ask(call: Call[T], patience: float) -> Talk[T]:
    """Make one call and return its parsed response; most calls are retried for `patience` seconds if they fail.

    Raises ProblemError, UnreachableError.
    """
    retries = Patience(0.0 if call.once else patience + call.wait)
    while True:
        outcome = yield call
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            return _read(call, outcome)
        yield retries.pause(failure(str(call), outcome))


def failure(request: str, outcome: Outcome) -> ProblemError | UnreachableError:
    """The error for an outcome that is not a success."""
    if isinstance(outcome, httpx.Response):
        return problem_of(outcome)
    return unreachable(request, outcome or "nothing was sent")


def _read(call: Call[T], response: httpx.Response) -> T:
    try:
        return call.read(response.content)
    except ValidationError as error:
        reason = f"the response is not from evenmatch ({error.error_count()} faults); is this `evenmatch serve`?"
        raise unreachable(str(call), reason) from error
