"""Matches of very many teams: limits in all and of a ladder, and nothing long in the event loop."""

import asyncio
import json
import time
from datetime import datetime

import numpy as np
import pytest

from evenmatch import Match, Team, rules
from evenmatch.errors import BadRowsError
from evenmatch.http import report_recording
from evenmatch.http.options import Options
from evenmatch.http.request_bodies import QUOTED
from evenmatch.players import matches as matches_rows
from evenmatch.tables import from_matches
from loop_lag import BUSY, LoopLag

MATCHES = "/v1/ladders/duel/matches"
CROWD = 6_000


@pytest.fixture
def options():
    return Options(matchmaker=False, rate=100_000, burst=100_000, team_limit=CROWD, player_limit=CROWD + 50)


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def ladder(service, clock):
    clock.move(days=365)
    service.create_ladder("duel", "elo", rules("elo"))
    return "duel"


def free_for_all(count, match_id="m-1", result="place"):
    teams = [{result: at % 97 + 1, "players": [{"player": f"p{at}"}]} for at in range(count)]
    return {"id": match_id, "played_at": "2025-11-21T18:30:00Z", "teams": teams}


def wide(count, match_id="m-1"):
    """Two teams, of one and of count - 1 players."""
    players = [{"player": f"p{at}"} for at in range(count)]
    teams = [{"place": 1, "players": players[:1]}, {"place": 2, "players": players[1:]}]
    return {"id": match_id, "played_at": "2025-11-21T18:30:00Z", "teams": teams}


def check_refused(told, *words):
    assert told.status_code == 422, told.text
    for word in words:
        assert word in told.json()["detail"]


def test_a_ladder_refuses_matches_with_more_teams_or_players_than_its_settings_allow(admin, ladder):
    for address in (MATCHES, f"{MATCHES}?way=endpoint"):
        check_refused(admin.post(address, json=free_for_all(501)), "501 teams", "at most 500", "team_limit")
        check_refused(admin.post(address, json=wide(1001)), "1,001 players", "1,000 players", "ladder 'duel'")
    assert admin.get(MATCHES).json()["items"] == []
    assert admin.get("/v1/ladders/duel/players/p1").status_code == 404
    assert admin.post(MATCHES, json=free_for_all(500)).status_code == 200
    assert admin.post(MATCHES, json=wide(1000, "m-2")).status_code == 200


def test_what_the_ladder_allows_holds_from_the_moment_it_is_set(admin, ladder):
    assert admin.post(MATCHES, json=free_for_all(501)).status_code == 422
    assert admin.patch("/v1/ladders/duel", json={"team_limit": 501}).json()["settings"]["team_limit"] == 501
    assert admin.post(MATCHES, json=free_for_all(501)).status_code == 200
    assert admin.patch("/v1/ladders/duel", json={"team_limit": 2}).status_code == 200
    assert admin.post(MATCHES, json=free_for_all(3, "m-2")).status_code == 422


def test_no_ladder_allows_more_than_the_service(admin, ladder):
    admin.patch("/v1/ladders/duel", json={"team_limit": 100_000, "player_limit": 100_000})
    check_refused(admin.post(MATCHES, json=free_for_all(CROWD + 1)), f"{CROWD:,} teams", "EVENMATCH_TEAM_LIMIT")
    check_refused(admin.post(MATCHES, json=wide(CROWD + 51)), f"{CROWD + 50:,} players", "EVENMATCH_PLAYER_LIMIT")


def test_of_a_batch_only_the_too_large_matches_are_refused(admin, ladder):
    admin.patch("/v1/ladders/duel", json={"team_limit": 3})
    sizes = [2, 4, 3, 5, 2]
    batch = {"matches": [free_for_all(size, f"m-{at}") for at, size in enumerate(sizes)]}
    told = admin.post(f"{MATCHES}/batch", json=batch).json()
    assert (told["recorded"], told["refused"]) == (3, 2)
    assert [outcome["match_id"] for outcome in told["outcomes"]] == [f"m-{at}" for at in range(5)]
    assert [at for at, outcome in enumerate(told["outcomes"]) if outcome.get("problem")] == [1, 3]
    assert [match["match_id"] for match in admin.get(MATCHES).json()["items"]] == ["m-4", "m-2", "m-0"]


