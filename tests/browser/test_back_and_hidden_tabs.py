"""Pages that somebody leaves and comes back to, or does not look at: the back button, times that pass, hidden tabs."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from browser.sample_ladders import DUELS
from browser.test_live_updates import find_a_match, game, mark, report_duel, row_cells, stayed, wait_for
from evenmatch.web.page_request import address
from evenmatch.web.texts import Texts
from ledger.sample_matches import micros

pytestmark = pytest.mark.slow

__all__ = ["game"]
LIVE = "() => document.documentElement.dataset.stream === 'open'"
HIDE = """() => {
    for (const [name, value] of [["hidden", true], ["visibilityState", "hidden"]])
        Object.defineProperty(document, name, { configurable: true, get: () => value })
    document.dispatchEvent(new Event("visibilitychange"))
}"""
LISTEN = """
window.heard = []; window.notes = [];
const start = OscillatorNode.prototype.start;
OscillatorNode.prototype.start = function (at) {
    window.heard.push(this.frequency.value);
    return start.call(this, at);
};
window.Notification = class {
    static permission = "granted";
    constructor(title, options) { window.notes.push(options.body); }
    close() {}
};
"""


def test_a_page_of_the_back_button_is_live_again(page, game):
    standings = address("ladders", DUELS, "standings")
    page.goto(standings)
    page.wait_for_function(LIVE)
    mark(page)
    before = int(row_cells(page, "Duellist 11")[-3])
    page.goto(address("ladders", DUELS, "rules"))
    report_duel(game, "left", "Duellist 11", "Duellist 12")
    page.go_back(wait_until="commit")
    assert stayed(page)  # not loaded anew: the browser had kept it
    wait_for(lambda: int(row_cells(page, "Duellist 11")[-3]) == before + 1)
    page.wait_for_function(LIVE)
    report_duel(game, "back", "Duellist 11", "Duellist 12")
    wait_for(lambda: int(row_cells(page, "Duellist 11")[-3]) == before + 2)
    assert stayed(page)


def test_times_say_how_long_ago_it_is_now(page):
    page.clock.install()
    page.goto(address("ladders", DUELS, "matches"))
    first = page.locator("#matches time").first
    assert "min" not in first.inner_text().replace("5 min ago", "")
    page.clock.fast_forward("03:20:00")
    wait_for(lambda: re.fullmatch("[34] h ago", first.inner_text()), first.inner_text)


def test_the_script_words_times_as_the_service_does(page):
    asked = datetime.now(UTC)  # the page's clock is that of its response, so it may be slow by the time of loading
    page.goto(address("ladders", DUELS, "matches"))
    now = datetime.now(UTC)
    passed = [-4 * 86_400, -300, -20, 20, 89.8, 300, 3000, 7100, 8000, 100_000, 200_000, 5_000_000]
    times = [now - timedelta(seconds=seconds) for seconds in passed]
    page.evaluate(
        """(times) => times.forEach((one) => {
            const time = document.body.appendChild(document.createElement("time"));
            [time.dateTime, time.dataset.ago, time.className] = [one, "", "made"];
        })""",
        [one.isoformat() for one in times],
    )
    made = page.locator("time.made")
    wait_for(lambda: all(made.all_inner_texts()))
    told = made.all_inner_texts()
    end = micros(datetime.now(UTC))
    moments = [*range(micros(asked), end, 500_000), end]
    for one, words in zip(times, told, strict=True):
        assert words in {re.sub("<[^>]*>", "", str(Texts("en").ago(micros(one), at))) for at in moments}


@pytest.fixture
def rival(visitor):
    return visitor().page()


def test_an_offer_in_a_hidden_tab_changes_the_title_plays_a_sound_and_notifies(visitor, rival):
    watched = visitor()
    watched.context.add_init_script(LISTEN)
    page = watched.page()
    find_a_match(page, "Elsewhere one")
    page.wait_for_function(LIVE)
    mark(page)
    page.evaluate(HIDE)
    assert page.title().startswith("Play")
    assert page.evaluate("window.heard") == []
    find_a_match(rival, "Elsewhere two")
    wait_for(lambda: re.match(r"\(\d+ s\) Accept your match", page.title()), page.title)
    wait_for(lambda: page.evaluate("window.heard.length") == 2)
    (words,) = page.evaluate("window.notes")
    assert re.fullmatch(r"Match found\. You have [\w ]+ to accept\.", words)
    page.wait_for_timeout(1500)
    assert page.evaluate("[window.heard.length, window.notes.length]") == [2, 1]  # once, not at each refresh
    assert stayed(page)
    page.get_by_role("button", name="Decline").click()
    rival.get_by_role("button", name="Leave the queue").click()
    for one in (page, rival):
        one.get_by_role("heading", name="You are no longer in the queue").wait_for()
    assert page.title().startswith("Play")


def test_a_hidden_tab_fetches_nothing_else(page, game):
    page.goto(address("ladders", DUELS, "standings"))
    page.wait_for_function(LIVE)
    before = row_cells(page, "Duellist 13")
    page.evaluate(HIDE)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    report_duel(game, "unwatched", "Duellist 13", "Duellist 14")
    page.wait_for_timeout(1500)
    assert asked == []
    page.evaluate("() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')) }")
    wait_for(lambda: row_cells(page, "Duellist 13") != before)


def test_a_ticket_without_scripts_moves_too(visitor):
    page = visitor(javascript=False).page()
    find_a_match(page, "Plain one")
    waiting = page.locator("#ticket .num").first
    before = waiting.inner_text()
    wait_for(lambda: waiting.inner_text() not in (before, ""))
    page.get_by_role("button", name="Leave the queue").click()
    page.get_by_role("heading", name="You are no longer in the queue").wait_for()
