"""Walks through lists that change meanwhile: each is of one moment, or the page says that the list moved on."""

import threading
import time
from dataclasses import replace

import pytest

from asgi_client import Asking
from evenmatch.http import cached_standings
from evenmatch.http.app import application
from evenmatch.http.cached_standings import KeptViews
from evenmatch.http.server import site_over
from evenmatch.operations.service import Service
from ledger.sample_matches import duel

pytestmark = pytest.mark.slow

STANDINGS = "/v1/ladders/duel/standings"
PLAYERS = [f"p{number:02}" for number in range(12)]


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def ladder(service, admin):
    """Twelve players of different ratings, p00 first."""
    settings = {"placement": 0, "active_days": 36_500}
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo", "settings": settings})
    for number, winner in enumerate(PLAYERS[:6]):
        for times in range(6 - number):
            record(service, f"{number} {times}", winner, PLAYERS[11 - number])
    return admin


def record(service, match_id, winner, loser):
    service.record(replace(duel(1, winner, loser, "duel"), id=match_id))
    service.view("duel")  # the one that is shown next


def turn(service, round_of):
    """Let the last players overtake the first ones."""
    for number in range(3):
        for times in range(9):
            record(service, f"turn {round_of} {number} {times}", PLAYERS[11 - number], PLAYERS[number])


def page(asking, cursor=None, address=STANDINGS, **query):
    answer = asking.get(address, params={"limit": 5, **query, **({"cursor": cursor} if cursor else {})})
    assert answer.status_code == 200, answer.text
    return answer.json()


def rest(asking, first, **query):
    """The players of all pages from the first on, and whether a page said that the standings moved on."""
    players, moved, last = [row["player"] for row in first["items"]], first["moved"], first
    while last["next"] is not None:
        last = page(asking, last["next"], **query)
        players += [row["player"] for row in last["items"]]
        moved = moved or last["moved"]
    return players, moved


def test_a_walk_goes_through_the_standings_of_one_moment(ladder, service):
    before, _ = rest(ladder, page(ladder))
    first = page(ladder)
    turn(service, 1)
    assert rest(ladder, first) == (before, False)
    after, _ = rest(ladder, page(ladder))
    assert sorted(after) == sorted(before) == PLAYERS
    assert after != before


def test_after_a_minute_the_page_says_that_the_standings_moved_on(ladder, service, site):
    now = [0.0]
    site.views.kept = KeptViews(lambda: now[0])
    first = page(ladder)
    now[0] = 61.0
    assert not page(ladder, first["next"])["moved"]  # nothing changed
    second = page(ladder)
    turn(service, 1)
    now[0] += 59.0
    assert not page(ladder, second["next"])["moved"]
    now[0] += 61.0
    service.view("duel")  # else the page is remembered as it was
    following = page(ladder, second["next"])
    assert following["moved"]
    assert not page(ladder, following["next"])["moved"]  # of the moment of the page before


@pytest.mark.parametrize("change", ["ban", "settings", "merge"])
def test_a_walk_does_not_go_on_over_a_correction(ladder, change):
    first = page(ladder)
    if change == "ban":
        assert ladder.post("/v1/ladders/duel/bans", json={"player": "p11"}).status_code == 200
    elif change == "merge":
        assert ladder.post("/v1/players/p11/merge", json={"into": "p01"}).status_code == 200
    else:
        assert ladder.patch("/v1/ladders/duel", json={"placement": 1}).status_code == 200
    assert page(ladder, first["next"])["moved"]


def test_a_walk_that_began_in_another_process_goes_on_unless_it_says_otherwise(ladder, service, site, clock):
    with Service.open(str(site.service.database.url), clock) as other:
        second_site = site_over(other, site.options)
        asking = Asking(application(second_site), headers=ladder._headers)
        try:
            first = page(ladder)
            assert rest(asking, first) == (PLAYERS, False)
            turn(service, 1)
            first = page(ladder)
            turn(service, 2)
            other.view("duel")
            assert page(asking, first["next"])["moved"]
        finally:
            asking.close()
            second_site.jobs.stop(10)
            second_site.threads.shutdown(wait=True)


def test_a_cursor_shows_nothing_that_the_ladder_hides(ladder, asking, keys):
    ladder.patch("/v1/ladders/duel", json={"show": "division"})
    first = page(ladder)
    assert first["items"][0]["rating"] is not None
    answer = asking.get(STANDINGS, params={"limit": 5, "cursor": first["next"]}, headers=keys["read"]).json()
    assert answer["moved"]
    assert {row["rating"] for row in answer["items"]} <= {None}


