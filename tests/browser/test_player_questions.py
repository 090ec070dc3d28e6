"""A stranger before a ladder: where am I, why did I lose points, how long will I wait; by mouse and by keys."""

import pytest

from browser.sample_ladders import DUELS
from evenmatch.web.page_request import address

pytestmark = pytest.mark.slow

ME = "Duellist 03"
QUESTIONS = ("Where am I?", "Why did I lose points?", "How long will I wait?")


@pytest.fixture(scope="module")
def ladder_address():
    return address("ladders", DUELS)


def ask_question(page, question):
    """One click, once one has said who one is."""
    page.get_by_label("Your name in the game").fill(ME)
    page.get_by_role("button", name=question).click()


def test_where_am_i(page, ladder_address):
    page.goto(ladder_address)
    ask_question(page, QUESTIONS[0])
    mine = page.locator("tr.mine")
    mine.wait_for()
    assert ME in mine.inner_text()
    above_and_below = page.locator("#standings tbody tr:not(.band)").count()
    assert above_and_below > 3


def test_how_long_will_i_wait(page, ladder_address):
    page.goto(ladder_address)
    ask_question(page, QUESTIONS[2])
    page.get_by_role("heading", name="Play ").wait_for()


def test_a_returning_player_is_known_and_needs_only_one_click(visitor, ladder_address):
    page = visitor().page()
    page.goto(ladder_address)
    ask_question(page, QUESTIONS[0])
    page.locator("tr.mine").wait_for()
    page.goto(ladder_address)
    page.get_by_role("button", name=QUESTIONS[2]).click()
    page.get_by_role("heading", name="Play ").wait_for()


def press_until(page, key, found, most=80):
    """Press a key until what has the focus is what is looked for; each time it must be seen where the focus is."""
    for _ in range(most):
        page.keyboard.press(key)
        focus = page.evaluate(
            """() => {
                const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect()
                const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
                return {text: one.innerText ?? '', id: one.id, tag: one.tagName, ring, width: box.width}
            }"""
        )
        if focus["tag"] != "BODY":
            assert focus["ring"], f"nobody sees that the focus is at {focus}"
            assert focus["width"] > 0, focus
        if found(focus):
            return
    raise AssertionError("no way there by keys")


def test_with_keys_alone_from_the_front_page_to_why_did_i_lose_points(page, known):
    page.goto("/")
    press_until(page, "Tab", lambda focus: "Duels" in focus["text"] and focus["tag"] == "A")
    page.keyboard.press("Enter")
    page.get_by_role("button", name=QUESTIONS[1]).wait_for()
    press_until(page, "Tab", lambda focus: focus["id"] == "player")
    page.keyboard.type(ME)
    press_until(page, "Tab", lambda focus: QUESTIONS[1] in focus["text"])
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="You lost to").wait_for()
    press_until(page, "Tab", lambda focus: focus["tag"] == "SUMMARY")
    page.keyboard.press("Enter")


def test_the_way_past_the_head_of_a_page_is_the_first_stop(page, ladder_address):
    page.goto(ladder_address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")
