"""Requests without a key have few threads of their own, so that they do not slow down reports and logged-in users."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest

from evenmatch.accounts.sessions import ISSUER
from evenmatch.http import waiting_requests
from evenmatch.http.options import Options
from evenmatch.http.routes import standings
from evenmatch.http.site import Site, anonymous_client
from evenmatch.web import page_request
from evenmatch.web.lab_jobs import LabCache
from evenmatch.web.page_request import ChangeStream
from ledger.sample_matches import duel

ADDRESS = "127.0.0.1"  # of the client in these tests
AT_ONCE, WAITING = 2, 64


@pytest.fixture
def occupied(site, anyone):
    """Occupies calls of this address until the returned event is set."""
    released, calls = threading.Event(), []

    def occupy(count):
        for _ in range(count):
            call = site.anonymous_threads.work(ADDRESS, released.wait, 60)
            calls.append(asyncio.run_coroutine_threadsafe(call, anyone.loop))
        return released

    yield occupy
    released.set()
    assert [call.result(30) for call in calls] == [True] * len(calls)


@pytest.mark.parametrize("path", ["/ladders/league", "/v1/ladders/league/players/ann", "/v1/ladders/league/matches"])
def test_an_anonymous_request_waits_for_others_of_its_address_alone(anyone, operator, league, occupied, path):
    released = occupied(AT_ONCE)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(anyone.get, path)
        assert operator.get("/ladders/league").status_code == 200
        assert not waiting.done()
        released.set()
        assert waiting.result(30).status_code == 200


def test_anonymous_polls_and_renderings_run_in_threads_for_these(anyone, site, league, monkeypatch):
    site.running.announce("league", "m-1", [["ann"], ["bob"]])
    used = []

    def noting(function):
        def note(*arguments, **options):
            used.append(threading.current_thread().name.rpartition("_")[0])
            return function(*arguments, **options)

        return note

    monkeypatch.setattr(site.running, "status", noting(site.running.status))
    monkeypatch.setattr(standings, "_distribution", noting(standings._distribution))
    for number, path in enumerate(("live/m-1?after=99&wait=0.1", "distribution?bins=7"), 1):
        assert anyone.get(f"/v1/ladders/league/{path}").status_code == 200
        assert set(used) == {"evenmatch-address"}, path
        assert len(used) >= number


def test_an_address_has_a_limited_number_of_polls_without_a_key(anyone, site, league, monkeypatch):
    monkeypatch.setattr(waiting_requests, "EACH_ADDRESS", 2)
    site.running.announce("league", "m-1", [["ann"], ["bob"]])
    path = "/v1/ladders/league/live/m-1?after=99&wait="
    with ThreadPoolExecutor(3) as threads:
        answers = [asked.result(30).status_code for asked in [threads.submit(anyone.get, f"{path}2") for _ in range(3)]]
    assert sorted(answers) == [200, 200, 429]
    assert anyone.get(f"{path}0.1").status_code == 200  # they have ended


def test_an_address_with_too_many_requests_is_refused(anyone, operator, league, occupied):
    occupied(AT_ONCE + WAITING)
    refused = anyone.get("/v1/ladders/league/players/ann")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert "66 requests wait for address '127.0.0.1'; try again in a moment" in refused.json()["detail"]
    page = anyone.get("/ladders/league")
    assert page.status_code == 503
    assert "66 requests wait for address" in page.text
    assert operator.get("/ladders/league").status_code == 200


def test_a_page_that_waits_too_long_is_an_error_page_and_no_bug(anyone, league, occupied, monkeypatch):
    monkeypatch.setitem(Site.work.__kwdefaults__, "within", 0.5)
    occupied(AT_ONCE)
    page = anyone.get("/ladders/league/me?player=ann")
    assert page.status_code == 503
    assert "The database does not answer" in page.text
    assert "bug" not in page.text


class TestBeyondTheLimit:
    """Refusing strangers takes no threads of others, and little of their own."""

    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, open_reads=True, open_rate=0.001, open_burst=2)

    @pytest.fixture
    def used(self, monkeypatch):
        """The threads that rendered pages."""
        names, draw = [], page_request.render

        def render(template, values):
            names.append(threading.current_thread().name.rpartition("_")[0])
            return draw(template, values)

        monkeypatch.setattr(page_request, "render", render)
        return names

    @pytest.mark.parametrize("path", ["/ladders/league", "/nope"])
    def test_the_refusals_of_strangers_are_rendered_in_the_threads_of_their_address(self, anyone, league, used, path):
        statuses = [anyone.get(path).status_code for _ in range(4)]
        assert statuses[2:] == [429, 429]
        assert used == ["evenmatch-address"] * 4

    def test_a_refusal_waits_for_no_thread_where_too_many_wait(self, anyone, league, occupied):
        assert [anyone.get("/ladders/league").status_code for _ in range(3)] == [200, 200, 429]
        occupied(AT_ONCE + WAITING)
        refused = anyone.get("/ladders/league")
        assert (refused.status_code, "more than 0.001 requests per second" in refused.text) == (429, True)
        foreign = anyone.get("/ladders/league", headers={"host": "evil.example"})
        assert (foreign.status_code, "league" in foreign.text) == (429, False)

    @pytest.mark.parametrize("path", ["/ladders/league", "/nope", "/v1/ladders/league/standings"])
    def test_requests_under_a_foreign_name_count(self, anyone, league, used, path):
        answers = [anyone.get(path, headers={"host": "evil.example"}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [421, 421, 429, 429]
        assert not [answer for answer in answers if "The league" in answer.text]
        assert set(used) <= {"evenmatch-address"}
        assert anyone.get("/ladders/league").status_code == 429

    def test_forged_session_cookies_take_no_thread(self, anyone, operator, site, league, monkeypatch):
        find, asked = site.sessions.find, []
        monkeypatch.setattr(site.sessions, "find", lambda text: (asked.append(text), find(text))[1])
        for forged in ("x.y.z", "x" * 60_000, jwt.encode({"iss": ISSUER}, "0" * 32, "HS256")):
            anyone.get("/ladders/league", headers={"cookie": f"evenmatch-session={forged}"})
        assert asked == []
        assert operator.get("/operate").status_code == 200
        assert len(asked) == 1

    def test_the_form_of_a_stranger_is_not_sent_back(self, anyone, operator, league):
        form = "&".join(f"region=r{number:04d}" for number in range(1990))
        headers = {"content-type": "application/x-www-form-urlencoded"}
        for _ in range(3):
            refused = anyone.post("/ladders/league/queue/join", content=form, headers=headers)
        assert refused.status_code == 429
        assert "r0001" not in refused.text
        assert len(refused.content) < 10_000
        assert operator.get("/ladders/league").status_code == 200


def test_the_streams_of_others_do_not_wait_for_the_stranger_who_opened_the_first(site, league):
    stream, told = ChangeStream(site), {"stranger": [], "operator": []}

    async def watch(who):
        async with site.waiting.stream(60) as waiter:
            async for event in stream.of(league, "", waiter):
                told[who].append(event)

    async def meanwhile():
        told["operator"].clear()
        for hour in range(9, 15):  # the first poll notes the state to compare with
            site.service.record(duel(hour, "ann", "bob", league))
            await asyncio.sleep(1)
        assert "ladder" in told["operator"]

    asyncio.run(
        beside_a_stranger(
            site, lambda: watch("stranger"), lambda: watch("operator"), lambda: all(told.values()), meanwhile
        )
    )


def test_those_who_are_logged_in_do_not_wait_for_the_lab_of_a_stranger(site, league):
    cache, view, healths = LabCache(), site.service.view(league), []

    async def look():
        healths.append(None)
        healths.append(await cache.health(site, view))

    async def meanwhile():
        await until(lambda: healths[-1] is not None)

    asyncio.run(beside_a_stranger(site, look, look, lambda: len(healths) >= 2, meanwhile, is_busy_first=True))


async def beside_a_stranger(site, stranger, operator, begun, meanwhile, *, is_busy_first=False):
    """Await `meanwhile` while the threads of a stranger's address are occupied, who began to wait before the operator.

    begun: whether both wait
    """
    released = threading.Event()

    async def as_stranger(work):
        anonymous_client.set(ADDRESS)
        await work()

    def occupied():
        return [asyncio.create_task(as_stranger(lambda: site.work(released.wait, 60))) for _ in range(AT_ONCE)]

    tasks = occupied() if is_busy_first else []
    await asyncio.sleep(0.1)
    try:
        tasks.append(asyncio.create_task(as_stranger(stranger)))
        await asyncio.sleep(0.1)
        tasks.append(asyncio.create_task(operator()))
        await until(begun)
        tasks += [] if is_busy_first else occupied()
        await asyncio.sleep(0.1)
        await meanwhile()
    finally:
        released.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(is_so):
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.05)
