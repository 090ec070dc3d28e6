"""What a visitor has on a page stays over its refreshes: focus, scrolling, a pressed button, charts, the stream."""

import pytest

from browser.page_checks import points_of
from browser.sample_ladders import DUELS
from browser.test_live_updates import find_a_match, game, mark, report_duel, row_cells, stayed, wait_for
from evenmatch.web.page_request import address

pytestmark = pytest.mark.slow

__all__ = ["game"]
HELD = "() => document.activeElement.value ?? document.activeElement.getAttribute('aria-label')"
SHIFTS = """() => {
    window.shifted = 0
    new PerformanceObserver((list) => list.getEntries().forEach((one) => { window.shifted += one.value }))
        .observe({ type: 'layout-shift' })
}"""
LIVE = "() => document.documentElement.dataset.stream === 'open'"


@pytest.fixture
def shaky(visitor):
    """A tab of a visitor to whom some answers are refused, which the browser tells on its console."""
    watched = visitor()
    yield watched.page()
    watched.troubles[:] = [one for one in watched.troubles if "the server responded with a status of" not in one]


def is_refresh(response):
    return "x-evenmatch-part" in response.request.headers


def see_refreshes(page, count):
    """Wait until so many refreshes were put in: a refresh is asked for when the one before is done."""
    for _ in range(count + 1):
        with page.expect_response(is_refresh):
            pass


def test_focus_stays_on_the_second_button_of_an_offer(visitor):
    page, rival = (visitor().page() for _ in range(2))
    for one, name in ((page, "Staying one"), (rival, "Staying two")):
        find_a_match(one, name)
    decline = page.get_by_role("button", name="Decline")
    decline.focus()
    mark(page)
    page.evaluate("() => { window.left = 0; addEventListener('focusout', () => { window.left += 1 }, true) }")
    see_refreshes(page, 3)
    assert stayed(page)
    assert page.evaluate(HELD) == "decline"
    assert page.evaluate("window.left") == 0
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="You are no longer in the queue").wait_for()
    rival.get_by_role("button", name="Leave the queue").click()
    rival.get_by_role("heading", name="You are no longer in the queue").wait_for()


def test_a_button_that_is_held_down_over_a_refresh_is_pressed_when_let_go(page):
    find_a_match(page, "Slow hand")
    button = page.get_by_role("button", name="Leave the queue")
    see_refreshes(page, 1)
    box = button.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    came = []
    page.on("response", lambda response: came.append(response.url) if is_refresh(response) else None)
    page.mouse.down()
    page.wait_for_timeout(1700)
    assert came
    page.mouse.up()
    page.get_by_role("heading", name="You are no longer in the queue").wait_for()


def match_count(page):
    """The matches of Duellist 05 in the standings."""
    return int(row_cells(page, "Duellist 05")[-3])


def test_a_page_reports_a_refused_stream_and_opens_another(shaky, game):
    shaky.route("**/pulse*", lambda route: route.fulfill(status=502, body="Bad Gateway"))
    shaky.goto(address("ladders", DUELS, "standings"))
    mark(shaky)
    shaky.get_by_text("Not live now").wait_for()
    assert shaky.locator("html").get_attribute("data-stream") == "lost"
    assert not shaky.get_by_text("Live while this page is open").is_visible()
    before = match_count(shaky)
    report_duel(game, "missed", "Duellist 05", "Duellist 06")
    shaky.unroute("**/pulse*")
    shaky.wait_for_function(LIVE)
    shaky.get_by_text("Live while this page is open").wait_for()
    assert not shaky.get_by_text("Not live now").is_visible()
    wait_for(lambda: match_count(shaky) == before + 1)  # what came meanwhile
    report_duel(game, "seen", "Duellist 05", "Duellist 06")
    wait_for(lambda: match_count(shaky) == before + 2)
    assert stayed(shaky)


def test_a_chart_moves_with_the_matches_and_keeps_the_keyboard_focus(shaky, game):
    shaky.goto(address("ladders", DUELS, "players", "Duellist 03"))
    shaky.wait_for_function(LIVE)
    chart = shaky.locator("#path-figure")
    before = len(points_of(chart))
    assert before > 0
    chart.locator(".plot > svg").focus()
    report_duel(game, "drawn", "Duellist 04", "Duellist 03")
    wait_for(lambda: len(points_of(chart)) == before + 1)
    assert chart.evaluate("(one) => one.querySelector('.plot > svg') === document.activeElement")


def test_new_matches_wait_above_a_list_until_they_are_asked_for(visitor, game):
    page = visitor().page()
    page.goto(address("ladders", DUELS, "matches"))
    page.wait_for_function(LIVE)
    page.evaluate(SHIFTS)
    rows, first = page.locator("#matches li"), page.locator("#matches li").first.get_attribute("data-key")
    for number, told in ((1, "Show 1 new match"), (2, "Show 2 new matches")):
        report_duel(game, f"waits-{number}", "Duellist 11", "Duellist 12")
        page.get_by_role("button", name=told, exact=True).wait_for()
    assert rows.first.get_attribute("data-key") == first
    assert page.evaluate("window.shifted") < 0.001  # an inserted row makes it 0.05
    page.get_by_role("button", name="Show 2 new matches").click()
    assert [rows.nth(at).get_attribute("data-key") for at in range(3)] == ["live-waits-2", "live-waits-1", first]
    assert not page.locator("#matches .held button").is_visible()


def test_a_scrolled_table_on_a_phone_stays_where_it_is(visitor, game):
    page = visitor(width=360, height=740).page()
    page.goto(address("ladders", DUELS, "standings", around="Duellist 09"))
    page.wait_for_function(LIVE)
    page.add_style_tag(content=".scroll > table { display: table; width: 40rem }")  # none of ours is as wide
    table = page.get_by_role("region", name="Standings")
    table.focus()
    at = table.evaluate("(one) => { one.scrollLeft = 30; return one.scrollLeft }")
    assert at > 0
    own = table.locator("tr", has=page.get_by_role("link", name="Duellist 09", exact=True))
    before = own.inner_text()
    report_duel(game, "scrolled", "Duellist 09", "Duellist 10")
    wait_for(lambda: own.inner_text() != before, lambda: before)
    assert table.evaluate("(one) => one.scrollLeft") == at
    assert page.evaluate(HELD) == "Standings"
