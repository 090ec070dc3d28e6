"""Calls that wait for one ladder's lock leave threads to others, and are refused when too many wait."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenmatch import rules
from evenmatch.errors import BusyError
from evenmatch.http.limited_threads import LimitedThreads
from evenmatch.http.site import THREADS
from evenmatch.ladders.ladder_queries import LadderQueries

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
        with pytest.raises(BusyError, match="6 requests are already waiting for ladder 'a'") as refused:
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


def test_the_odds_that_a_player_asks_for_delay_no_report_and_no_odds_of_others(
    asking, keys, site, service, monkeypatch
):
    """Odds with stakes of hundreds of teams take seconds."""
    for ladder in ("a", "b"):
        service.create_ladder(ladder, "elo", rules("elo"))
    token = asking.post("/v1/tokens", json={"player": "eve", "ladders": ["a"]}, headers=keys["queue"]).json()["token"]
    released, real = threading.Event(), LadderQueries.prospects

    def slow(queries, ladder, *arguments):
        assert ladder == "b" or released.wait(60)
        return real(queries, ladder, *arguments)

    monkeypatch.setattr(LadderQueries, "prospects", slow)
    line_up = {"teams": [{"players": ["ann"]}, {"players": ["bob"]}]}

    def ask_odds(ladder, headers):
        return asking.post(f"/v1/ladders/{ladder}/odds", json=line_up, headers=headers).status_code

    with ThreadPoolExecutor(2 * THREADS) as threads:
        asked = [threads.submit(ask_odds, "a", {"Authorization": f"Bearer {token}"}) for _ in range(2 * THREADS)]
        try:
            report = {
                **line_up,
                "id": "m-1",
                "played_at": "2026-01-01T12:00:00Z",
                "teams": [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}],
            }
            assert asking.post("/v1/ladders/b/matches", json=report, headers=keys["report"]).status_code == 200
            assert asking.get("/v1/ladders/b/matches", headers=keys["read"]).status_code == 200
            assert ask_odds("b", keys["read"]) == 200
            assert not any(answer.done() for answer in asked)
        finally:
            released.set()
        assert [answer.result(60) for answer in asked] == [200] * len(asked)
