"""Operators in a browser: in and out with a key, no form of strangers, a void that moves the standings."""

from urllib.parse import urlsplit

import pytest

from browser.conftest import log_in
from browser.sample_ladders import ARENA, DUELS
from evenmatch.web.page_request import address


def ratings(page, ladder):
    """Everybody's rating as the standings show it."""
    page.goto(address("ladders", ladder, "standings"))
    return page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('tr[data-key]')].map((one) => "
        "[one.dataset.key, Number(one.dataset.value)]))"
    )


def test_logging_in_shows_what_operators_do_and_logging_out_hides_it(visitor, known):
    page = visitor().page()
    log_in(page, known.keys["admin"])
    assert urlsplit(page.url).path == "/operate"
    page.goto(address("ladders", ARENA, "operate"))
    page.get_by_role("heading", name="Correct history").wait_for()
    page.get_by_label("Menu").click()
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Menu").click()
    page.get_by_role("link", name="Log in").wait_for()
    page.goto(address("ladders", ARENA, "operate"))
    page.get_by_role("heading", name="Log in").wait_for()
    page.get_by_label("Your key").fill(known.keys["admin"])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Correct history").wait_for()  # where one was about to go


def test_a_void_moves_the_standings_and_can_be_taken_back(operator):
    before = ratings(operator, DUELS)
    operator.goto(address("ladders", DUELS, "matches", "duel-240"))
    operator.get_by_role("link", name="Void this match").click()
    operator.get_by_label("Reason").fill("<b>a test</b>")
    operator.get_by_role("button", name="Show who would move").click()
    rows = operator.locator("#preview tbody tr").all()
    foreseen = {row.get_by_role("link").get_attribute("href"): row.locator("td").all_inner_texts() for row in rows}
    operator.get_by_role("button", name="Void a match now").click()
    assert "is void" in operator.get_by_role("status").inner_text()
    after = ratings(operator, DUELS)
    moved = {name for name in before if abs(before[name] - after[name]) >= 1}
    assert len(moved) >= 2
    for name in moved:
        was, will_be = (
            float(text.replace(",", "")) for text in foreseen[address("ladders", DUELS, "players", name)][:2]
        )
        assert (was, will_be) == pytest.approx((before[name], after[name]), abs=0.5)
    operator.goto(address("ladders", DUELS, "operate"))
    operator.get_by_role("link", name="count again").first.click()
    operator.get_by_role("button", name="Show who would move").click()
    operator.get_by_role("button", name="Reinstate a match now").click()
    assert ratings(operator, DUELS) == before
