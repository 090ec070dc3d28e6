"""What a visitor has on a page stays over its refreshes: focus, scrolling, a pressed button, charts, the stream."""

import pytest

from browser.page_checks import settled
from browser.sample_ladders import DUELS
from browser.test_live_updates import find_a_match, game, mark, report_duel, row_cells, stayed, wait_for
from evenmatch.web.page_request import address

pytestmark = pytest.mark.slow

__all__ = ["game"]
HELD = "() => document.activeElement.value ?? document.activeElement.getAttribute('aria-label')"
POINTS = """(chart) => (chart.data ?? []).filter((one) => one.mode === 'markers')
    .reduce((sum, one) => sum + one.x.length, 0)"""
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
    return int(row_cells(page, "Duellist 05")[-1])


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


def test_a_drawn_chart_outlives_a_figure_that_is_refused(shaky, game):
    shaky.goto(address("ladders", DUELS, "players", "Duellist 03"))
    settled(shaky)
    shaky.wait_for_function(LIVE)
    chart = shaky.locator("#path-figure")
    shaky.evaluate("() => { window.drawing = document.querySelector('#path-figure .plot-container') }")
    before = chart.evaluate(POINTS)
    assert before > 0
    latest = shaky.locator("#matches tbody tr").first
    row = latest.inner_text()
    shaky.route("**/path*", lambda route: route.fulfill(status=429, body="{}"), times=1)
    with shaky.expect_response(lambda response: response.status == 429):
        report_duel(game, "unseen", "Duellist 03", "Duellist 04")
    wait_for(lambda: latest.inner_text() != row, lambda: row)
    assert "could not be loaded" not in chart.inner_text()
    assert shaky.evaluate("window.drawing.isConnected && window.drawing.getBoundingClientRect().height > 100")
    assert chart.evaluate(POINTS) == before
    report_duel(game, "drawn", "Duellist 04", "Duellist 03")
    wait_for(lambda: chart.evaluate(POINTS) == before + 2, lambda: chart.evaluate(POINTS))
    assert shaky.evaluate("window.drawing.isConnected")


def test_a_scrolled_table_on_a_phone_stays_where_it_is(visitor, game):
    page = visitor(width=360, height=740).page()
    page.goto(address("ladders", DUELS, "players", "Duellist 09"))
    page.wait_for_function(LIVE)
    page.add_style_tag(content="table.stack { display: table; width: 40rem }")  # none of ours is as wide
    table = page.get_by_role("region", name="Matches of this player")
    table.focus()
    at = table.evaluate("(one) => { one.scrollLeft = 30; return one.scrollLeft }")
    assert at > 0
    latest = table.locator("tbody tr").first
    before = latest.inner_text()
    report_duel(game, "scrolled", "Duellist 09", "Duellist 10")
    wait_for(lambda: latest.inner_text() != before, lambda: before)
    assert table.evaluate("(one) => one.scrollLeft") == at
    assert page.evaluate(HELD) == "Matches of this player"
