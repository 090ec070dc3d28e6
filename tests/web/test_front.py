"""The front page with own cards and friends, the search over all ladders, and numbers as the visitor writes them."""

import re
from urllib.parse import quote

import pytest

from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from evenmatch.web.page_request import address, number, use_separators
from ledger.sample_matches import duel
from web_client import words

ECHO = "Quân Echo"


@pytest.fixture
def two(service):
    """Two ladders by Elo: Quân Echo has 1516 on `duels` after a win five days ago, and 1484 on `arena` after a loss."""
    rule = StandingsRules(placement=1, active_days=1000, divisions=(Division("Low", 1), Division("High", 51)))
    for ladder, title in (("duels", "Duels"), ("arena", "Arena")):
        service.create_ladder(ladder, "elo", rules("elo"), Settings(title=title, standings=rule))
    service.record(duel(120, ECHO, "bob", ladder="duels"))
    service.record(duel(120, "eve", ECHO, ladder="arena"))
    for ladder in ("duels", "arena"):
        service.view(ladder)


def sections(page):
    """What each list item of a page says."""
    return [words(item) for item in re.findall(r"(?s)<li>(?!<a)(.*?)</li>", page)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_visitor_chooses_light_or_dark_and_follows_the_system_again(anyone, theme):
    assert "data-theme" not in anyone.page("/")
    answer = anyone.submit("/theme", on="/", theme=theme)
    assert answer.headers["location"] == "/"
    page = anyone.page("/")
    assert f'<html lang="en" dir="ltr" data-theme="{theme}"' in page
    assert f'<meta name="color-scheme" content="{theme}">' in page
    anyone.submit("/theme", on="/", theme="")
    assert "data-theme" not in anyone.page("/")


def test_one_search_finds_a_player_on_all_ladders_whatever_the_case_and_without_diacritics(anyone, two):
    page = anyone.page("/search?q=quan+echo")
    found = [item for item in sections(page) if "Quân" in item]
    assert len(found) == 1
    assert "Duels 1,516" in found[0]
    assert "Arena 1,484" in found[0]


def test_the_search_finds_ladders_by_their_title(anyone, two):
    assert 'href="/ladders/duels"' in anyone.page("/search?q=DUEL")
    assert 'href="/ladders/arena"' not in anyone.page("/search?q=DUEL")


def test_a_search_that_finds_nobody_says_so(anyone, two):
    assert "No player called “ nobodyx ”." in words(anyone.page("/search?q=nobodyx"))
    for nothing in ("/search", "/search?q=", "/search?q=+"):
        assert "Type the name of a player" in words(anyone.page(nothing))


def test_who_says_who_they_are_without_diacritics_is_known_by_their_name(anyone, two):
    answer = anyone.get("/ladders/duels/me?want=standing&player=quan+echo")
    assert answer.headers["location"] == address("ladders", "duels", "standings", around=ECHO)
    assert "Hi, Quân Echo" in words(anyone.page("/"))


def test_the_front_page_opens_with_the_cards_of_the_visitor(anyone, two):
    assert 'class="hero' not in anyone.page("/")
    assert anyone.submit("/me", on="/search?q=quan", player=ECHO).headers["location"] == "/"
    cards = [words(card) for card in re.findall(r'(?s)<article class="hero.*?</article>', anyone.page("/"))]
    assert ["Duels" in card for card in cards] == [False, True]
    arena, duels = cards
    assert "High 1,516 #1 of 2" in duels
    assert "The highest division" in duels
    assert "7 days +16.0" in duels
    assert re.search(r"\bW\b", duels)
    assert "Low 1,484 #2 of 2 32.00 to High" in arena  # eve has 1516, the lowest rating of the division High
    assert re.search(r"\bL\b", arena)
    anyone.submit("/me/forget", on="/")
    assert 'class="hero' not in anyone.page("/")


def test_friends_are_kept_in_the_browser_and_shown_on_the_front_page(anyone, two):
    anyone.submit("/me", on="/search?q=quan", player=ECHO)
    added = anyone.submit("/friends", on="/", player="BOB")
    assert added.headers["location"] == "/"
    assert "bob Duels 1,484 Remove" in sections(anyone.page("/"))
    anyone.submit("/friends", on="/", player="bob", do="remove")
    assert "bob Duels 1,484 Remove" not in sections(anyone.page("/"))


def test_a_friend_who_is_not_found_is_searched_for(anyone, two):
    assert anyone.submit("/friends", on="/", player="zoe").headers["location"] == "/search?q=zoe"


def test_the_list_of_friends_leads_to_no_other_site(anyone, two):
    answer = anyone.submit("/friends", on="/", player="bob", to="//example.com/")
    assert answer.headers["location"] == "/"


def test_the_ladders_of_a_player_are_on_one_page(anyone, two):
    page = anyone.page(f"/players/{quote(ECHO)}")
    assert page.count('<article class="hero') == 2
    assert "No player called zoe" in words(anyone.page("/players/zoe", 404))


def test_numbers_are_written_with_the_separators_of_the_visitor(anyone, two):
    anyone.cookies({"evenmatch-numbers": quote(".,")})
    assert "1.516" in words(anyone.page("/search?q=quan"))
    for unusable in ("", "<b>", "..", "12", "ab"):
        anyone.cookies({"evenmatch-numbers": quote(unusable)})
        assert "1,516" in words(anyone.page("/search?q=quan")), unusable


def test_no_separator_is_used_twice_in_a_number():
    use_separators("\u202f,")
    try:
        assert number(1234567.5, 1) == "1\u202f234\u202f567,5"
        assert number(-0.25) == "−0,25"
    finally:
        use_separators("")


def test_the_standings_link_to_pages_spread_over_all_ranks(anyone, service):
    service.create_ladder("long", "elo", rules("elo"), Settings(standings=StandingsRules(placement=1)))
    service.record_many("long", [duel(at, f"a{at}", f"b{at}", ladder="long") for at in range(1, 61)])
    service.view("long")
    page = anyone.page("/ladders/long/standings?page=2")
    jumps = re.findall(r'<a class="tag" href="([^"]+)"([^>]*)>([^<]+)<', page)
    at = "/ladders/long/standings?page="
    assert jumps == [(f"{at}1", "", "1–50"), (f"{at}2", ' aria-current="page"', "51–100"), (f"{at}3", "", "101–120")]
