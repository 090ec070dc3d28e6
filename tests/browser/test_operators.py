"""Operators in a browser: in and out with a key, no form of strangers, a void that moves the standings."""

from urllib.parse import urlsplit

import httpx
import pytest

from browser.addresses import filled, sent
from browser.conftest import log_in
from browser.page_checks import Watched
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
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("link", name="Log in").wait_for()
    page.goto(address("ladders", ARENA, "operate"))
    page.get_by_role("heading", name="Log in").wait_for()
    page.get_by_label("Your key").fill(known.keys["admin"])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Correct history").wait_for()  # where one was about to go


def test_a_wrong_key_is_told_and_lets_nobody_in(browser, served):
    watched = Watched(browser, served.address)
    page = watched.page()
    page.goto("/login")
    page.get_by_label("Your key").fill("em_aaaaaaaaaa_" + "a" * 43)
    page.get_by_role("button", name="Log in").click()
    assert "not known" in page.get_by_role("alert").inner_text()
    assert page.get_by_role("button", name="Log out").count() == 0
    watched.close()
    assert all("403" in one for one in watched.troubles)  # the browser notes the refusal


def test_the_session_is_out_of_reach_of_scripts_and_other_sites(operator, session):
    (cookie,) = (one for one in session if one["name"] == "evenmatch-session")
    assert cookie["httpOnly"]
    assert cookie["sameSite"] in ("Lax", "Strict")
    operator.goto("/operate")
    assert "evenmatch-session" not in operator.evaluate("document.cookie")


@pytest.fixture(scope="module")
def proof(browser, served, session):
    watched = Watched(browser, served.address, cookies=session)
    page = watched.page()
    page.goto("/operate")
    found = page.locator("input[name=proof]").first.get_attribute("value")
    watched.close()
    return found


@pytest.mark.parametrize("path", [path for path in sent() if path != "/login"])
def test_a_form_without_the_proof_of_the_session_is_refused(path, served, session, known, proof):
    cookies = {one["name"]: one["value"] for one in session}
    with httpx.Client(base_url=served.address, cookies=cookies) as client:
        where = filled(path, known, ARENA)
        assert client.post(where).status_code == 403
        assert client.post(where, data={"proof": "made up"}).status_code == 403
        for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert client.post(where, data={"proof": proof}, headers=foreign).status_code == 403


def test_nobody_is_logged_in_by_another_site(served, known):
    with httpx.Client(base_url=served.address) as client:
        form = {"key": known.keys["admin"]}
        told = client.post("/login", data=form, headers={"Origin": "https://evil.example"})
        assert told.status_code == 403
        assert "evenmatch-session" not in told.cookies
        assert "evenmatch-session" in client.post("/login", data=form).cookies


def test_a_void_moves_the_standings_and_can_be_taken_back(operator):
    before = ratings(operator, DUELS)
    operator.goto(address("ladders", DUELS, "matches", "duel-240"))
    operator.get_by_role("link", name="Void this match").click()
    operator.get_by_label("Why").fill("<b>a test</b>")
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


def test_the_standings_of_everybody_else_move_when_a_match_is_void(operator, visitor):
    onlooker = visitor().page()
    onlooker.goto(address("ladders", DUELS, "standings"))
    onlooker.wait_for_function("() => document.documentElement.dataset.stream === 'open'")
    onlooker.evaluate("() => { window.stayed = document.querySelector('#standings').innerText }")
    operator.goto(address("ladders", DUELS, "operate", "correct", what="void", match="duel-250"))
    operator.get_by_role("button", name="Void a match now").click()
    operator.get_by_role("status").wait_for()
    onlooker.wait_for_function(
        "() => window.stayed && document.querySelector('#standings').innerText !== window.stayed"
    )