def test_walks_beside_reports_meet_everybody_once_or_say_so(ladder, service):
    stop, walks = threading.Event(), []

    def report():
        number = 0
        while not stop.is_set():
            number += 1
            winner, loser = PLAYERS[(number * 7) % 12], PLAYERS[(number * 5 + 1) % 12]
            if winner != loser:
                record(service, f"beside {number}", winner, loser)

    thread = threading.Thread(target=report)
    thread.start()
    try:
        end = time.monotonic() + 30
        while len(walks) < 25 and time.monotonic() < end:
            walks.append(rest(ladder, page(ladder, limit=2), limit=2))
    finally:
        stop.set()
        thread.join()
    assert len(walks) == 25
    assert not any(moved for _, moved in walks)
    assert all(sorted(players) == PLAYERS for players, _ in walks)
    assert len({tuple(players) for players, _ in walks}) > 1  # the standings did change


def test_a_season_that_ends_during_a_walk_is_told(ladder):
    first = page(ladder, season=1)
    assert ladder.post("/v1/ladders/duel/seasons", json={}).status_code == 200
    following = page(ladder, first["next"], season=1)
    assert following["moved"]
    assert rest(ladder, following, season=1)[0] == PLAYERS  # from the beginning


def test_a_change_of_what_is_shown_during_a_walk_through_a_past_season_is_told(ladder, asking, keys):
    assert ladder.post("/v1/ladders/duel/seasons", json={}).status_code == 200
    first = asking.get(STANDINGS, params={"limit": 5, "season": 1}, headers=keys["read"]).json()
    query = {"limit": 5, "season": 1, "cursor": first["next"]}
    assert not asking.get(STANDINGS, params=query, headers=keys["read"]).json()["moved"]
    ladder.patch("/v1/ladders/duel", json={"show": "division"})
    assert asking.get(STANDINGS, params=query, headers=keys["read"]).json()["moved"]


def test_views_are_kept_within_a_bound(ladder, service, monkeypatch):
    monkeypatch.setattr(cached_standings, "ROWS", 40)  # three views of twelve players
    firsts = []
    for number in range(5):
        record(service, f"bound {number}", PLAYERS[number], PLAYERS[11])
        firsts.append(page(ladder))
    assert [page(ladder, first["next"])["moved"] for first in firsts] == [True, True, False, False, False]


def rows(answer, key):
    return [row[key] for row in answer["items"]]


LISTS = {  # the address, what tells its items apart, and what adds one while it is read
    "matches": ("/v1/ladders/duel/matches", "match_id"),
    "matches of a player": ("/v1/ladders/duel/players/p00/matches", "match_id"),
    "corrections": ("/v1/ladders/duel/corrections", "position"),
    "audit": ("/v1/audit", "entry"),
    "keys": ("/v1/keys", "key"),
    "webhooks": ("/v1/webhooks", "webhook"),
    "jobs": ("/v1/jobs", "job"),
    "ladders": ("/v1/ladders", "name"),
}


def add(admin, service, kind, number):
    """Add an item to a list."""
    if "match" in kind:
        record(service, f"added {number}", "p00", "p11")
    elif kind in ("corrections", "audit"):
        answer = admin.post("/v1/ladders/duel/bans", json={"player": f"p0{number}"})
        assert answer.status_code == 200, answer.text
    elif kind == "keys":
        assert admin.post("/v1/keys", json={"name": f"{number}", "scopes": ["read"]}).status_code == 201
    elif kind == "webhooks":
        hook = {"url": f"https://93.184.216.34/{number}", "events": ["match.rated"], "ladder": "duel"}
        assert admin.post("/v1/webhooks", json=hook).status_code == 201
    elif kind == "jobs":
        job = admin.post("/v1/ladders/duel/verify").json()["job"]
        admin.get(f"/v1/jobs/{job}", params={"wait": 30})
    else:
        assert admin.post("/v1/ladders", json={"name": f"a{number}", "system": "elo"}).status_code == 201


@pytest.mark.parametrize("kind", LISTS)
def test_other_lists_meet_what_was_there_once(ladder, service, kind):
    address, key = LISTS[kind]
    for number in range(4):
        add(ladder, service, kind, number)
    whole = rows(page(ladder, address=address, limit=100), key)
    assert len(whole) >= 4
    met, last = [], page(ladder, address=address, limit=1)
    for number in range(4, 7):
        met += rows(last, key)
        add(ladder, service, kind, number)
        last = page(ladder, last["next"], address=address, limit=1)
    met += rows(last, key)
    while last["next"] is not None:
        last = page(ladder, last["next"], address=address, limit=1)
        met += rows(last, key)
    assert len(met) == len(set(met))
    assert set(whole) <= set(met)
