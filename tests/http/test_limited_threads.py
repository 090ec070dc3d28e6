"""Calls that wait for one ladder's lock leave threads to others, and are refused when too many wait."""

import asyncio
import threading

import pytest

from evenmatch.errors import BusyError
from evenmatch.http.limited_threads import LimitedThreads

SLOWEST = 10.0


@pytest.fixture
def threads():
    made = LimitedThreads("ladder", threads=3, at_once=2, longest=4)
    yield made
    made.shutdown()


def test_a_locked_ladder_leaves_a_thread_to_others_and_refuses_what_is_too_much(threads):
    unlocked = threading.Event()

    async def run():
        locked = [asyncio.ensure_future(threads.work("a", unlocked.wait, SLOWEST)) for _ in range(6)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(threads.work("b", lambda: "answered"), SLOWEST) == "answered"
        with pytest.raises(BusyError, match="6 requests wait for ladder 'a'") as refused:
            await threads.work("a", unlocked.wait, SLOWEST)
        unlocked.set()
        return refused.value.retry_after, await asyncio.gather(*locked)

    retry_after, answers = asyncio.run(run())
    assert retry_after > 0
    assert answers == [True] * 6


def test_an_abandoned_request_keeps_its_place_until_its_thread_is_free(threads):
    unlocked = threading.Event()

    async def run():
        locked = [asyncio.ensure_future(threads.work("a", unlocked.wait, SLOWEST)) for _ in range(2)]
        await asyncio.sleep(0.05)
        for call in locked:
            call.cancel()
        await asyncio.sleep(0.05)
        third = asyncio.ensure_future(threads.work("a", lambda: "third"))
        await asyncio.sleep(0.05)
        assert not third.done()
        unlocked.set()
        return await asyncio.wait_for(third, SLOWEST)

    assert asyncio.run(run()) == "third"
