"""Requests that arrive together share a call, also those that come while the call waits for a lock."""

import asyncio
import threading

import pytest

from evenmatch.errors import InputError, StoreError
from evenmatch.recording.group_commit import LATE, GroupCommit

WAIT = 20.0  # seconds until something must have happened


class LadderLock:
    """Work in two stages that takes requests late: the calls, each a list of requests; the first waits for a lock."""

    def __init__(self, *, fails: Exception | None = None, refuses: dict[str, InputError] | None = None) -> None:
        self.calls: list[list[str]] = []
        self.free, self.is_waited_for = threading.Event(), threading.Event()
        self._fails, self._refuses = fails, refuses or {}

    def prepare(self, _, requests):
        return lambda committing, gather: self._call(requests, committing, gather)

    def _call(self, requests, committing, gather):
        self.is_waited_for.set()
        assert self.free.wait(WAIT)
        whole = [*requests, *gather(lambda request: not request.startswith("large"))]
        self.calls.append(whole)
        if self._fails is not None:
            raise self._fails
        committing()
        return [self._refuses.get(request, f"done {request}") for request in whole]


def results_of(lock: LadderLock, first: str, later: list[str], weigh=lambda _: 1) -> list[object]:
    """What requests are answered, of which all but the first come while that one waits for the lock."""

    async def ask() -> list[object]:
        loop = asyncio.get_running_loop()
        together = GroupCommit.staged(
            lock.prepare, lambda call, *given: loop.run_in_executor(None, call, *given), lambda _: None, weigh, WAIT
        )
        asked = [asyncio.create_task(together.one("arena", first))]
        await loop.run_in_executor(None, lock.is_waited_for.wait, WAIT)
        asked += [asyncio.create_task(together.one("arena", request)) for request in later]
        await asyncio.sleep(0)
        lock.free.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(ask())


def test_requests_that_come_while_a_call_waits_for_the_lock_join_it():
    lock = LadderLock()
    assert results_of(lock, "a", ["b", "c"]) == ["done a", "done b", "done c"]
    assert lock.calls == [["a", "b", "c"]]


def test_a_request_that_does_not_fit_and_those_behind_it_have_the_next_call():
    lock = LadderLock()
    assert results_of(lock, "a", ["b", "large", "c"]) == ["done a", "done b", "done large", "done c"]
    assert lock.calls == [["a", "b"], ["large", "c"]]


@pytest.mark.parametrize(("first", "joins"), [(LATE - 10, True), (LATE - 9, False)])
def test_a_call_is_joined_up_to_a_weight(first, joins):
    lock = LadderLock()
    weights = {"a": first, "b": 10}
    assert results_of(lock, "a", ["b"], weights.__getitem__) == ["done a", "done b"]
    assert lock.calls == ([["a", "b"]] if joins else [["a"], ["b"]])


@pytest.mark.parametrize(
    ("failure", "kind"), [(StoreError("the server is gone"), StoreError), (KeyError(), StoreError)]
)
def test_those_that_joined_a_call_get_its_error(failure, kind):
    lock = LadderLock(fails=failure)
    results = results_of(lock, "a", ["b"])
    assert lock.calls == [["a", "b"]]
    assert [type(result) for result in results] == [kind, kind]


def test_each_that_joined_gets_its_own_refusal():
    wrong = InputError("b is wrong")
    assert results_of(LadderLock(refuses={"b": wrong}), "a", ["b", "c"]) == ["done a", wrong, "done c"]
