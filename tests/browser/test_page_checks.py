"""The tests' own eyes: what a visitor should never meet is noticed."""

import pytest

from browser.axe import violations
from browser.page_checks import Watched, cut_off, empty_cards, overflow, rows_of_tables


@pytest.fixture
def watched(browser, served):
    made = Watched(browser, served.address)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("console.error('no')", "console error: no"),
        ("setTimeout(() => { throw new Error('thrown') })", "thrown"),
        ("alert('hello')", "a dialog opened: hello"),
        ("fetch('http://localhost:9/x').catch(() => {})", "asked elsewhere: http://localhost:9/x"),
    ],
)
def test_trouble_on_a_page_is_noted(watched, script, trouble):
    page = watched.page()
    page.goto("/healthz")
    page.evaluate(f"() => {{ {script} }}")
    page.wait_for_timeout(100)
    assert any(trouble in one for one in watched.troubles), watched.troubles


def test_a_sound_page_has_no_trouble(watched):
    page = watched.page()
    page.goto("/healthz")
    page.evaluate("() => { console.log('all is well') }")
    assert watched.troubles == []
    assert overflow(page) == []


def test_a_page_that_is_too_wide_and_hard_to_read_is_noticed(watched):
    page = watched.page()
    page.goto("/healthz")
    page.set_content(
        "<html lang=en><title>t</title><main><h1>t</h1><p style='color:#999'>pale<div class=w style='width:1500px'>w"
        "</div><input></main>"
    )
    assert overflow(page) == ["300 px too wide", "div.w"] or overflow(page)[1:] == ["div.w"]
    rules = [one.split()[0] for one in violations(page)]
    assert {"color-contrast", "label"} <= set(rules)


def test_a_table_that_is_cut_off_and_an_empty_card_are_noticed(watched):
    page = watched.page()
    page.goto("/ladders/duels/rules")
    assert (cut_off(page), empty_cards(page)) == ([], [])
    page.evaluate(
        """() => document.querySelector("main").insertAdjacentHTML("beforeend",
            `<section class="card"><h2>Team 1: lost</h2> </section>
            <div class="scroll" aria-label="Wide"><table style="width: 9000px"><caption>Made</caption>
            <tbody><tr><td>1</td></tr></tbody></table></div>`)"""
    )
    assert empty_cards(page) == ["Team 1: lost"]
    (found,) = cut_off(page)
    assert found.startswith("Wide: 9000 in ")
    assert ("Made", 1) in rows_of_tables(page)
