"""Reads whose endpoint is called without routing: answered as when they are routed."""

import re

import pytest

from asgi_client import Asking, check_alike
from evenmatch import rules
from evenmatch.errors import RateLimitError, UnknownNameError
from evenmatch.http import hot_routes
from evenmatch.http.app import application
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.match import Match, Team
from evenmatch.queues.ticket_status import StatusRead
from ledger.sample_matches import after

DUEL = "/v1/ladders/duel"
ANN, JOERG, KIM = "ann", "Jörg & <b> 100%", "kim/sue"


@pytest.fixture
def ladder(service):
    service.create_ladder("duel", "trueskill", rules("trueskill"))
    service.create_ladder("other", "elo", rules("elo"))
    for number, (one, two) in enumerate([(ANN, JOERG), (ANN, KIM), (KIM, ANN)]):
        service.record(Match(f"m{number}", after(number), (Team.of(one, place=1), Team.of(two, place=2)), "duel"))
    service.view("duel")  # or reads may show older standings for some seconds
    return "duel"


@pytest.fixture
def ticket(site, ladder, admin):
    site.queue_service.set_queue(ladder, "main", {"team_size": 2})
    told = admin.post(f"{DUEL}/tickets", json={"queues": ["main"], "members": [{"player": ANN}]})
    assert told.status_code == 201, told.text
    return told.json()["ticket"]


@pytest.fixture
def either(asking, monkeypatch):
    """Reads an address twice, at first as it is; both answers, and whether the first one was not routed.

    The second has a parameter that no endpoint knows, so that it is routed.
    """
    called = []

    def noting(endpoint):
        return lambda *arguments, **named: called.append(arguments) or endpoint(*arguments, **named)

    monkeypatch.setattr(hot_routes, "get_player", noting(hot_routes.get_player))
    monkeypatch.setattr(hot_routes, "ticket", noting(hot_routes.ticket))

    def read(path, headers):
        asking.get(f"{DUEL}/players/{ANN}", headers=headers)  # a key that is seen first is looked up by the endpoint
        called.clear()
        first = asking.get(path, headers=headers)
        is_fast = bool(called)
        second = asking.get(f"{path}{'&' if '?' in path else '?'}by=route", headers=headers)
        assert len(called) == is_fast, "this was to be routed"
        return first, second, is_fast

    return read


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{DUEL}/players/ann", 200),
        (f"{DUEL}/players/J%C3%B6rg%20%26%20%3Cb%3E%20100%25", 200),
        (f"{DUEL}/players/kim%2Fsue", 200),
        (f"{DUEL}/players/nobody", 404),
        (f"{DUEL}/players/%00", 404),
        (f"{DUEL}/players/%FF", 404),
        ("/v1/ladders/nowhere/players/ann", 404),
        ("/v1/ladders/%FF/players/ann", 404),
        ("/v1/ladders/other/players/ann", 404),
    ],
)
@pytest.mark.parametrize("scope", ["read", "admin"])
def test_a_player_is_told_alike(either, keys, path, status, scope):
    first, second, is_fast = either(path, keys[scope])
    assert first.status_code == status
    assert is_fast == ("%00" not in path and "%FF" not in path)
    check_alike(first, second)
    if status == 200:
        assert (first.json()["names"] is not None) == (scope == "admin")


@pytest.mark.parametrize(
    "query", ["", "?after=0&wait=20", "?after=0&wait=0", "?after=999999&wait=0.05", "?wait=0.0", "?wait=5.123456789012"]
)
def test_a_ticket_is_told_alike(either, keys, ticket, query):
    first, second, is_fast = either(f"{DUEL}/tickets/{ticket}{query}", keys["queue"])
    assert first.status_code == 200
    assert first.json()["players"] == [ANN]
    assert is_fast
    check_alike(first, second)


@pytest.mark.usefixtures("ticket")
@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("12345", 404, True),
        ("123456789012345678", 404, True),
        ("9999999999999999999", 422, False),
        ("0", 422, False),
        ("-1", 422, False),
        ("ann", 422, False),
        ("1%30", 422, False),
        ("1?after=1&wait=61", 422, False),
        ("1?after=x&wait=1", 422, False),
        ("1?after=1&wait=nan", 422, False),
        ("1?wait=0&after=1", 404, False),
        ("1?after=1", 404, False),
    ],
)
def test_a_ticket_that_is_none_is_told_alike(either, keys, path, status, expected):
    first, second, is_fast = either(f"{DUEL}/tickets/{path}", keys["queue"])
    assert (first.status_code, is_fast) == (status, expected)
    check_alike(first, second)


