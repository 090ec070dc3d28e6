"""Tables on a phone: nothing is cut off, no column is one word wide, and a match says who played."""

import re

import pytest

from browser.sample_ladders import ARENA, DUELS
from evenmatch.web.page_request import address

WIDE = 360


@pytest.fixture
def phone(visitor):
    return visitor(width=WIDE, height=740).page()


def is_cut_off(table):
    """Whether part of a table is beyond the edge of what scrolls it."""
    return table.evaluate("(one) => one.scrollWidth > one.clientWidth")


def test_the_matches_of_a_player_fit_and_say_why_when_they_are_opened(phone):
    phone.goto(address("ladders", DUELS, "players", "Duellist 01"))
    rows = phone.locator("#matches details.m")
    assert rows.count() >= 5
    for row in rows.all():
        assert not is_cut_off(row)
        assert row.bounding_box()["height"] < 200
    first = rows.first
    change, result = (
        first.locator("summary .end strong").bounding_box(),
        first.locator("summary strong").first.bounding_box(),
    )
    assert change["y"] == pytest.approx(result["y"], abs=16)
    assert change["x"] > result["x"] + result["width"]
    first.locator("summary").click()
    why = first.locator("div p").first
    assert "rating" in why.inner_text()
    assert why.bounding_box()["width"] > 0.7 * WIDE


@pytest.mark.parametrize("ladder", [ARENA, DUELS])
def test_lists_of_matches_fit_and_name_the_teams(phone, ladder):
    phone.goto(address("ladders", ladder, "matches"))
    line = phone.locator("#matches li").first
    assert re.search(r" (beat|drew with|won, ahead of) ", line.inner_text())
    assert line.get_by_role("link").bounding_box()["width"] > 0.5 * WIDE


def test_a_match_says_who_played(phone, known):
    phone.goto(address("ladders", DUELS, "matches", known.match[DUELS]))
    teams = phone.locator(".team")
    assert teams.count() == 2
    first, second = (team.bounding_box() for team in teams.all())
    assert second["y"] > first["y"] + first["height"]
    for team in teams.all():
        assert team.get_by_role("link").first.is_visible()
        assert not is_cut_off(team)


def test_the_page_to_play_fits_a_phone(phone):
    phone.goto(address("ladders", DUELS, "queue"))
    find = phone.get_by_role("button", name="Find a match").bounding_box()
    assert find["y"] + find["height"] <= 740  # in reach without scrolling
    phone.get_by_text("Waits, players waiting and the latest matches").click()
    assert not is_cut_off(phone.locator("#offers .scroll"))
    assert phone.evaluate("document.documentElement.scrollWidth") <= WIDE
