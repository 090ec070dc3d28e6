"""Pages that are open while things happen: rows move without a reload, sliders redraw."""

import time
from datetime import UTC, datetime

import pytest

from browser.page_checks import settled
from browser.sample_ladders import DUELS
from evenmatch.web.page_request import address
from server_process import request_json

DRAWN = "(all) => all.map((one) => one.dataset.drawn === 'true' && one.data ? JSON.stringify(one.data) : null)"
ON = f"/v1/ladders/{DUELS}"


@pytest.fixture
def game(served, known):
    """The game's server, which reports matches."""
    with served.client(known.keys["report"]) as client:
        yield client


def report_duel(game, number, winner, loser):
    match = {
        "id": f"live-{number}",
        "played_at": datetime.now(UTC).isoformat(),
        "teams": [{"score": score, "players": [{"player": name}]} for score, name in ((11, winner), (0, loser))],
    }
    return request_json(game, "POST", f"{ON}/matches", match)


def row(page, name):
    return page.locator("#standings tr", has=page.get_by_role("link", name=name, exact=True))


def row_cells(page, name):
    return row(page, name).locator("td").all_inner_texts()


def mark(page):
    """Leave something on the page that no reload leaves."""
    page.evaluate("() => { window.stayed = true }")


def stayed(page):
    return page.evaluate("() => window.stayed === true")


def wait_for(condition, told=lambda: None):
    deadline = time.monotonic() + 10
    while not (found := condition()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.1)
    return found


def test_the_standings_move_while_matches_arrive(page, game, served, known):
    page.goto(address("ladders", DUELS, "standings"))
    page.wait_for_function("() => document.documentElement.dataset.stream === 'open'")
    mark(page)
    before = row_cells(page, "Duellist 07")
    for number in range(3):
        receipt = report_duel(game, number, "Duellist 07", "Duellist 01")
    (line,) = (one for team in receipt["teams"] for one in team if one["player"] == "Duellist 07")
    after = wait_for(lambda: (now := row_cells(page, "Duellist 07"))[-3] == str(int(before[-3]) + 3) and now, before)
    assert stayed(page)
    assert float(after[1].replace(",", "")) == pytest.approx(line["after"], abs=0.5)
    assert float(after[1].replace(",", "")) > float(before[1].replace(",", ""))
    assert "rose" in (row(page, "Duellist 07").get_attribute("class") or "")


def test_a_slider_of_the_simulator_redraws_its_figures(page):
    page.goto(address("ladders", DUELS, "lab", "queue"))
    settled(page)
    mark(page)
    figures = page.locator("#outcome .figure")
    before, words = figures.evaluate_all(DRAWN), page.locator("#verdict + *").inner_text()
    assert len(before) == 2
    slider = page.locator("form[data-redraw] input[name=w0]")
    slider.focus()
    slider.press("Home")
    shown = page.locator(f"output[for={slider.get_attribute('id')}]").inner_text()
    assert shown.startswith(slider.get_attribute("min"))
    wait_for(lambda: len(now := figures.evaluate_all(DRAWN)) == 2 and all(now) and now[0] != before[0])
    assert page.locator("#outcome[aria-busy]").count() == 0
    assert page.locator("#verdict + *").inner_text() != words
    assert stayed(page)
    assert f"{slider.get_attribute('name')}={slider.get_attribute('min')}" in page.url  # it can be sent to others


def find_a_match(page, name):
    """Queue up as a guest."""
    page.goto(address("ladders", DUELS, "queue"))
    page.get_by_label("Your name").fill(name)
    for box in page.locator("input[name=queue]").all():
        box.set_checked(box.get_attribute("value") == "quick")
    page.get_by_role("button", name="Find a match").click()
    page.wait_for_url("**/tickets/*")


def test_two_guests_queue_up_are_matched_play_and_see_why_their_ratings_moved(visitor, game):
    onlooker, one, other = (visitor().page() for _ in range(3))
    onlooker.goto(address("ladders", DUELS, "queue"))
    onlooker.wait_for_function("() => document.documentElement.dataset.stream === 'open'")
    onlooker.get_by_text("Waits, players waiting and the latest matches").click()
    mark(onlooker)
    names = ("Guest one", "<b>Guest</b> two")
    for page, name in zip((one, other), names, strict=True):
        find_a_match(page, name)
    for page in (one, other):
        page.get_by_role("button", name="Accept").click()
    for page in (one, other):
        page.get_by_role("heading", name="You are playing").wait_for()
        assert names[1] in page.locator("#ticket").inner_text()
    onlooker.locator("#offers td", has_text="accepted").first.wait_for()
    assert stayed(onlooker)
    live = next(one for one in request_json(game, "GET", f"{ON}/live")["items"] if names[0] in str(one))
    match = {
        "id": live["match_id"],
        "played_at": datetime.now(UTC).isoformat(),
        "teams": [{"score": 11 - 9 * at, "players": [{"player": name}]} for at, name in enumerate(names)],
    }
    request_json(game, "POST", f"{ON}/matches", match)
    other.get_by_role("heading", name="Defeat").wait_for()
    other.get_by_role("link", name="See match").click()
    other.get_by_role("heading", name="You lost to Guest one 2–11").wait_for()
    mine = other.locator("li.mine")
    assert "<b>Guest</b>" in mine.inner_text()
    assert mine.locator(".end .down").count() == 1