def test_matches_that_take_long_to_rate_do_not_share_a_transaction(service, admin, ladder, monkeypatch):
    """Otherwise other ladders of the same file would wait for all of them."""
    monkeypatch.setattr("evenmatch.recording.recorder.PAIRS", 12)
    begun = []
    real = service.database.write_ladder
    monkeypatch.setattr(service.database, "write_ladder", lambda *given: begun.append(1) or real(*given))
    service.view("duel")
    begun.clear()
    batch = {"matches": [free_for_all(size, f"m-{at}") for at, size in enumerate([4, 4, 3, 6, 2])]}
    told = admin.post(f"{MATCHES}/batch", json=batch).json()
    assert [outcome["match_id"] for outcome in told["outcomes"] if outcome.get("receipt")] == [
        f"m-{at}" for at in range(5)
    ]
    assert len(begun) >= 4  # 4 and 4, 3, 6, 2
    assert service.verify("duel").is_equal


def test_an_import_refuses_too_large_matches_before_anything_is_added(service, ladder):
    service.change_settings("duel", {"team_limit": 3})
    names = [[f"p{at}" for at in range(size)] for size in (2, 4)]
    matches = from_matches([match_of_names(f"m-{at}", players) for at, players in enumerate(names)])
    with pytest.raises(BadRowsError, match="4 teams with 4 players; expected at most 3 teams"):
        service.import_matches("duel", matches)
    assert service.ladder("duel").matches == 0
    imported = service.import_matches("duel", matches, skip_bad=True)
    assert (imported.added, [problem.match_id for problem in imported.left_out]) == (1, ["m-1"])


def match_of_names(match_id, names):
    teams = tuple(Team.of(name, place=at + 1) for at, name in enumerate(names))
    return Match(match_id, datetime(2025, 11, 21), teams, ladder="duel")


def test_odds_and_announcements_keep_to_the_limits_too(admin, ladder):
    admin.patch("/v1/ladders/duel", json={"team_limit": 3, "player_limit": 4})
    teams = [{"players": [f"p{at}"]} for at in range(4)]
    check_refused(admin.post("/v1/ladders/duel/odds", json={"teams": teams}), "the line-up has 4 teams", "at most 3")
    check_refused(admin.put("/v1/ladders/duel/live/m-9", json={"teams": teams}), "'m-9' has 4 teams", "at most 3")
    assert admin.post("/v1/ladders/duel/odds", json={"teams": teams[:3]}).status_code == 200
    assert admin.put("/v1/ladders/duel/live/m-9", json={"teams": teams[:3]}).status_code == 200


@pytest.mark.parametrize("result", ["place", "score"])
def test_a_match_of_thousands_of_teams_is_recorded_and_read_beside_other_requests(asking, admin, ladder, result):
    """Each of these took minutes of the event loop while results were found team by team."""
    admin.patch("/v1/ladders/duel", json={"team_limit": CROWD, "player_limit": CROWD})
    assert admin.post(MATCHES, json=free_for_all(3, "m-0")).status_code == 200  # the kernels are loaded
    body = json.dumps(free_for_all(CROWD, result=result))
    with LoopLag(asking.loop) as lag:
        receipt = admin.post(MATCHES, content=body)
        again = admin.post(f"{MATCHES}?way=endpoint", content=body)
        read = admin.get(f"{MATCHES}/m-1")
        listed = admin.get(MATCHES)
        own = admin.get("/v1/ladders/duel/players/p1/matches")
    assert [told.status_code for told in (receipt, again, read, listed, own)] == [200] * 5
    assert lag.worst < BUSY
    assert again.content == receipt.content
    check_results(receipt.json()["teams"], [at % 97 + 1 for at in range(CROWD)], best=min if result == "place" else max)


