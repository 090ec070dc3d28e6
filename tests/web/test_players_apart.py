"""A page shows its visitor no more than the API gives to the same caller, also to a player with a token."""

import pytest

from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.web.app import pages
from web_client import Browsing, words

ON, API = "/ladders/league", "/v1/ladders/league"
TWINS = [  # a page, and the address of the API that has the same
    ("/players/{player}", "/players/{player}"),
    ("/players/{player}", "/players/{player}/matches"),
    ("/players/{player}", "/players/{player}/path"),
    ("/me?want=why&player={player}", "/matches?player={player}"),
    ("/me?want=standing&player={player}", "/standings/around/{player}"),
    ("/standings", "/standings"),
    ("/standings?around={player}", "/standings/around/{player}"),
    ("/seasons", "/seasons"),
    ("/seasons/1", "/standings?season=1"),
    ("/rules", "/rules"),
    ("/matches", "/matches"),
    ("/matches?player={player}", "/matches?player={player}"),
    ("/matches/m1", "/matches/m1"),
    ("/queue", "/queues"),
    ("/lab/audit?queue=main", "/queues/main/audit"),
    ("/queue/tickets/{ticket}", "/tickets/{ticket}"),
]
OF_A_PLAYER = [twin for twin in TWINS if "/players/" in twin[1] or "/matches?" in twin[1]]


@pytest.fixture(params=[True, False], ids=["open", "closed"])
def is_open(request):
    return request.param


@pytest.fixture
def site(service, is_open):
    fast = {"open_rate": 1e5, "open_burst": 100_000, "player_rate": 1e5, "player_burst": 100_000}
    made = site_over(service, Options(matchmaker=False, open_reads=is_open, **fast))
    made.kernels.matchmaker_loaded.set()
    yield made
    made.close()


@pytest.fixture
def bobs_ticket(site, league, anyone):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    backend = {"Authorization": f"Bearer {site.keys.create('backend', ['queue'])[1]}"}
    party = {"members": [{"player": "bob"}], "queues": ["main"]}
    return anyone.post(f"{API}/tickets", json=party, headers=backend).json()["ticket"]


@pytest.fixture
def visitors(site, league):
    """By name: a visitor who is logged in, and the headers with which the same caller asks the API."""
    backend = site.keys.authenticate(site.keys.create("backend", ["queue"])[1])
    texts = {
        "ann": site.tokens.issue(backend, "ann").text,
        "reader": site.keys.create("reader", ["read"])[1],
        "analyst": site.keys.create("analyst", ["ratings"])[1],
    }
    made = {"nobody": (Browsing(application(site, pages=pages)), {})}
    for name, text in texts.items():
        browsing = Browsing(application(site, pages=pages))
        if name == "ann":
            browsing.log_in_as(site, "ann")
        else:
            assert browsing.post("/login", data={"key": text}).status_code == 303
        made[name] = browsing, {"Authorization": f"Bearer {text}"}
    yield made
    for browsing, _ in made.values():
        browsing.close()


def is_shown(response):
    return response.status_code == 200 or (
        response.status_code == 303 and not response.headers["location"].startswith("/login")
    )


@pytest.mark.parametrize("show", ["rating", "division"])
def test_no_page_shows_a_caller_more_than_the_api(site, league, visitors, bobs_ticket, show):
    site.service.change_settings(league, {"show": show})
    compared = set()
    for name, (visitor, headers) in visitors.items():
        for player in ("ann", "bob"):
            for page, twin in TWINS:
                values = {"player": player, "ticket": bobs_ticket}
                on_page = is_shown(visitor.get(ON + page.format(**values)))
                by_api = visitor.get(API + twin.format(**values), headers=headers)
                assert by_api.status_code in (200, 401, 403), by_api.text
                assert by_api.status_code == 200 or not on_page, (name, page, player)
                compared.add((on_page, by_api.status_code == 200))
    assert compared >= {(True, True), (False, False)}


def test_a_players_token_shows_one_player_alone_unless_reads_are_open(visitors, is_open):
    visitor, headers = visitors["ann"]
    for page, twin in OF_A_PLAYER:
        own, other = [
            (
                is_shown(visitor.get(ON + page.format(player=player))),
                visitor.get(API + twin.format(player=player), headers=headers).status_code,
            )
            for player in ("ann", "bob")
        ]
        assert own == (True, 200), page
        assert other == ((True, 200) if is_open else (False, 403)), page


def test_names_lead_to_the_pages_that_a_player_may_see(visitors, is_open):
    for name in ("ann", "analyst"):
        page = visitors[name][0].page(f"{ON}/standings")
        assert "bob" in words(page)
        assert [f'href="{ON}/players/{player}"' in page for player in ("ann", "bob")] == [
            True,
            is_open or name == "analyst",
        ]
