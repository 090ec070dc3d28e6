"""The crowd on a service of its own process: real matches, some with quitters, and a visitor among them."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from evenmatch_client import Client, calls

from evenmatch.accounts.keys import Keys
from evenmatch.demo.crowd import SimulatedCrowd
from evenmatch.demo.games import LADDERS
from evenmatch.demo.ladder_creation import QUEUE, make_ladder, play_histories
from evenmatch.operations.service import Service
from server_process import Served

SEED = 2
BEFORE = 60
GAME = replace(LADDERS["duel"], matches=BEFORE, duration=1.5, quit=0.5, crowd=20)
SLOWEST = 120.0  # seconds


@pytest.fixture(scope="module")
def playing(tmp_path_factory):
    """A service with a crowd that plays short duels, which many leave; a client of it."""
    folder = tmp_path_factory.mktemp("crowd")
    path = folder / "demo.db"
    (matches,) = play_histories(SEED, [GAME], datetime.now(UTC)).values()
    make_ladder(path, GAME, matches)
    with Service.open(str(path)) as service:
        key = Keys(service.database, service.clock).create("crowd", ["report", "queue"])[1]
    with Served(str(path), folder) as served, Client(served.address, key) as client:
        crowd = SimulatedCrowd(served.address, key, SEED, [GAME])
        crowd.begin()
        yield client
        crowd.end()


def wait_for(look, what):
    """What `look` gives, as soon as it gives something."""
    deadline = time.monotonic() + SLOWEST
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError(what)


@pytest.mark.slow
def test_the_crowd_plays_matches_of_the_queue_and_reports_them(playing):
    def played():
        found = [one for one in playing.send(calls.matches("duel"))["items"] if one["match_id"].startswith(QUEUE)]
        return len(found) >= 3 and found

    for match in wait_for(played, "no match was played"):
        assert match["state"] == "rated"
        assert [len(team["players"]) for team in match["teams"]] == [1, 1]


@pytest.mark.slow
def test_a_player_who_leaves_has_quit_and_played_for_less_time(playing):
    def quitters():
        found = [one for one in playing.send(calls.matches("duel"))["items"] if one["match_id"].startswith(QUEUE)]
        return [(match, one) for match in found for team in match["teams"] for one in team["players"] if one["quit"]]

    for match, one in wait_for(quitters, "nobody quit"):
        assert one["seconds"] < match["duration"]


@pytest.mark.slow
def test_a_visitor_who_queues_is_matched_with_the_crowd_and_the_match_is_played(playing):
    ticket = playing.send(calls.join_queue("duel", [QUEUE], [{"player": "a visitor", "within": 50}])).ticket
    told = playing.wait_for_match("duel", ticket, accept=True, timeout=SLOWEST)
    assert told.state == "matched"
    match_id = told.match.match_id
    wait_for(lambda: playing.send(calls.live_match("duel", match_id)).state == "closed", "the match was not closed")
    assert "a visitor" in {
        one["player"] for team in playing.send(calls.match("duel", match_id))["teams"] for one in team["players"]
    }
