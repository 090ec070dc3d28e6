"""An offer that must be answered within seconds: by keys, by touch, and with a screen reader."""

import re

import pytest

from browser.sample_ladders import ANYBODY, BRAWL
from browser.test_live_updates import mark, stayed, wait_for
from evenmatch.web.page_request import address
from server_process import request_json

pytestmark = pytest.mark.slow

WITHIN = 12  # seconds to answer
QUEUE = f"/v1/ladders/{BRAWL}/queues/brief"
FOCUSED = "() => document.activeElement.textContent"
LISTEN = """() => {
    window.said = []
    const words = document.querySelector("#ticket-words")
    const say = () => { if (window.said.at(-1) !== words.textContent) window.said.push(words.textContent) }
    new MutationObserver(say).observe(words, {characterData: true, childList: true, subtree: true})
}"""  # what a screen reader would say


@pytest.fixture(scope="module", autouse=True)
def _queue(served, known):
    with served.client(known.keys["admin"]) as client:
        policy = {**ANYBODY, "team_size": 1, "maps": ["Dust", "Ice"]}
        rules = {"accept_within": WITHIN, "tick": 0.2, "penalty": 0, "heartbeat": None}
        request_json(client, "PUT", QUEUE, {"policy": policy, "rules": rules})
        yield
        assert client.delete(QUEUE, params={"force": "true"}).is_success


def wait_in_queue(page, name):
    page.goto(address("ladders", BRAWL, "queue"))
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Find a match").click()
    page.wait_for_url("**/tickets/*")
    mark(page)


def test_enter_accepts_and_the_focus_goes_where_the_eye_goes(visitor):
    page, rival = (visitor().page() for _ in range(2))
    wait_in_queue(page, "By keys")
    assert page.evaluate(FOCUSED) == "Finding a match…"
    page.evaluate(LISTEN)
    wait_in_queue(rival, "By mouse")
    wait_for(lambda: page.evaluate(FOCUSED) == "Accept", lambda: page.evaluate(FOCUSED))
    assert stayed(page)
    assert re.fullmatch(rf"Match found. You have {WITHIN} seconds to accept.", page.evaluate("window.said.at(-1)"))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="1 of 2 have accepted").wait_for()
    assert page.evaluate(FOCUSED) == "1 of 2 have accepted"
    assert page.locator("#ticket-words").inner_text() == "You accepted. Waiting for the others."
    rival.get_by_role("button", name="Accept").click()
    page.get_by_role("heading", name="You are playing").wait_for()
    assert page.evaluate(FOCUSED) == "You are playing"


def test_the_remaining_seconds_are_announced_three_times(visitor):
    page, rival = (visitor().page() for _ in range(2))
    wait_in_queue(page, "Slow one")
    page.evaluate(LISTEN)
    wait_in_queue(rival, "Slow two")
    page.get_by_role("heading", name="You are no longer in the queue").wait_for()
    assert page.evaluate("window.said") == [
        *(f"Match found. You have {left} seconds to accept." for left in (WITHIN, 10, 5)),
        "You are no longer in the queue.",
    ]
    assert page.evaluate(FOCUSED) == "You are no longer in the queue"


def test_a_heading_takes_no_focus_from_elsewhere_on_the_page_but_an_offer_does(visitor):
    page, rival = (visitor().page() for _ in range(2))
    wait_in_queue(page, "Elsewhere")
    page.get_by_role("link", name="Rules").focus()
    wait_in_queue(rival, "Nearby")
    wait_for(lambda: page.evaluate(FOCUSED) == "Accept", lambda: page.evaluate(FOCUSED))
    page.get_by_role("link", name="Rules").focus()
    rival.get_by_role("button", name="Decline").click()
    page.get_by_role("heading", name="Finding a match…").wait_for()
    assert page.evaluate(FOCUSED) == "Rules"
    page.get_by_role("button", name="Leave the queue").click()
    page.get_by_role("heading", name="You are no longer in the queue").wait_for()


def test_accept_takes_two_tabs_from_the_top_of_the_page(visitor):
    page, rival = (visitor().page() for _ in range(2))
    wait_in_queue(page, "By tabs")
    wait_in_queue(rival, "By chance")
    page.get_by_role("button", name="Accept").wait_for()
    page.get_by_role("link", name="Skip to content").focus()  # the first stop of every page
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Accept"
    rival.get_by_role("button", name="Decline").click()
    page.get_by_role("button", name="Leave the queue").click()
    page.get_by_role("heading", name="You are no longer in the queue").wait_for()


@pytest.mark.parametrize("width", [360, 1280])
def test_accept_is_large_enough_for_a_thumb_and_on_the_first_screen(visitor, width):
    page, rival = visitor(width=width, height=700).page(), visitor().page()
    wait_in_queue(page, f"Thumb {width}")
    wait_in_queue(rival, f"Other {width}")
    accept, decline = (page.get_by_role("button", name=name) for name in ("Accept", "Decline"))
    accept.wait_for()
    box, other = accept.bounding_box(), decline.bounding_box()
    assert box["height"] >= 64
    assert other["height"] >= 44
    assert box["width"] >= 200
    assert 600 < box["y"] + box["height"] < 700  # at the thumb's reach
    for name in (f"Thumb {width}", f"Other {width}"):  # all players stand above it
        line = page.locator("#ticket li", has_text=name).bounding_box()
        assert line["y"] + line["height"] < box["y"]
    apart = max(other["x"] - (box["x"] + box["width"]), other["y"] - (box["y"] + box["height"]))
    assert apart >= 8
    decline.click()
    page.get_by_role("heading", name="You are no longer in the queue").wait_for()
    rival.get_by_role("button", name="Leave the queue").click()
