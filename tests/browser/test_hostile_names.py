"""Names made to do harm: on every page they are shown letter by letter, and start nothing."""

import httpx
import pytest

from browser.addresses import filled, page_paths
from browser.page_checks import Watched, check_harmless
from browser.sample_ladders import ARENA, BLANKS, DUELS, HOSTILE, RELAY
from evenmatch.lab.display_names import BLANK, plain
from evenmatch.web.page_request import address

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def quick(browser, served, session):
    """A tab without the chart library, which takes longer than all the rest."""
    watched = Watched(browser, served.address, cookies=session)
    library = {"content_type": "text/javascript", "body": "window.Plotly = {react: async () => {}}"}
    watched.context.route("**/plotly*", lambda route: route.fulfill(**library))
    yield watched.page()
    watched.close()
    assert watched.troubles == []


@pytest.fixture(scope="module")
def asking(served, session):
    cookies = {one["name"]: one["value"] for one in session}
    with httpx.Client(base_url=served.address, cookies=cookies, timeout=30) as client:
        yield client


@pytest.mark.parametrize("path", [path for path in page_paths() if "{ladder" in path])
def test_a_page_of_a_ladder_with_a_hostile_name_stays_intact(path, quick, asking, known):
    where = filled(path, known, RELAY)
    answer = asking.get(where, follow_redirects=True)
    assert answer.status_code == 200, (where, answer.text[:300])
    if answer.headers["content-type"].startswith("text/html"):
        quick.goto(where)
        check_harmless(quick)


@pytest.mark.parametrize("ladder", [ARENA, DUELS])
def test_every_name_in_the_standings_can_be_read(ladder, quick, known):
    quick.goto(address("ladders", ladder, "standings"))
    check_harmless(quick)
    listed = quick.locator("#standings tbody th[scope=row] a").all_inner_texts()
    expected = {BLANK if name in BLANKS else " ".join(plain(name, 28).split()) for name in known.players[ladder]}
    assert {" ".join(name.split()) for name in listed} <= expected
    assert len(listed) > 20


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_player_has_a_page_whatever_they_are_called(name, quick):
    quick.goto(address("ladders", DUELS, "players", name))
    seen = " ".join(quick.locator("h1").inner_text().split())
    assert seen == (BLANK if name in BLANKS else " ".join(plain(name, 80).split()))
    check_harmless(quick)
