"""Designers in a browser: what is begun in the lab is watched until it is done, and what was found is shown."""

import pytest

from browser.axe import violations
from browser.page_checks import check_harmless, overflow, settled
from browser.sample_ladders import DUELS
from evenmatch.web.page_request import address

LONGEST = 90_000  # milliseconds: systems may have to be compiled first


@pytest.fixture
def check_found(operator):
    """Wait until a job is done, with the page open, and look at what it found as at every page."""

    def check():
        operator.locator("#result:not([data-every])").wait_for(timeout=LONGEST)
        settled(operator)
        check_harmless(operator)
        assert violations(operator) == []
        operator.emulate_media(color_scheme="dark")
        assert violations(operator, "color-contrast") == []
        for width in (360, 1920):
            operator.set_viewport_size({"width": width, "height": 800})
            assert overflow(operator) == []

    return check


def test_a_backtest_is_watched_until_the_systems_are_ranked(operator, check_found):
    operator.goto(address("ladders", DUELS, "lab", "backtest"))
    for box in operator.locator("input[name=system]").all():
        box.set_checked(box.get_attribute("value") in ("elo", "battlepoints"))
    operator.get_by_role("button", name="Start the backtest").click()
    check_found()
    ranking = operator.get_by_role("region", name="Ranking of the systems")
    assert {"elo", "battlepoints"} <= set(ranking.locator("tbody th").all_inner_texts())
    assert operator.locator(".figure .main-svg").count() >= 2


def test_the_standings_under_other_rules_are_shown(operator, check_found):
    operator.goto(address("ladders", DUELS, "lab", "what-if"))
    operator.get_by_label("Rating system").select_option("elo")
    operator.get_by_role("button", name="Compare the standings").click()
    check_found()
    assert operator.get_by_role("heading", name="battlepoints now, elo then").count() == 1
    assert operator.locator("#result tbody tr").count() > 5
    operator.get_by_label("Look up a player").fill("duellist 03")
    operator.get_by_role("button", name="Look up").click()
    assert "Duellist 03" in operator.get_by_role("region", name="The player you looked up").inner_text()
