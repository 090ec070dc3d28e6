"""Talks with the service: what is asked, and what is asked next, without a word on how it travels.

A talk is a generator. It yields calls and pauses, is sent what came of each, and returns what it comes to; `Client` and
`AsyncClient` each carry talks out in their own way.
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
FIRST, LONGEST = 0.1, 5.0  # seconds before an attempt is repeated: doubled each time


class Pause(NamedTuple):
    """Wait before the next step."""

    seconds: float


Step = Call[object] | Pause
Outcome = httpx.Response | httpx.RequestError | None  # None: after a pause
Talk = Generator[Step, Outcome, T]


class Patience:
    """For how many seconds failures are not given up, from now on."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self.renew()

    def renew(self) -> None:
        """Begin anew, since something came through."""
        self._end, self._next = self._clock() + self._seconds, FIRST

    def pause(self, error: ProblemError | UnreachableError) -> Pause:
        """How long to wait before the next attempt. Raises the error where another has no use, or no time is left."""
        if isinstance(error, ProblemError) and not error.passes:
            raise error
        wished = error.problem.retry_after if isinstance(error, ProblemError) else None
        seconds = self._next * random.uniform(0.5, 1.0)  # so that not all who failed together come back together
        seconds = seconds if wished is None else max(seconds, wished)
        if self._clock() + seconds > self._end:
            raise error
        self._next = min(LONGEST, 2 * self._next)
        return Pause(seconds)


def ask(call: Call[T], patience: float) -> Talk[T]:
    """The answer to one call, tried again for so many seconds where that is safe.

    Raises ProblemError, UnreachableError.
    """
    left = Patience(patience + call.wait if call.again else 0.0)
    while True:
        outcome = yield call
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            return _read(call, outcome)
        yield left.pause(failure(str(call), outcome))


def failure(request: str, outcome: Outcome) -> ProblemError | UnreachableError:
    """What went wrong, as an error of ours."""
    if isinstance(outcome, httpx.Response):
        return problem_of(outcome)
    return unreachable(request, outcome or "nothing was sent")


def _read(call: Call[T], answer: httpx.Response) -> T:
    try:
        return call.read(answer.content)
    except ValidationError as error:
        said = f"the answer is none of evenmatch's ({error.error_count()} faults); is it `evenmatch serve`?"
        raise unreachable(str(call), said) from error
