"""Operators in a browser: in and out with a key, a void that moves the standings, a queue, and a file of matches."""

from urllib.parse import urlsplit

import pytest

from browser.conftest import log_in
from browser.sample_ladders import ARENA, BRAWL, DUELS
from browser.test_live_updates import wait_for
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
    page.get_by_label("Key", exact=True).fill(known.keys["admin"])
    page.get_by_role("button", name="Log in with a key").click()
    page.get_by_role("heading", name="Correct history").wait_for()  # where one was about to go


def test_a_void_moves_the_standings_and_can_be_taken_back(operator):
    before = ratings(operator, DUELS)
    operator.goto(address("ladders", DUELS, "matches", "duel-240"))
    operator.get_by_role("link", name="Void this match").click()
    operator.get_by_label("Reason").fill("<b>a test</b>")
    operator.get_by_role("button", name="Show who would move").click()
    rows = operator.locator("#preview tbody tr").all()
    foreseen = {row.get_by_role("link").get_attribute("href"): row.locator("td").all_inner_texts() for row in rows}
    operator.get_by_role("button", name="Void the match now").click()
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
    operator.get_by_role("button", name="Reinstate the match now").click()
    assert ratings(operator, DUELS) == before


def test_a_queue_is_made_from_a_preset_changed_after_a_look_and_deleted(operator):
    operator.goto(address("ladders", BRAWL, "operate"))
    operator.get_by_role("link", name="Create a queue").or_(operator.get_by_role("link", name="Change queues")).click()
    operator.get_by_label("Name").fill("evening")
    operator.get_by_role("button", name="Choose its settings").click()
    operator.get_by_label("Begin with").select_option("quick")
    operator.get_by_text("Waiting or even matches").click()
    odds = operator.get_by_label("Highest chance of winning", exact=True)
    wait_for(lambda: odds.input_value() == "0.7")  # of the preset
    operator.get_by_label("Players in a team", exact=True).fill("2")
    operator.get_by_role("button", name="Show what changes").click()
    operator.get_by_role("button", name="Create the queue").click()
    assert "Queue evening was created." in operator.get_by_role("status").first.inner_text()
    operator.get_by_role("link", name="evening", exact=True).click()
    operator.get_by_text("Offers", exact=True).click()
    operator.get_by_label("Time to accept, s", exact=True).fill("45")
    operator.get_by_role("button", name="Show what changes").click()
    (row,) = operator.locator("#preview tbody tr").all()
    assert row.inner_text().split("\t") == ["Time to accept, s", "20", "45"]
    operator.get_by_role("button", name="Apply to the queue").click()
    operator.get_by_role("link", name="Delete evening").click()
    operator.get_by_label("Type the name of the queue").fill("evening")
    operator.get_by_role("button", name="Delete this queue").click()
    assert operator.get_by_role("link", name="evening", exact=True).count() == 0


def test_a_file_is_checked_in_the_browser_and_its_problems_are_listed(operator, tmp_path):
    path = tmp_path / "season.csv"
    path.write_text("match_id,played_at,team,player,place\nn1,soon,a,ann,1\nn1,soon,b,bob,2\n")
    operator.goto(address("ladders", DUELS, "operate", "files"))
    operator.get_by_label("File").set_input_files(path)
    operator.get_by_role("button", name="Check the file").click()
    operator.get_by_role("heading", name="season.csv").wait_for()
    assert "line 2" in operator.locator("#preview tbody").inner_text()
    with operator.expect_download() as download:
        operator.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "matches.csv"
    assert download.value.path().read_text().startswith("match_id,")
