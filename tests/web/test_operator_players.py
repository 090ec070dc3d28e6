"""Players on the operators' pages: renamed, merged, erased, and banned by the list."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from evenmatch.http.app import application
from evenmatch.web.app import pages
from ledger.sample_matches import duel, ratings
from web_client import HOSTILE, Browsing, field, words

AT = "/operate/players"
BANS = "/ladders/league/operate/bans"


def test_a_player_is_renamed_after_a_look(operator, league, service, site):
    page = operator.page(f"{AT}?what=rename&player=bob&to=Robert&look=1")
    assert "bob becomes Robert" in words(page)
    assert "Robert" not in ratings(service, league)
    operator.submit(AT, on=AT, what="rename", player="bob", to="Robert")
    assert "Robert" in ratings(service, league)
    assert "bob is now Robert." in words(operator.page(AT))
    assert (site.audit.page()[0].action, site.audit.page()[0].body) == ("player.renamed", {"to": "Robert"})


def test_two_accounts_are_merged_once_the_name_was_typed(operator, league, service):
    service.record(duel(10, "smurf", "bob", league))
    page = operator.page(f"{AT}?what=merge&player=smurf&to=ann&look=1")
    assert "ann gets all matches of smurf , on league ." in words(page)
    assert operator.submit(AT, on=AT, what="merge", player="smurf", to="ann", confirm="ann").status_code == 422
    assert "smurf" in ratings(service, league)
    operator.submit(AT, on=AT, what="merge", player="smurf", to="ann", confirm="smurf")
    assert "smurf" not in ratings(service, league)
    assert "smurf is now part of ann." in words(operator.page(AT))


def test_a_merge_that_cannot_be_shows_no_button(operator, league):
    page = operator.page(f"{AT}?what=merge&player=bob&to=ann&look=1")
    assert "'bob' and 'ann' both played in match 'm1'" in words(page)
    assert "Merge now" not in page


def test_a_player_is_erased_once_the_consequences_were_shown_and_the_name_typed(operator, league, service, site):
    page = operator.page(f"{AT}?what=erase&player=bob&look=1")
    assert "This cannot be undone." in words(page)
    assert "1 name will be deleted from all ladders, also in the reasons of bans: bob ." in words(page)
    refused = operator.submit(AT, on=f"{AT}?what=erase", what="erase", player="bob", confirm="")
    assert field(refused.text, "confirm")[1] == "Type bob to confirm"
    assert "bob" in ratings(service, league)
    operator.submit(AT, on=AT, what="erase", player="bob", confirm="bob")
    assert "bob" not in ratings(service, league)
    assert "Their matches are now those of erased-" in words(operator.page(AT))
    entry = site.audit.page()[0]
    assert entry.action == "player.erased"
    assert "bob" not in f"{entry}"


@pytest.mark.parametrize("what", ["rename", "merge", "erase"])
def test_an_unknown_player_is_named_beside_the_field(operator, league, what):
    page = operator.page(f"{AT}?what={what}&player=nobody&to=ann&look=1")
    assert "nobody" in field(page, "player")[1]
    assert 'id="preview"' not in page


def test_an_operator_of_one_ladder_changes_no_players(site, league):
    browsing = Browsing(application(site, pages=pages))
    key = site.keys.create("one", ["admin"], [league])[1]
    browsing.post("/login", data={"key": key, "to": "/operate"})
    assert browsing.get(AT).status_code == 403
    browsing.close()


def test_a_list_of_players_is_banned_after_a_look_at_who_they_are(operator, league, service, site):
    operator.submit(f"/ladders/{league}/operate/correct", on=BANS, what="ban", player="joe", rule="void")
    form = {"names": f"bob\nnobody\n joe\n\n{HOSTILE}\nbob", "rule": "void", "reason": "win trading", "look": "1"}
    page = operator.get(BANS, params=form).text
    told = words(page.partition('id="preview"')[2])
    assert "2 players of 4 can be banned" in told
    assert "nobody – – unknown on this ladder, left out" in told
    assert "joe – 0 already banned, left out" in told
    before = ratings(service, league)
    operator.submit(BANS, on=BANS, **form, id="b1")
    assert "2 players were banned." in words(operator.page(f"/ladders/{league}/operate"))
    assert {"bob", HOSTILE} <= set(before) - set(ratings(service, league))
    banned = [entry for entry in site.audit.page(league) if entry.action == "player.banned"]
    assert {entry.target for entry in banned} == {"joe", "bob", HOSTILE}
    assert banned[0].body["reason"] == "win trading"
    operator.submit(BANS, on=BANS, **form, id="b1")
    assert len([entry for entry in site.audit.page(league) if entry.action == "player.banned"]) == 3


def test_a_list_of_players_is_banned_for_a_week(operator, league, service, site):
    form = {"names": f"bob\n{HOSTILE}", "span": "7", "look": "1"}
    page = operator.get(BANS, params=form).text
    until = re.search(r'name="until" value="([^"]+)"', page)[1]
    now = datetime.fromtimestamp(service.clock() / 1e6, UTC)
    assert timedelta(days=6, hours=23) < datetime.fromisoformat(until) - now <= timedelta(days=7)
    before = ratings(service, league)
    operator.submit(BANS, on=BANS, names=form["names"], until=until, id="b2")
    assert ratings(service, league) == before
    banned = [entry.body for entry in site.audit.page(league) if entry.action == "player.banned"]
    assert [(body["rule"], body["until"]) for body in banned] == [("keep", until)] * 2
    assert f"until {until}" in words(operator.page(f"/ladders/{league}/operate"))
    assert "banned until" in words(operator.page(f"/ladders/{league}/players/bob"))


def test_the_end_of_a_ban_is_a_day_in_the_future_and_its_matches_stay(operator, league):
    correct = f"/ladders/{league}/operate/correct"
    asked = {"what": "ban", "player": "bob"}
    cases = [
        ({"span": "date"}, "Expected the day on which the ban ends"),
        ({"span": "date", "until": "2001-02-03"}, "Until is 2001-02-03T00:00:00Z, which has passed"),
        ({"until": "soon"}, "or an empty field for good, got 'soon'"),
        ({"span": "1", "rule": "void"}, "a ban with an end changes no rating"),
    ]
    for form, told in cases:
        page = operator.get(correct, params=asked | form).text
        assert told in words(page)
        assert "Ban bob now" not in words(page)
    page = words(operator.get(correct, params=asked | {"until": "2099-02-03"}).text)
    assert "If bob is banned until 2099-02-03T00:00:00Z 0 of " in page
    assert "Ban bob now" in page


def test_an_empty_list_of_bans_is_refused(operator, league):
    refused = operator.submit(BANS, on=BANS, names=" \n")
    assert refused.status_code == 422
    assert "The list has 0 names; expected 1 to 100" in words(refused.text)
