"""A rating over many matches: every peak is drawn, seasons are marked, and a stretch that is dragged across has all."""

import re

import pytest

from browser.page_checks import settled
from browser.sample_ladders import HOURS, MARATHON, RUNNERS
from browser.test_live_updates import wait_for
from evenmatch.web.page_request import address

POINTS = """(chart) => chart.data.filter((one) => one.mode === 'markers').reduce((sum, one) => sum + one.x.length, 0)"""
HIGHEST = """(chart) => Math.max(...chart.data.filter((one) => one.mode === 'markers').flatMap((one) => one.y))"""


@pytest.fixture
def chart(page):
    page.goto(address("ladders", MARATHON, "players", RUNNERS[0]))
    settled(page)
    return page.locator("#path-figure")


def drag(page, chart, first, last):
    """Drag across a stretch, in shares of the width of the axes."""
    box = chart.locator(".nsewdrag").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + first * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + last * box["width"], middle, steps=4)
    page.mouse.up()


def test_all_matches_of_a_stretch_come_when_it_is_zoomed_into(page, chart):
    title = chart.locator(".gtitle").text_content()
    some, whole = map(int, re.match(r"(\d+) of (\d+) matches: every peak and every low\. Drag", title).groups())
    assert chart.evaluate(POINTS) == some < whole == HOURS
    highest = chart.evaluate(HIGHEST)
    assert "Second half" in chart.inner_text()  # a season is marked
    drag(page, chart, 0.4, 0.6)
    wait_for(lambda: chart.locator(".gtitle").count() == 0)
    since, until = chart.evaluate("(chart) => chart.layout.xaxis.range.map(Number)")
    hours = (until - since) / 3_600_000
    assert hours > 60
    assert chart.evaluate(POINTS) == pytest.approx(hours + 2, abs=1)  # and one on either side
    box = chart.locator(".nsewdrag").first.bounding_box()

    def is_all_again():  # on a busy machine two clicks may come too slowly for a double one
        page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_timeout(700)
        return chart.evaluate(POINTS) == some

    wait_for(is_all_again)
    assert chart.evaluate(HIGHEST) == highest
