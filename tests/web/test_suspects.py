"""The operators' list of suspicious accounts, over a simulated season in which two accounts trade wins."""

import re
import threading
import time
from datetime import UTC, datetime
from html import unescape
from itertools import combinations
from urllib.parse import quote

import pytest

from evenmatch import Match, Team, from_matches, rules
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.lab import behaviours
from evenmatch.lab.seasons.season import simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.operations.service import Service
from evenmatch.web.app import pages
from web_client import HOSTILE, Browsing, words

PARTNER = "O'Brien & <i>sons</i>"
LADDER = "/ladders/traded/operate"
PAGE = f"{LADDER}/suspects"


def traded_season():
    """A season of duels in which HOSTILE and PARTNER let each other win, and all others are honest."""
    settings = SeasonSettings(game="duel", players=120, matches=1200, seed=2, culprits=2 / 120)
    record = simulate_season(settings, rules("elo"), [behaviours.find("win_trader")(1.0)])
    names = [f"player {account:03}" for account in range(len(record.crew))]
    for account, name in zip((record.crew >= 0).nonzero()[0].tolist(), (HOSTILE, PARTNER), strict=True):
        names[account] = name
    c = record.history.columns
    return [
        Match(f"m{index}", datetime.fromtimestamp(at / 1e6, UTC), teams)
        for index, (at, *teams) in enumerate(
            zip(
                c.time.tolist(),
                (Team.of(names[who], place=place) for who, place in zip(c.player[::2], c.place[::2], strict=True)),
                (Team.of(names[who], place=place) for who, place in zip(c.player[1::2], c.place[1::2], strict=True)),
                strict=True,
            )
        )
    ]