def check_results(teams, numbers, best):
    """The result of every team is the share of its rivals that it is ahead of, a draw counting half."""
    own = np.array(numbers)
    sign = 1 if best is min else -1
    for at in (0, 1, 96, 97, CROWD - 1):
        ahead, level = (sign * own > sign * own[at]).sum(), (own == own[at]).sum() - 1
        assert teams[at][0]["result"] == pytest.approx((ahead + level / 2) / (CROWD - 1), abs=1e-6)


def test_a_page_of_matches_ends_before_it_has_very_many_players(admin, ladder, monkeypatch):
    monkeypatch.setattr(matches_rows, "PLAYERS", 10)
    for at, size in enumerate([3, 4, 12, 5, 5, 2]):
        assert admin.post(MATCHES, json=free_for_all(size, f"m-{at}")).status_code == 200
    pages, address = [], f"{MATCHES}?limit=50"
    while address:
        page = admin.get(address).json()
        pages.append([match["match_id"] for match in page["items"]])
        address = page["next"] and f"{MATCHES}?limit=50&cursor={page['next']}"
    assert pages == [["m-5", "m-4"], ["m-3"], ["m-2"], ["m-1", "m-0"]]
    assert len(admin.get("/v1/ladders/duel/players/p1/matches").json()["items"]) == 2


def test_a_batch_of_too_many_players_is_refused_before_its_matches_are_made(admin, ladder, monkeypatch):
    """A name twice in each match, which only `Match` explains."""
    batch = {"matches": [wide(1010, f"m-{at}") for at in range(100)]}
    for match in batch["matches"]:
        match["teams"][0]["players"] = [{"player": "p1"}]
    monkeypatch.setattr(report_recording, "match_of", None)
    told = admin.post(f"{MATCHES}/batch", json=batch)
    check_refused(told, "101,000 players", "100,000")


def test_the_large_bodies_of_one_ladder_let_those_of_others_pass(asking, admin, ladder, site):
    ended = []

    async def convert():
        for_duel = [site.convert("duel", lambda: (time.sleep(0.05), ended.append("duel"))) for _ in range(5)]
        await asyncio.gather(*for_duel, site.convert("other", ended.append, "other"))

    asyncio.run_coroutine_threadsafe(convert(), asking.loop).result(10)
    assert ended.index("other") <= 1


LARGE = QUOTED + 1
FAULTY = {
    "a million numbers for matches": b'{"matches": [' + b"1," * 1_000_000 + b"1]}",
    "a million members": b'{"matches": [{' + b",".join(b'"a%d":1' % at for at in range(500_000)) + b"}]}",
    "a million players that are none": b'{"matches": [{"id": "m", "teams": [{"players": ['
    + b"1," * 900_000
    + b"1]}]}]}",
    "no JSON": b"[" * 2_000_000,
    "cut": json.dumps({"matches": [free_for_all(3, f"m-{at}") for at in range(9_000)]}).encode()[:-2],
}


@pytest.mark.parametrize("body", FAULTY.values(), ids=FAULTY)
def test_a_large_body_with_very_many_faults_is_refused_by_the_first(asking, admin, ladder, body):
    with LoopLag(asking.loop) as lag:
        told = admin.post(f"{MATCHES}/batch", content=body)
    assert told.status_code in (400, 422)
    assert len(told.json().get("problems") or [1]) == 1
    assert len(told.content) < 1000
    assert lag.worst < BUSY


def test_a_large_body_with_a_time_that_is_none_is_explained(admin, ladder):
    batch = {"matches": [free_for_all(3, f"m-{at}") for at in range(900)]}
    batch["matches"][700]["played_at"] = "yesterday"
    body = json.dumps(batch)
    assert len(body) > LARGE
    told = admin.post(f"{MATCHES}/batch", content=body)
    assert (told.status_code, told.json()["problems"][0]["where"]) == (422, "matches.700.played_at")