def test_who_may_not_read_is_told_alike(either, site, keys, ticket):
    caller = site.keys.authenticate(site.keys.create("game", ["queue", "read"], None, None)[1])
    tokens = {who: {"Authorization": f"Bearer {site.tokens.issue(caller, who).text}"} for who in (ANN, KIM)}
    elsewhere = {"Authorization": f"Bearer {site.keys.create('of other', ['admin'], ['other'], None)[1]}"}
    for headers, player, own_ticket in (
        (tokens[ANN], 200, 200),
        (tokens[KIM], 403, 403),
        (elsewhere, 403, 403),
        (keys["report"], 200, 403),
        ({"Authorization": "Bearer em_no"}, 401, 401),
        ({"Authorization": "Basic abc"}, 401, 401),
        ({}, 401, 401),
    ):
        for path, status in ((f"players/{ANN}", player), (f"tickets/{ticket}", own_ticket)):
            first, second, _ = either(f"{DUEL}/{path}", headers)
            assert first.status_code == status, (headers, path, first.text)
            check_alike(first, second)


def test_what_the_reader_has_is_not_sent_again(either, keys, ticket):
    for path, headers in ((f"players/{ANN}", keys["read"]), (f"tickets/{ticket}", keys["queue"])):
        etag = either(f"{DUEL}/{path}", headers)[0].headers["etag"]
        first, second, is_fast = either(f"{DUEL}/{path}", headers | {"If-None-Match": etag})
        assert (first.status_code, first.content, is_fast) == (304, b"", True)
        check_alike(first, second)


def test_each_read_is_counted_once_under_its_route(asking, keys, ticket, site, monkeypatch):
    limit, took = site.key_limit, []
    take = limit.take
    monkeypatch.setattr(limit, "take", lambda key: took.append(key) or take(key))
    for path, headers in ((f"players/{ANN}", keys["admin"]), (f"tickets/{ticket}", keys["admin"])):
        for query in ("", "?by=route"):
            asking.get(f"{DUEL}/{path}{query}", headers=headers)  # it is looked up
            took.clear()
            asking.get(f"{DUEL}/{path}{query}", headers=headers)
            assert len(took) == 1
    told = asking.get("/metrics", headers=keys["admin"]).text
    counts = re.findall(r'evenmatch_requests_total\{method="GET",route="([^"]*)",status="200"\} (\S+)', told)
    routes = ("/v1/ladders/{ladder}/players/{player}", "/v1/ladders/{ladder}/tickets/{ticket}")
    assert dict(counts) == dict.fromkeys(routes, "4.0")


@pytest.mark.usefixtures("ladder")
def test_the_body_of_a_read_is_ignored(keys, asking):
    told = asking.request("GET", f"{DUEL}/players/{ANN}", headers=keys["read"], content=b"{}")
    assert (told.status_code, told.json()["player"]) == (200, ANN)


def test_readers_of_one_ticket_at_the_same_moment_get_what_each_needs(site, ladder, ticket, monkeypatch):
    asked = []
    statuses = site.queue_service.statuses
    monkeypatch.setattr(
        site.queue_service, "statuses", lambda *arguments: asked.append(arguments[1:]) or statuses(*arguments)
    )
    told = site._statuses(ladder, [StatusRead(ticket, ticket), StatusRead(ticket), StatusRead(7_000, 3)])
    assert asked == [([ticket, 7_000], {ticket: -1, 7_000: 3})]
    assert [one.ticket for one in told[:2]] == [ticket, ticket]
    assert isinstance(told[2], UnknownNameError)


def test_a_failure_is_told_to_pages_of_other_sites_too(site, keys, ladder, monkeypatch):
    """The answer to a bug has the headers without which a browser shows it to no script."""
    site.options = site.options.model_copy(update={"cors_origins": ("https://game.example",)})
    asking = Asking(application(site), headers=keys["read"] | {"Origin": "https://game.example"})
    try:
        asking.get(f"{DUEL}/players/{ANN}")
        monkeypatch.setattr(LadderQueries, "profile", lambda *_: {}["bug"])
        for query in ("", "?by=route"):
            told = asking.get(f"{DUEL}/players/{ANN}{query}")
            assert told.status_code == 500
            assert told.headers["access-control-allow-origin"] == "https://game.example"
    finally:
        asking.close()


def test_too_many_reads_are_told_alike(either, keys, ladder, site, monkeypatch):
    def refuse(_):
        raise RateLimitError("slower", 3)

    headers = keys["read"]
    either(f"{DUEL}/players/{ANN}", headers)
    monkeypatch.setattr(site.key_limit, "take", refuse)
    first, second, is_fast = either(f"{DUEL}/players/{ANN}", headers)
    assert (first.status_code, is_fast) == (429, False)
    check_alike(first, second)
