"""Requests without a key have few threads of their own, so that they do not slow down reports and logged-in users."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenmatch.http import waiting_requests
from evenmatch.http.routes import standings
from evenmatch.http.site import Site

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
