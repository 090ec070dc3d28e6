"""A visitor of the site: the head, the search, own cards, friends, and times and numbers as they write them."""

import re

import httpx
import pytest

from browser.axe import violations
from browser.page_checks import overflow, settled
from browser.sample_ladders import DUELS
from evenmatch.web.page_request import address

pytestmark = pytest.mark.slow

ME, FRIEND = "Duellist 03", "Duellist 04"


def test_from_the_search_in_the_head_to_ones_own_card_and_back_to_a_stranger(page):
    page.goto(address("ladders", DUELS))
    page.get_by_role("searchbox", name="Find a player or ladder").fill(ME.upper())
    page.keyboard.press("Enter")
    page.get_by_role("button", name=f"I am {ME}").click()
    page.get_by_role("heading", name=f"Hi, {ME}").wait_for()
    card = page.locator("article.hero").filter(has_text="Duels")
    card.get_by_role("link", name="Duels", exact=True).click()
    page.get_by_role("heading", name=ME, level=1).wait_for()
    page.get_by_label(f"Me: {ME}").click()
    page.get_by_role("button", name="Switch player").click()
    page.get_by_role("heading", name="Ladders", level=1).wait_for()
    assert page.locator("article.hero").count() == 0


def test_a_friend_is_added_and_removed_on_the_front_page(page):
    page.goto(address("search", q=ME))
    page.get_by_role("button", name=f"I am {ME}").click()
    page.get_by_label("Add a friend").fill(FRIEND.lower())
    page.get_by_role("button", name="Add", exact=True).click()
    friends = page.locator("#friends")
    friends.get_by_role("link", name=FRIEND).wait_for()
    page.get_by_role("button", name=f"Remove {FRIEND}").click()
    page.get_by_text(f"{FRIEND} is no longer in your list of friends.").wait_for()
    assert friends.get_by_role("link", name=FRIEND).count() == 0


def test_times_and_numbers_are_those_of_the_visitor(visitor, known):
    """A day is written 27.11.2026 in German, and Auckland is 13 or 12 hours ahead of UTC."""
    page = visitor(locale="de-DE", zone="Pacific/Auckland").page()
    page.goto(address("ladders", DUELS, "standings"))
    ago = page.locator("td time[data-ago]").first
    in_utc = page.evaluate("(time) => time.dateTime", ago.element_handle())
    day, hour = in_utc[:10], int(in_utc[11:13])
    shown = ago.get_attribute("title")
    found = re.fullmatch(r"(\d\d)\.(\d\d)\.(\d{4}), (\d\d):(\d\d)", shown)
    assert found is not None, shown
    assert int(found[4]) in ((hour + 12) % 24, (hour + 13) % 24), (day, shown)
    assert page.get_by_text("Zeiten in deiner Zeitzone").is_visible()
    page.reload()
    ratings = page.locator("#standings td.num").all_inner_texts()
    assert any(re.fullmatch(r"\d\.\d{3}", text) for text in ratings), ratings[:9]


def test_without_scripts_times_are_utc_and_say_so(visitor):
    page = visitor(javascript=False).page()
    page.goto(address("ladders", DUELS, "standings"))
    assert page.locator("td time[data-ago]").first.get_attribute("title").endswith("UTC")
    assert page.get_by_text("times are UTC").is_visible()
    assert not page.get_by_text("times are in your time zone").is_visible()


def test_the_menu_closes_with_escape_and_gives_the_focus_back(page):
    page.goto("/")
    page.get_by_label("Menu").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Log in").wait_for()
    page.keyboard.press("Escape")
    assert not page.get_by_role("link", name="Log in").is_visible()
    assert page.evaluate("document.activeElement.ariaLabel") == "Menu"


def test_on_a_phone_the_head_is_one_row_and_the_tab_of_the_page_is_in_view(visitor):
    page = visitor(width=390).page()
    page.goto(address("ladders", DUELS, "rules"))
    assert page.locator("header.top").bounding_box()["height"] <= 60
    tab = page.locator(".tabs [aria-current]").bounding_box()
    name = page.locator(".tabs b").bounding_box()
    assert name["x"] == 0
    assert name["x"] + name["width"] <= tab["x"]
    assert tab["x"] + tab["width"] <= 390


def test_a_player_logs_in_with_a_link_and_finds_their_account(visitor, served, known):
    headers = {"Authorization": f"Bearer {known.keys['admin']}"}
    link = httpx.post(f"{served.address}/v1/login-links", json={"player": ME}, headers=headers).json()["path"]
    page = visitor().page()
    page.goto(link)
    check_page(page)
    page.get_by_role("button", name=f"Log in as {ME}").click()
    page.get_by_label(f"Me: {ME}").click()
    page.get_by_role("link", name="My account").click()
    page.get_by_role("heading", name="My account", level=1).wait_for()
    check_page(page)


def check_page(page):
    """The page is accessible, and fits at every width."""
    settled(page)
    assert violations(page) == []
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert overflow(page) == []
