"""The result moment of a match, a player's card and badge as pictures, and the table for another site."""

import re
import struct
import xml.etree.ElementTree as ET

import pytest

from evenmatch import rules
from evenmatch.ladders.settings import Settings
from evenmatch.match import Match, Team
from ledger.sample_matches import after, duel, team_match
from web_client import words

SVG = "{http://www.w3.org/2000/svg}"


def test_a_victory_shows_the_way_of_the_rating_and_the_streak(anyone, league):
    page = words(anyone.page(f"/ladders/{league}/matches/m2/results/ann"))  # the second win of ann (1516) over joe
    assert "Victory" in page
    assert "1,516 before" in page
    assert "Streak 2 wins in a row" in page
    assert "They beat" not in page
    assert "You beat" in page
    assert "A loss would have cost you" in page


def test_a_defeat_and_a_draw_have_their_words(anyone, league, service):
    assert "Defeat" in words(anyone.page(f"/ladders/{league}/matches/m2/results/joe"))
    service.record(team_match(70, (1, "ann"), (1, "joe"), ladder=league))
    page = words(anyone.page(f"/ladders/{league}/matches/m70/results/ann"))
    assert "Draw" in page
    assert "Streak 1 draw" in page


def test_a_free_for_all_shows_the_place(anyone, league, service):
    teams = tuple(Team.of(name, place=place) for name, place in (("ann", 3), ("bob", 1), ("joe", 2), ("new", 4)))
    service.record(Match("four", after(70), teams, league))
    assert "3rd of 4" in words(anyone.page(f"/ladders/{league}/matches/four/results/ann"))


def test_a_match_that_is_not_rated_says_why_and_has_no_streak(anyone, league, service):
    service.record(duel(70, "ann", "bob", ladder=league), rated=False)
    page = words(anyone.page(f"/ladders/{league}/matches/m70/results/ann"))
    assert "Not rated It was sent as an unrated match" in page
    assert "Streak" not in page


def test_a_player_who_was_not_in_the_match_has_no_result(anyone, league):
    anyone.page(f"/ladders/{league}/matches/m2/results/bob", 404)
    anyone.page(f"/ladders/{league}/matches/nothing/results/ann", 404)


def test_the_result_is_json_too(anyone, league):
    found = anyone.get(f"/v1/ladders/{league}/matches/m2/results/ann").json()
    assert (found["outcome"], found["place"], found["teams"]) == ("victory", 1, 2)
    assert found["standing_before"]["rating"] == pytest.approx(1516.0)
    assert found["change"] == pytest.approx(found["standing_after"]["rating"] - 1516.0, abs=0.005)
    assert found["streak"] == {"word": "won", "length": 2}
    assert found["headline"].startswith("You beat")


@pytest.mark.parametrize("show", ["percentile", "division"])
def test_a_result_hides_what_the_ladder_hides(anyone, league, service, show):
    service.change_settings(league, {"show": show})
    found = anyone.get(f"/v1/ladders/{league}/matches/m2/results/ann").json()
    assert (found["change"], found["expected"], found["headline"], found["otherwise"]) == (None,) * 4
    assert {found[f"standing_{when}"]["rating"] for when in ("before", "after")} == {None}
    if show == "division":
        assert {found[f"standing_{when}"]["percentile"] for when in ("before", "after")} == {None}
        assert {found[f"standing_{when}"]["way"] for when in ("before", "after")} == {None}
    page = words(anyone.page(f"/ladders/{league}/matches/m2/results/ann"))
    assert "1,516" not in page
    assert "Victory" in page


def texts_of(svg):
    return [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


def test_a_card_is_a_picture_of_the_standing(anyone, league):
    answer = anyone.get(f"/ladders/{league}/players/ann/card.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    told = texts_of(answer.text)
    assert told[:2] == ["The league", "ann"]
    assert any("#1 of 4" in text for text in told)
    assert any(text.startswith("3 wins · 1 loss · best ") for text in told)


@pytest.mark.parametrize(("kind", "size"), [("card", (1200, 630)), ("badge", (320, 64))])
def test_pictures_come_as_png_of_their_size(anyone, league, kind, size):
    answer = anyone.get(f"/ladders/{league}/players/ann/{kind}.png")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", answer.content[16:24]) == size


def test_an_unknown_kind_of_picture_or_player_is_refused(anyone, league):
    assert "png, svg" in words(anyone.page(f"/ladders/{league}/players/ann/card.gif", 404))
    anyone.page(f"/ladders/{league}/players/zoe/card.png", 404)


def test_a_card_of_a_hostile_name_is_well_formed(anyone, service):
    name = "<script>\u202e&\"'"
    service.create_ladder("odd", "elo", rules("elo"), Settings(title="A < B & C"))
    service.record(duel(1, name, "bob", ladder="odd"))
    service.view("odd")
    svg = anyone.get("/ladders/odd/players/%3Cscript%3E%E2%80%AE%26%22%27/card.svg").text
    assert "<script" not in svg
    assert texts_of(svg)[0] == "A < B & C"


def test_the_embedded_table_may_be_framed_and_other_pages_may_not(anyone, league):
    embedded = anyone.get(f"/ladders/{league}/embedded")
    assert "frame-ancestors *" in embedded.headers["content-security-policy"]
    assert "script-src" not in embedded.headers["content-security-policy"]
    assert "ann" in words(embedded.text)
    assert "frame-ancestors 'none'" in anyone.get(f"/ladders/{league}").headers["content-security-policy"]


def test_the_page_of_a_player_names_its_card_for_social_networks(anyone, league):
    page = anyone.page(f"/ladders/{league}/players/ann")
    image = re.search(r'<meta property="og:image" content="(https?://[^/]+)([^"]*)">', page)
    assert image[2] == f"/ladders/{league}/players/ann/card.png"
