"""A rating over many matches: every peak is drawn, seasons are marked, and links lead to all matches of a part."""

import re
from itertools import pairwise

import pytest

from browser.page_checks import points_of
from browser.sample_ladders import HOURS, MARATHON, RUNNERS
from evenmatch.web.page_request import address

RATINGS = re.compile(r": ([\d,.]+) → ([\d,.]+) \(")


@pytest.fixture
def chart(page):
    page.goto(address("ladders", MARATHON, "players", RUNNERS[0]))
    return page.locator("#path-figure")


def ratings(chart):
    """The rating after each point of a chart."""
    return [float(RATINGS.search(point)[2].replace(",", "")) for point in points_of(chart)]


def test_a_part_of_a_long_path_has_all_its_matches(page, chart):
    whole = ratings(chart)
    summary = chart.locator(".summary").inner_text()
    some, matches = map(int, re.search(r"Shows (\d+) of (\d+) points", summary).groups())
    assert len(whole) == some < matches == HOURS
    assert "Second half" in chart.locator(".starts").text_content()  # a season is marked
    highest = float(re.search(r"[Hh]ighest ([\d,.]+)", summary)[1].replace(",", ""))
    assert max(whole) == pytest.approx(highest, abs=1)
    page.get_by_role("link", name="Last 30 matches").click()
    page.wait_for_url("**path=last*")
    assert len(ratings(chart)) == 30
    assert ratings(chart)[-1] == whole[-1]
    page.get_by_role("link", name="This season").click()
    page.wait_for_url("**path=season*")
    assert len(ratings(chart)) == HOURS // 2
    page.get_by_role("link", name=f"All {HOURS} matches").click()
    page.wait_for_url(lambda url: "path=" not in url)
    assert ratings(chart) == whole


def test_pointing_touching_and_arrow_keys_tell_of_a_point(page, chart):
    points, output = points_of(chart), chart.locator("output")
    plot = chart.locator(".plot > svg")
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"], box["y"] + box["height"] / 2)
    assert output.inner_text() == points[-1]
    cursor = chart.locator(".cursor").bounding_box()
    assert abs(cursor["x"] + cursor["width"] / 2 - box["x"] - box["width"]) < 1
    assert not chart.locator(".summary").is_visible()
    page.mouse.move(5, 5)
    assert output.inner_text() == ""
    assert chart.locator(".summary").is_visible()
    plot.focus()
    for key, point in (("ArrowLeft", -1), ("ArrowLeft", -2), ("Home", 0), ("ArrowRight", 1), ("End", -1)):
        page.keyboard.press(key)
        assert output.inner_text() == points[point], key
    page.keyboard.press("Escape")
    assert output.inner_text() == ""


def test_a_chart_is_there_without_scripts_and_has_words_for_those_who_do_not_see_it(visitor):
    page = visitor(javascript=False, width=360).page()
    page.goto(address("ladders", MARATHON, "players", RUNNERS[0]))
    drawing = page.get_by_role("img", name=re.compile(r"Rating after each match From 1,500 on .*. Highest .*, lowest "))
    assert drawing.locator(".won").bounding_box()["width"] > 200
    labels = [label.bounding_box() for label in drawing.locator(".columns text").all() if label.is_visible()]
    assert len(labels) >= 2
    assert all(one["x"] + one["width"] < other["x"] for one, other in pairwise(labels))
    assert min(label["height"] for label in labels) > 10  # pixels
    page.get_by_role("link", name="Last 30 matches").click()
    assert page.locator("#path-figure .summary").inner_text().startswith("From ")
