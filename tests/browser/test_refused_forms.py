"""Forms that are refused: the page stays, with what was typed, and says beside the field what is wrong."""

import pytest

from browser.axe import violations
from browser.sample_ladders import DUELS
from browser.test_live_updates import wait_for
from evenmatch.web.page_request import address

AT = address("ladders", DUELS, "operate")
REFUSED = {
    "a ladder": (
        "/operate",
        "Create ladder",
        {"Name (used in URLs": "My Cup!", "Title (shown to players)": "My Cup"},
        "such as my-cup",
    ),
    "a key": (
        "/operate/keys",
        "Create key",
        {"Who or what it is for": "us", "Days until": "soon"},
        "expected whole days",
    ),
    "a webhook": ("/operate/webhooks", "Add it", {"Address": "ftp://example.com/"}, "http"),
    "a correction": (
        f"{AT}/correct?what=void",
        "Show who would move",
        {"Reason": "a test", "Match": "duel-9999"},
        "unknown match",
    ),
    "a season": (
        f"{AT}/season",
        "End this season",
        {"Title": "Summer", "Type the name": "duel"},
        "type duels to confirm",
    ),
    "an archive": (f"{AT}/archive", "Archive it", {"Type the name": "duel"}, "type duels to confirm"),
    "a queue": (address("ladders", DUELS, "queue"), "Find a match", {"Your name": "x", "Skill range": "7"}, "choose"),
}


@pytest.fixture
def refusing(visitor, session):
    """A tab of an operator, whose browser may note that forms are refused."""
    watched = visitor(cookies=session)
    yield watched.page()
    watched.troubles[:] = [one for one in watched.troubles if "the server responded with a status of 4" not in one]


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_form_keeps_what_was_typed_and_says_beside_the_field_what_is_wrong(what, refusing):
    where, button, typed, said = REFUSED[what]
    refusing.goto(where)
    tabs = refusing.get_by_role("navigation", name="Ladder").count()
    form = refusing.locator("form", has=refusing.get_by_role("button", name=button, exact=False)).last
    for closed in form.locator("details:not([open]) > summary").all():
        closed.click()
    for label, text in typed.items():
        form.get_by_label(label).fill(text)
    for box in form.get_by_role("checkbox").all():
        box.set_checked(what not in ("a queue",) and box.get_attribute("name") in ("scope", "event"))
    form.get_by_role("button", name=button).click()
    refusing.locator(".wrong").wait_for()
    for label, text in typed.items():
        assert form.get_by_label(label).input_value() == text
    refusing.locator("[data-focus=wrong]:focus").wait_for()
    (wrong,) = refusing.locator(".wrong").all()
    assert said in wrong.inner_text().lower()
    near = wrong.locator("xpath=ancestor::*[self::fieldset or contains(@class, 'field')][1]")
    assert near.locator("input").count() >= 1
    if (invalid := refusing.locator("[aria-invalid=true]")).count():
        assert wrong.get_attribute("id") in invalid.get_attribute("aria-describedby").split()
    assert refusing.get_by_role("navigation", name="Ladder").count() == tabs
    assert violations(refusing) == []


def test_a_name_that_was_probably_meant_is_a_link(refusing):
    refusing.goto(address("ladders", DUELS, "players", "Duelist 03"))
    refusing.get_by_role("navigation", name="Ladder").wait_for()
    refusing.get_by_role("link", name="Did you mean “Duellist 03”?").click()
    refusing.get_by_role("heading", name="Duellist 03").wait_for()
    refusing.goto(f"{AT}/correct?what=ban")
    refusing.get_by_label("Player", exact=True).fill("Duelist 03")
    refusing.get_by_role("button", name="Show who would move").click()
    refusing.get_by_role("main").get_by_role("link", name="Duellist 03").click()
    assert refusing.get_by_role("textbox", name="Player").input_value() == "Duellist 03"


def test_the_parameters_of_another_system_are_shown_as_soon_as_it_is_chosen(refusing):
    for where in (address("ladders", DUELS, "lab", "what-if"), f"{AT}/rules"):
        refusing.goto(where)
        assert refusing.locator("input[name='p.rule']").count() == 0
        system = refusing.get_by_label("Rating system")
        system.focus()
        system.select_option("elo")
        refusing.locator("#parameters summary", has_text="Parameters of elo").wait_for()
        assert refusing.locator("input[name='p.k']").input_value() == "32"
        assert refusing.evaluate("document.activeElement.id") == "system"
        refusing.get_by_label("Preset").select_option("fide")
        wait_for(lambda: refusing.locator("input[name='p.rule']").input_value() == "fide")


def test_the_preview_of_other_rules_goes_when_something_else_is_chosen(refusing):
    refusing.goto(f"{AT}/rules")
    refusing.get_by_label("Rating system").select_option("elo")
    refusing.locator("#parameters summary", has_text="Parameters of elo").wait_for()
    refusing.get_by_role("button", name="Show who would move").click()
    change = refusing.get_by_role("button", name="Rate by these rules")
    change.wait_for()
    refusing.get_by_label("Rating system").select_option("glicko")
    refusing.locator("#parameters summary", has_text="Parameters of glicko").wait_for()
    assert change.count() == 0