def round_robin():
    """Nine players who each meet every other once; who is named first wins two of three."""
    pairs = list(combinations([f"r{number}" for number in range(9)], 2))
    for number, pair in enumerate(pairs):
        winner, loser = pair if number % 3 else pair[::-1]
        teams = (Team.of(winner, place=1), Team.of(loser, place=2))
        yield Match(f"r{number}", datetime(2026, 3, 1 + number % 28, number // 28, tzinfo=UTC), teams)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    options = Options(matchmaker=False, open_reads=True, rate=10**5, burst=10**5, open_rate=10**4, open_burst=10**4)
    with Service.open(str(tmp_path_factory.mktemp("suspects") / "evenmatch.db")) as service:
        for ladder, matches in (("traded", traded_season()), ("fair", list(round_robin())), ("empty", [])):
            service.create_ladder(ladder, "elo", rules("elo"))
            if matches:
                service.import_matches(ladder, from_matches(matches))
            service.view(ladder)
        made = site_over(service, options)
        yield made
        made.jobs.stop(10)
        made.close()


def logged_in(site, text):
    browsing = Browsing(application(site, pages=pages))
    assert browsing.post("/login", data={"key": text}).status_code == 303
    return browsing


@pytest.fixture(scope="module")
def operator(site):
    yield (browsing := logged_in(site, site.keys.create("operator", ["admin"])[1]))
    browsing.close()


def searched(browsing, ladder, within=120.0):
    """The page with the result of a search that was started on the operators' page of the ladder."""
    on = f"/ladders/{ladder}/operate"
    answer = browsing.submit(f"{on}/suspects", on=on)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{on}/suspects")
    until = time.monotonic() + within
    while "data-every" in (shown := browsing.page(f"{on}/suspects")):
        assert time.monotonic() < until
        time.sleep(0.1)
    return shown


@pytest.fixture(scope="module")
def found(operator):
    """The page with the suspects of the season."""
    return searched(operator, "traded")


def rows(shown):
    """The cells of each suspect."""
    listed = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', shown, re.DOTALL)
    return [[account, *re.findall(r"<td[^>]*>(.*?)</td>", cells, re.DOTALL)] for account, cells in listed]


def test_the_two_win_traders_are_listed_with_their_evidence(found):
    listed = {words(account): cells for account, *cells in rows(found) if words(cells[0]).startswith("win trader")}
    assert set(listed) == {
        words(f"<bdi>{name}</bdi>")
        for name in ('&lt;b&gt;"x"&lt;/b&gt;&amp;�', "O'Brien &amp; &lt;i&gt;sons&lt;/i&gt;")
    }
    assert {words(account) for account, *_ in rows(found)} == set(listed)
    for kind, evidence, rarity in (map(words, cells) for cells in listed.values()):
        assert kind == "win trader meets the same opponent, and they let each other win"
        assert re.fullmatch(
            r"Met .* \d+ times in \d+ matches: the winner changed \d+ times, and \d+ defeats were crushing\.", evidence
        )
        assert re.fullmatch(r"at most 1 in ([89]\d0|1,[0-2]00) honest accounts", rarity)


def test_the_list_is_no_verdict_and_says_how_the_rate_was_measured(found):
    told = words(found)
    assert "accounts to look into. The list is never a verdict" in told
    assert "Seasons were simulated in which everybody plays honestly." in told
    assert re.search(
        r"at most one of 500 honest accounts is listed. This ladder has 1\d\d accounts with 8 or more matches", told
    )
    assert "fewer than one would be listed by mistake" in told


def test_names_are_harmless_and_lead_to_the_players(found, operator):
    assert "<b>x" not in found
    assert "<i>" not in found
    assert "\u202e" not in found
    addresses = {unescape(re.search(r'href="([^"]+)"', account)[1]) for account, *_ in rows(found)}
    assert addresses == {f"/ladders/traded/players/{quote(name, safe='')}" for name in (HOSTILE, PARTNER)}
    for address in addresses:
        operator.page(address)


def test_the_operators_page_leads_to_the_latest_search_and_the_trail_names_it(found, operator):
    assert f'href="{PAGE}">The latest search</a>' in operator.page(LADDER)
    assert "suspects.listed" in words(operator.page("/operate/audit"))


def test_the_list_is_in_the_result_of_the_job(found, operator, site):
    job = site.jobs.latest("traded", "suspects").job
    told = operator.get(f"/v1/jobs/{job}", headers={"Authorization": f"Bearer {site.keys.create('api', ['admin'])[1]}"})
    listed = told.json()["result"]["suspects"]
    assert {one["player"] for one in listed if one["kind"] == "win trader"} == {HOSTILE, PARTNER}
    assert all(0 < one["false_alarms"] <= 1 / 500 for one in listed)


@pytest.mark.parametrize("scopes", [["read"], ["ratings", "report", "queue"], None])
def test_only_operators_see_the_list_or_start_a_search(found, site, scopes):
    """None: somebody without a key, as reads are open to all."""
    job = site.jobs.latest("traded", "suspects").job
    who = Browsing(application(site, pages=pages))
    key = "" if scopes is None else site.keys.create("other", scopes)[1]
    if key:
        who = logged_in(site, key)
    assert who.get(PAGE).status_code == (303 if scopes is None else 403)
    assert who.post(PAGE, data={"proof": ""}).status_code == 403
    assert who.get("/ladders/traded/lab/results", params={"job": job}).status_code == 404
    assert job not in who.page("/ladders/traded/lab/results")
    asked = who.get(f"/v1/jobs/{job}", headers={"Authorization": f"Bearer {key}"} if key else {})
    assert asked.status_code in (401, 403)
    assert site.jobs.latest("traded", "suspects").job == job
    who.close()


def test_a_player_and_the_operator_of_another_ladder_do_not_see_the_list(found, site):
    player = Browsing(application(site, pages=pages))
    player.log_in_as(site, PARTNER)
    for who in (player, logged_in(site, site.keys.create("fair", ["admin"], ["fair"])[1])):
        assert who.get(PAGE).status_code == 403
        assert who.post(PAGE, data={"proof": ""}).status_code == 403
        who.close()


def test_a_ladder_where_nobody_stands_out_says_so(operator):
    shown = words(searched(operator, "fair"))
    assert "Accounts to look into No account stands out." in shown
    assert "This ladder has 9 accounts with 8 or more matches" in shown


def test_an_empty_ladder_has_nothing_to_search(operator):
    at = "/ladders/empty/operate/suspects"
    shown = operator.page(at)
    assert "Nobody has looked for suspicious accounts on this ladder yet. The ladder has no rated match yet." in words(
        shown
    )
    assert "<button>Look" not in shown
    assert "Ladder 'empty' has no rated match; at least one is needed" in words(searched(operator, "empty"))


def test_a_search_waits_is_not_started_twice_and_can_be_cancelled(operator, site):
    at, free = "/ladders/fair/operate", threading.Event()
    site.jobs.begin("backtest", "fair", lambda _: {"done": free.wait(60)}, sort="lab")
    try:
        operator.submit(f"{at}/suspects", on=at)
        shown = operator.page(f"{at}/suspects")
        assert "Waiting for its turn …" in words(shown)
        assert 'id="result" data-every="1"' in shown
        assert "Search in progress" in operator.page(at)
        operator.submit(f"{at}/suspects", on=at)
        assert "The search is already running." in words(operator.page(f"{at}/suspects"))
        job = site.jobs.latest("fair", "suspects").job
        operator.submit(f"{at}/jobs/cancel", on=f"{at}/suspects", job=job)
    finally:
        free.set()
    assert "Cancelled; nothing was changed" in words(operator.page(f"{at}/suspects"))
    assert "<button>Look again</button>" in operator.page(f"{at}/suspects")


def test_an_erased_player_is_neither_on_the_list_nor_in_the_evidence(found, operator, site):
    site.service.erase(PARTNER)
    shown = words(operator.page(PAGE))
    assert "win trader" in shown
    assert "O'Brien" not in shown
    assert "<i>" not in shown
