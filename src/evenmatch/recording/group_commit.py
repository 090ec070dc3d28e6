"""Group commit: requests that arrive while one transaction runs share the next."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Generic, Self, TypeAlias, TypeVar

from evenmatch.errors import EvenmatchError, StoreError

Request = TypeVar("Request")
Result = TypeVar("Result")
Outcomes: TypeAlias = Sequence[Result | EvenmatchError]
Gather: TypeAlias = Callable[[Callable[[Request], bool]], list[Request]]
Call: TypeAlias = Callable[[Callable[[], None], Gather[Request]], Outcomes[Result]]
LATE = 200  # total weight up to which a call may take further requests after it has begun
MOST_WEIGHT = 2000  # total weight of requests that share a transaction; a heavier request gets its own


class _Promise(Generic[Result]):
    """The outcome of a thread's request. A lock is the cheapest way for many threads to wake each other.

    leads  the thread makes the call for all waiting requests, including its own
    """

    def __init__(self) -> None:
        self.outcome: Result | EvenmatchError | None = None
        self.leads = False
        self.woken = threading.Lock()
        self.woken.acquire()


Promise: TypeAlias = _Promise[Result] | asyncio.Future[Result]


class GroupCommit(Generic[Request, Result]):
    """Collects concurrent requests for a ladder into one call of `work`, in order; ladders are independent.

    Either all requests come from threads, through `wait`, and the first waiting thread makes the call for all. Or all
    come from one event loop, through `one`.

    work    processes requests for a ladder; returns for each its result, or the error that refused it
    start   calls a function in a thread; only for requests from an event loop
    failed  called with an exception of `work` that is a bug; its requests get a StoreError
    weigh   returns the weight of a request
    within  seconds after which a request from an event loop gets a StoreError instead of its result
    """

    def __init__(
        self,
        work: Callable[[str, Sequence[Request]], Sequence[Result | EvenmatchError]],
        start: Callable[..., object] = lambda call, *arguments: call(*arguments),
        failed: Callable[[BaseException], None] = lambda error: None,
        weigh: Callable[[Request], int] = lambda _: 1,
        within: float | None = None,
    ) -> None:
        self._prepare: Callable[[str, Sequence[Request]], Call[Request, Result]] = lambda ladder, requests: (
            lambda _, __: work(ladder, requests)
        )
        self._start, self._failed, self._weigh, self._within = start, failed, weigh, within
        self._guard = threading.Lock()
        # By ladder, while a call runs or is about to: the waiting requests, each with its promise.
        self._waiting: dict[str, list[tuple[Request, Promise[Result]]]] = {}
        self._turns: dict[str, threading.Lock] = {}  # by ladder; held by the running call

    @classmethod
    def staged(
        cls,
        prepare: Callable[[str, Sequence[Request]], Call[Request, Result]],
        start: Callable[..., object],
        failed: Callable[[BaseException], None],
        weigh: Callable[[Request], int],
        within: float | None,
    ) -> Self:
        """Create one that works in two stages: a call's first stage runs while the previous call's second commits.

        prepare  does the work that is independent of earlier calls for the ladder. It returns a function for the rest,
                 which calls its first argument when it begins to commit. With its second argument it may take
                 further requests that meet a condition, and then returns their outcomes too.
        """

        def whole(ladder: str, requests: Sequence[Request]) -> Outcomes[Result]:
            return prepare(ladder, requests)(lambda: None, lambda _: [])

        made = cls(whole, start, failed, weigh, within)
        made._prepare = prepare
        return made

    def wait(self, ladder: str, request: Request) -> Result:
        """Return the result of this thread's request. Raises the error that refused it."""
        promise: _Promise[Result] = _Promise()
        promise.leads = self._is_first(ladder, request, promise)
        if not promise.leads:
            try:
                promise.woken.acquire()
            except BaseException:  # interrupted: other threads must not wait for this one
                self._withdraw(ladder, request, promise)
                raise
        if promise.leads:
            self._lead(ladder)
        if isinstance(promise.outcome, EvenmatchError):
            raise promise.outcome
        return promise.outcome  # type: ignore[return-value] # by now there is one

    async def one(self, ladder: str, request: Request) -> Result:
        """Return the result of an event loop's request. Raises the error that refused it, StoreError after `within`."""
        loop = asyncio.get_running_loop()
        promise: asyncio.Future[Result] = loop.create_future()
        if self._is_first(ladder, request, promise):
            self._start(self._lead, ladder)
        if self._within is None:
            return await promise
        deadline = loop.call_later(self._within, _expire, promise, self._within)  # asyncio.timeout takes longer
        try:
            return await promise
        finally:
            deadline.cancel()

    def _is_first(self, ladder: str, request: Request, promise: Promise[Result]) -> bool:
        """Queue a request; return True if no call runs for the ladder and the caller must start one."""
        with self._guard:
            waiting = self._waiting.get(ladder)
            if waiting is None:
                self._waiting[ladder] = [(request, promise)]
            else:
                waiting.append((request, promise))
            return waiting is None

    def _lead(self, ladder: str) -> None:
        """Make the call for all waiting requests, start the next leader, then resolve the promises."""
        with self._guard:
            turn = self._turns.setdefault(ladder, threading.Lock())
            waiting = self._waiting[ladder]
            weights = accumulate(self._weigh(request) for request, _ in waiting)
            end = max(1, sum(weight <= MOST_WEIGHT for weight in weights))
            batch = waiting[:end]
            del waiting[:end]
        promises = [promise for _, promise in batch]
        requests = [request for request, _ in batch]
        outcomes: Outcomes[Result]
        is_followed = False

        def begin_next() -> None:
            nonlocal is_followed
            with suppress(RuntimeError):  # no thread available; the end of this call tries again
                is_followed = is_followed or self._hand_over(ladder)

        def gather(fits: Callable[[Request], bool]) -> list[Request]:
            late = self._take_late(ladder, sum(map(self._weigh, requests)), fits)
            promises.extend(promise for _, promise in late)
            return [request for request, _ in late]

        try:
            call = self._prepare(ladder, requests)
            with turn:
                outcomes = call(begin_next, gather)
        except EvenmatchError as error:
            outcomes = [error] * len(promises)
        except BaseException as error:
            self._failed(error)
            unknown = StoreError(f"this may or may not have been stored ({error!r}); send it again")
            outcomes = [unknown] * len(promises)
            if isinstance(promises[0], _Promise):
                raise  # in this thread; the others get the StoreError
        finally:
            if not is_followed:
                self._hand_over(ladder, is_last=True)
            if isinstance(promises[0], asyncio.Future):
                with suppress(RuntimeError):  # the event loop is closed, and nobody waits
                    promises[0].get_loop().call_soon_threadsafe(_resolve, promises, outcomes)
            else:
                _resolve(promises, outcomes)

    def _take_late(
        self, ladder: str, weight: int, fits: Callable[[Request], bool]
    ) -> list[tuple[Request, Promise[Result]]]:
        """Take requests that came after a call of this weight began, up to LATE in total and the first misfit."""
        count = 0
        with self._guard:
            waiting = self._waiting[ladder]
            for request, _ in waiting:
                weight += self._weigh(request)
                if weight > LATE or not fits(request):
                    break
                count += 1
            late = waiting[:count]
            del waiting[:count]
        return late

    def _hand_over(self, ladder: str, *, is_last: bool = False) -> bool:
        """Make the first waiting request the leader; return False if there is none. is_last: this call is ending."""
        with self._guard:
            waiting = self._waiting[ladder]
            if not waiting:
                if is_last:
                    del self._waiting[ladder]
                    self._turns.pop(ladder, None)
                return False
            first = waiting[0][1]
            if isinstance(first, _Promise):
                first.leads = True
                first.woken.release()
                return True
        self._start(self._lead, ladder)
        return True

    def _withdraw(self, ladder: str, request: Request, promise: _Promise[Result]) -> None:
        with self._guard, suppress(KeyError, ValueError):
            self._waiting[ladder].remove((request, promise))
        if promise.leads:
            self._hand_over(ladder, is_last=True)


def _expire(promise: asyncio.Future[Result], within: float) -> None:
    if not promise.done():
        promise.set_exception(unanswered(within))


def unanswered(within: float) -> StoreError:
    """The error for a request that was not answered within these seconds."""
    return StoreError(
        f"the database did not answer within {within:g} s; the request may have been stored; send it again"
    )


def _resolve(promises: Sequence[Promise[Result]], outcomes: Sequence[Result | EvenmatchError]) -> None:
    for promise, outcome in zip(promises, outcomes, strict=True):
        if isinstance(promise, _Promise):
            promise.outcome = outcome
            if not promise.leads:
                promise.woken.release()
        elif promise.done():  # cancelled: the client disconnected
            continue
        elif isinstance(outcome, EvenmatchError):
            promise.set_exception(outcome)
        else:
            promise.set_result(outcome)
