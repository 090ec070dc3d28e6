"""Every page of the site as people meet it: on phones and wide screens, by day and by night, with and without scripts.

The list of pages is the site's own, so that none can be forgotten.
"""

import json
from urllib.parse import quote

import httpx
import pytest

from browser.addresses import MORE, filled, page_paths
from browser.axe import violations
from browser.page_checks import Watched, overflow, settled
from browser.sample_ladders import ARENA

pytestmark = pytest.mark.slow

WIDTHS = (360, 768, 1920)
FAINT = """() => [...document.querySelectorAll('.figure .xtick text, .figure .ytick text, .chart text')]
    .filter((one) => Math.max(...getComputedStyle(one).fill.match(/\\d+/g).slice(0, 3).map(Number)) < 120)
    .map((one) => one.textContent)"""  # axe does not look into drawings


@pytest.fixture(scope="module")
def asking(served, session):
    """Asks as somebody who is logged in does, without a browser."""
    cookies = {one["name"]: one["value"] for one in session}
    with httpx.Client(base_url=served.address, cookies=cookies, timeout=30, follow_redirects=True) as client:
        yield client


@pytest.fixture(scope="module")
def looking(browser, served, session):
    """A visitor for the whole file, who keeps the chart library at hand."""
    watched = Watched(browser, served.address, cookies=session)
    yield watched
    watched.close()


@pytest.fixture
def tab(looking):
    looking.troubles.clear()
    page = looking.page()
    yield page
    page.close()
    assert looking.troubles == []


@pytest.fixture(scope="module")
def scriptless_visitor(browser, served, session):
    """A visitor whose browser runs no scripts."""
    watched = Watched(browser, served.address, cookies=session, javascript=False)
    yield watched
    watched.close()
    assert watched.troubles == []


@pytest.mark.parametrize("path", [*page_paths(), *MORE])
def test_a_page_opens_at_every_width_by_day_and_night_for_everybody(path, tab, scriptless_visitor, asking, known):
    address = filled(path, known, ARENA)
    answer = asking.get(address)
    assert answer.status_code == 200, f"{address}: {answer.status_code} {answer.text[:300]}"
    if not answer.headers["content-type"].startswith("text/html"):
        assert json.loads(answer.text).keys() == {"data", "layout"}, address
        return
    check_content_policy(answer.headers["content-security-policy"])
    tab.goto(address)
    settled(tab)
    assert tab.title().endswith("evenmatch")
    assert count_elements(tab) == told_without_scripts(scriptless_visitor, address)
    assert not is_dark(tab)
    assert violations(tab) == [], address
    tab.emulate_media(color_scheme="dark")
    assert is_dark(tab)
    assert violations(tab, "color-contrast") == [], address
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 800})
        assert overflow(tab) == [], (address, width)
    for faint in tab.evaluate(FAINT):
        raise AssertionError(f"a chart's text is hard to read in the dark: {faint}")


def check_content_policy(policy):
    """Scripts come from files of this site alone; nothing comes from elsewhere."""
    allowed = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert allowed["default-src"] == "'none'"
    assert allowed["script-src"] == allowed["connect-src"] == "'self'"
    assert not {word for words in allowed.values() for word in words.split()} & {"*", "http:", "https:"}


def count_elements(page):
    """How much a page tells."""
    return {what: page.locator(what).count() for what in ("h1", "h2", "tr", "dt", "label", "main button", "main a")}


def told_without_scripts(plain, address):
    page = plain.page()
    page.goto(address)
    found = count_elements(page)
    page.close()
    assert found["h1"] == 1
    return found


@pytest.mark.parametrize("javascript", [True, False])
def test_the_foot_switches_to_dark_and_light_whatever_the_system_prefers(visitor, known, javascript):
    page = visitor(javascript=javascript).page()
    page.goto(filled("/ladders/{ladder:text}/standings", known, ARENA))
    for system, choice, dark in [("light", "Dark", True), ("dark", "Light", False), ("dark", "As the system", True)]:
        page.emulate_media(color_scheme=system)
        page.get_by_role("button", name=choice, exact=True).click()
        page.get_by_role("button", name=choice, exact=True, pressed=True).wait_for()
        assert is_dark(page) == dark
        if javascript:
            assert violations(page) == []


def is_dark(page):
    """Whether the ground is darker than the ink."""
    ground, ink = (
        page.evaluate(f"getComputedStyle(document.documentElement).{of}.match(/[\\d.]+/g).slice(0, 3).map(Number)")
        for of in ("backgroundColor", "color")
    )
    return sum(ground) < sum(ink)


def test_an_unknown_address_says_so_in_the_usual_frame(looking):
    looking.troubles.clear()
    page = looking.page()
    page.goto(f"/nowhere/{quote('<b>here</b>', safe='')}")
    assert page.locator("h1").inner_text() == "Nothing is here"
    assert "<b>here</b>" in page.locator("main").inner_text()
    assert violations(page) == []
    assert overflow(page) == []
    page.close()
    assert [one for one in looking.troubles if "404" not in one] == []


def test_the_standings_are_light_and_load_no_chart_library(browser, served):
    watched = Watched(browser, served.address)
    page, sizes = watched.page(), {}
    page.on("requestfinished", lambda one: sizes.update({one.url: one.sizes()["responseBodySize"]}))
    page.goto(f"/ladders/{ARENA}/standings")
    page.wait_for_timeout(200)
    watched.close()
    assert len(sizes) >= 3
    assert sum(sizes.values()) < 150_000, sizes
    assert not [url for url in sizes if "plotly" in url]
