"""Pages that are open while things happen: rows move without a reload, sliders redraw."""

import time
from datetime import UTC, datetime

import pytest

from browser.world import DUELS
from evenmatch.web.visit import address
from served import ask

ON = f"/v1/ladders/{DUELS}"


@pytest.fixture
def game(served, known):
    """The game's server, which reports matches."""
    with served.client(known.keys["report"]) as client:
        yield client


def report(game, number, winner, loser):
    match = {
        "id": f"live-{number}",
        "played_at": datetime.now(UTC).isoformat(),
        "teams": [{"score": score, "players": [{"player": name}]} for score, name in ((11, winner), (0, loser))],
    }
    return ask(game, "POST", f"{ON}/matches", match)


def row(page, name):
    return page.locator("#standings tr", has=page.get_by_role("link", name=name, exact=True))


def cells(page, name):
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
    before = cells(page, "Duellist 07")
    for number in range(3):
        receipt = report(game, number, "Duellist 07", "Duellist 01")
    (line,) = (one for team in receipt["teams"] for one in team if one["player"] == "Duellist 07")
    after = wait_for(lambda: (now := cells(page, "Duellist 07"))[-1] == str(int(before[-1]) + 3) and now, before)
    assert stayed(page)
    assert float(after[1].replace(",", "")) == pytest.approx(line["after"], abs=0.5)
    assert float(after[1].replace(",", "")) > float(before[1].replace(",", ""))
    assert "rose" in (row(page, "Duellist 07").get_attribute("class") or "")
