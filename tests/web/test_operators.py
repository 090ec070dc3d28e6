"""What operators do on the pages, and that it is done: to the ledger, to keys, to webhooks, in the audit trail."""

import asyncio
import csv
import json
import re
import threading
import time
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from evenmatch import rules
from evenmatch.errors import ConflictError
from evenmatch.http.app import application
from evenmatch.ladders.settings import Settings
from evenmatch.options import options_of
from evenmatch.queues.requests import Join, QueuedPlayer
from evenmatch.standings.rules import StandingsRules
from evenmatch.web.app import pages
from evenmatch.webhooks.delivery import Deliverer
from ledger.sample_matches import duel, ratings
from web_client import RESULTS, Browsing, elo_by_hand, field, words


def test_a_match_is_voided_after_a_preview_that_changes_nothing(operator, league, service):
    before = ratings(service, league)
    at = f"/ladders/{league}/operate/correct"
    seen = words(operator.page(f"{at}?what=void&match=m2&reason=crashed"))
    assert "If match m2 is voided 4 of 4 players would move" in seen
    assert ratings(service, league) == before
    answer = operator.submit(at, on=f"{at}?what=void&match=m2", what="void", match="m2", reason="crashed", id="one")
    assert answer.status_code == 303
    assert ratings(service, league) == pytest.approx(elo_by_hand([*RESULTS[:1], *RESULTS[2:]])[0])
    told = words(operator.page(f"/ladders/{league}/operate"))
    assert "Done: match 'm2' is void. 4 ratings changed." in told
    assert "crashed" in told
    assert "match.voided" in words(operator.page("/operate/audit"))


def test_a_preview_that_is_out_of_date_when_it_is_confirmed_says_so(operator, league, service):
    at = f"/ladders/{league}/operate/correct"
    (seen,) = re.findall(r'name="previewed" value="([0-9]+)"', operator.page(f"{at}?what=void&match=m2"))
    service.record(duel(50, "ann", "zoe", league))
    operator.submit(at, on=f"{at}?what=void&match=m2", what="void", match="m2", previewed=seen)
    told = words(operator.page(f"/ladders/{league}/operate"))
    assert "1 event was recorded after the preview, so the changes can differ a little from it." in told


def test_a_banned_player_is_out_of_the_standings_until_reinstated(operator, anyone, league, service):
    at = f"/ladders/{league}/operate/correct"
    operator.submit(at, on=at, what="ban", player="ann", rule="void", reason="boosting")
    assert "banned" in words(operator.page(f"/ladders/{league}/players/ann"))
    assert "ann is banned from" in words(operator.page("/search?q=ann"))
    assert "is banned" not in words(anyone.page("/search?q=ann"))
    assert "ann" not in words(operator.page(f"/ladders/{league}/standings")).split()
    operator.submit(at, on=at, what="reinstate", player="ann")
    assert "ann" in words(operator.page(f"/ladders/{league}/standings")).split()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"what": "void", "match": "m99"}, "Unknown match 'm99' of ladder 'league'"),
        ({"what": "ban", "player": "nobody"}, "Unknown player 'nobody'"),
        ({"what": "ban", "player": "ann", "rule": "harsh"}, "Rule is 'harsh'; expected void, refund or keep"),
        (
            {"what": "ban", "player": "ann", "since": "soon"},
            "Expected a day such as 2026-11-21, or an empty field for all, got 'soon'",
        ),
        (
            {"what": "ban", "player": "ann", "since": "05/01/2026"},
            "got '05/01/2026', which looks like 2026-01-05 with the day first, or 2026-05-01 with the month first",
        ),
        (
            {"what": "ban", "player": "ann", "since": "0026-11-21"},
            "The day is 0026-11-21T00:00:00Z, which looks like a year of two digits; expected a time in the years 1800",
        ),
        ({"what": "other"}, "what is 'other'; expected void, unvoid, ban, reinstate"),
        ({"what": "void"}, "Enter a match"),
    ],
)
def test_a_correction_that_cannot_be_is_refused_with_what_could(operator, league, form, told):
    at = f"/ladders/{league}/operate/correct"
    answer = operator.submit(at, on=at, **form)
    assert answer.status_code in (404, 422)
    assert told in words(answer.text)


def test_settings_are_changed_and_noted(operator, league, service):
    at = f"/ladders/{league}/operate"
    form = {
        "title": "Spring",
        "placement": "3",
        "active_days": "20",
        "division_margin": "2",
        "factor": "0.25",
        "reset": "full",
    }
    operator.submit(f"{at}/settings", on=at, **form, team_size="1")
    changed = service.ladder(league).settings
    assert (changed.title, changed.standings.placement, changed.team_size, changed.reset) == ("Spring", 3, 1, "full")
    assert "settings.changed" in words(operator.page("/operate/audit"))
    refused = operator.submit(f"{at}/settings", on=at, **{**form, "placement": "many"})
    assert "Expected a whole number from 0 to 2,147,483,647, or auto, got 'many'" in words(refused.text)


def test_other_context_columns_rate_the_ladder_again(operator, service):
    service.create_ladder("maps", "even", rules("even"))
    for number in range(12):
        match = duel(number, *(("ann", "bob") if number % 2 else ("bob", "ann")), "maps")
        service.record(replace(match, context={"map": ("dust", "mill")[number % 2]}))
    before, at = ratings(service, "maps"), "/ladders/maps/operate"
    sent = operator.submit(f"{at}/settings", on=at, context="map, mode")
    assert sent.status_code == 303
    assert service.ladder("maps").settings.context == ("map", "mode")
    assert service.verify("maps").is_equal
    assert ratings(service, "maps") != before
    assert 'value="map,mode"' in operator.page(at)
    operator.submit(f"{at}/settings", on=at, context="")
    assert ratings(service, "maps") == before
    refused = operator.submit(f"{at}/settings", on=at, context="a b")
    assert "Expected up to 4 different names" in words(refused.text)


def test_other_rules_are_previewed_and_then_rate_the_ladder(operator, league, service):
    at = f"/ladders/{league}/operate/rules"
    page = operator.page(f"{at}?system=elo&preset=&shown_system=elo&shown_preset=&p.k=64&begin=start&look=1")
    assert "4 of 4 players would move" in words(page)
    form = dict(re.findall(r'type="hidden" name="(p\.[a-z_]+)" value="([^"]*)"', page))
    assert form["p.k"] == "64"
    sent = operator.submit(
        at, on=at, system="elo", preset="", shown_system="elo", shown_preset="", begin="start", **form
    )
    assert sent.status_code == 303
    for _ in range(100):
        if service.ladder(league).rules.values()["k"] == 64 and service.ladder(league).due is None:
            break
        time.sleep(0.1)
    assert ratings(service, league) == pytest.approx(elo_by_hand(RESULTS, 64.0)[0])


def test_rules_that_nobody_previewed_cannot_be_applied(operator, league):
    page = operator.page(f"/ladders/{league}/operate/rules?system=elo&preset=&p.k=64&begin=start")
    assert "Rate by these rules" not in page
    assert "Choose Show who would move to see who gains and who loses." in words(page)


def test_a_preview_lists_gains_and_losses_apart_and_the_rest_on_further_pages(operator, league, service):
    service.record_many(league, [duel(at, f"p{at:02}", f"q{at:02}", league) for at in range(10, 35)])
    service.view(league)
    page = operator.page(f"/ladders/{league}/operate/rules?system=elo&preset=&p.k=64&begin=start&look=1")
    gains, losses = re.search(r"Who gains(.*)Who loses(.*)", words(page.partition('id="preview"')[2])).groups()
    assert "ann" in gains
    assert "p10" in gains
    assert "q10" in losses
    assert "p10" not in losses
    seen = set(re.findall(r"\b[pq][0-9]{2}\b", words(page)))
    (further,) = re.findall(r'rel="next" href="([^"]+)"', page)
    rest = operator.page(unescape(further))
    assert 'rel="next"' not in rest
    assert seen | set(re.findall(r"\b[pq][0-9]{2}\b", words(rest))) == {
        f"{team}{at}" for team in "pq" for at in range(10, 35)
    }


def test_every_setting_has_a_short_label_in_a_group(operator, league):
    page = operator.page(f"/ladders/{league}/operate").partition('id="settings"')[2]
    labels = re.findall(r"<label for=\"([a-z_]+)\">([^<]+)</label>", page.partition("</form>")[0])
    options = {**options_of(Settings), **options_of(StandingsRules)}
    assert {name for name, _ in labels} == set(options) - {"archived", "divisions"}
    assert max(len(label) for _, label in labels) <= 45
    assert "<summary>More</summary>" not in page


def test_a_season_is_opened_once_its_end_was_shown_and_confirmed(operator, league, service):
    at = f"/ladders/{league}/operate/season"
    before = ratings(service, league)
    seen = words(operator.page(at))
    assert "The leaderboard will be empty." in seen
    assert "after 1 completed match in the new season" in seen
    half = {name: 1500 + (rating - 1500) / 2 for name, rating in before.items()}  # the reset is soft, by a half
    top = max(before, key=before.get)
    assert f"{top} {before[top]:,.0f} {half[top]:,.0f}" in seen
    refused = operator.submit(at, title="Summer", confirm="Summer", id="s1")
    assert refused.status_code == 422
    assert field(refused.text, "confirm") == ("Summer", "Type league to confirm")
    assert field(refused.text, "title")[0] == "Summer"
    assert ratings(service, league) == before
    assert operator.submit(at, title="Summer", confirm=" league ", id="s1").status_code == 303
    assert [one.title for one in service.seasons(league)] == ["Season 1", "Summer"]
    assert ratings(service, league) == pytest.approx(half)
    assert "season.opened" in words(operator.page("/operate/audit"))


def test_divisions_are_changed_after_a_preview_of_who_lands_where(operator, site, league, service):
    at = f"/ladders/{league}/operate/divisions"
    form = {"name0": "Low", "lowest0": "1", "name1": "Top", "lowest1": "60", "name2": "", "lowest2": "90"}
    page = operator.page(f"{at}?look=1&{urlencode(form)}")
    seen = words(page.partition('id="preview"')[2])
    listed = service.view(league).snapshot.page(1, 10)
    top = sum(one.percentile >= 60 for one in listed)
    assert 0 < top < len(listed)
    assert f"Top 60–100 – {top} Low 1–59 – {len(listed) - top}" in seen
    assert "4 listed players would change division." in seen
    before = service.ladder(league).settings.standings.divisions
    assert before[0].name == "Bronze"
    operator.submit(at, on=f"{at}?look=1&{urlencode(form)}", **form)
    assert service.ladder(league).settings.standings.divisions == (("Low", 1), ("Top", 60))
    assert sum(one.division == "Top" for one in service.view(league).snapshot.page(1, 10)) == top
    assert site.audit.page(league)[0].body == {"divisions": [["Low", 1], ["Top", 60]]}


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"name0": "Low", "lowest0": "5"}, "The lowest division begins at 5; expected 1"),
        ({"name0": "Low", "lowest0": "all"}, "Division 'Low' begins at 'all'; expected a percentile from 1 to 100"),
        ({"name0": "A", "lowest0": "1", "name1": "A", "lowest1": "50"}, "Division name 'A' is empty or used twice"),
    ],
)
def test_divisions_that_cannot_be_are_refused_with_what_was_typed(operator, league, service, form, told):
    at = f"/ladders/{league}/operate/divisions"
    page = operator.page(f"{at}?look=1&{urlencode(form)}")
    assert told in words(page)
    assert f'value="{form["lowest0"]}"' in page
    assert "Use these divisions" not in page
    refused = operator.submit(at, on=at, **form)
    assert refused.status_code == 422
    assert told in words(refused.text)


def test_the_audit_trail_is_filtered_told_in_words_and_sent_as_csv(operator, site, league, service):
    correct = f"/ladders/{league}/operate/correct"
    operator.submit(correct, on=correct, what="ban", player="bob", rule="void", reason="cheating")
    operator.submit(correct, on=correct, what="void", match="m2", reason="crashed")
    assert "operator banned bob on league : cheating" in words(operator.page("/operate/audit"))
    for query, found in (
        ("action=player.banned", {"bob"}),
        ("target=m2", {"m2"}),
        ("actor=operator&ladder=league", {"bob", "m2"}),
        ("actor=nobody", set()),
        ("since=2000-01-01&until=2000-01-02", set()),
        ("ladder=league", {"bob", "m2"}),
    ):
        sent = operator.get(f"/operate/audit/file?{query}")
        assert sent.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(sent.text.splitlines()))
        assert {row["target"] for row in rows} == found
        told = words(operator.page(f"/operate/audit?{query}"))
        assert ("cheating" in told) == ("bob" in found)
        assert ("crashed" in told) == ("m2" in found)
        assert ("No entry matches." in told) == (not found)
    assert json.loads(rows[0]["body"]) == {"reason": "crashed"}
    operator.submit("/operate/keys", on="/operate/keys", name="<b>desk</b>", scope="read", ladder=league)
    told = operator.page("/operate/audit?action=key.created")
    assert "name &lt;b&gt;desk&lt;/b&gt;" in told
    assert "scopes read" in words(told)
    wrong = operator.page("/operate/audit?since=soon")
    assert field(wrong, "since")[1].startswith("Expected a day such as")


def test_an_archived_ladder_is_read_and_takes_nothing_more(operator, anyone, site, league, service):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    at = f"/ladders/{league}/operate/archive"
    assert "You can reopen it at any time" in words(operator.page(at))
    refused = operator.submit(at, do="archive", confirm="lea")
    assert field(refused.text, "confirm") == ("lea", "Type league to confirm")
    assert not service.ladder(league).settings.archived
    operator.submit(at, do="archive", confirm=league)
    with pytest.raises(ConflictError, match="archived"):
        service.record(duel(20, "ann", "bob", ladder=league))
    assert "This ladder is archived" in words(anyone.page(f"/ladders/{league}/standings"))
    (told,) = site.queue_service.apply(league, [Join(members=(QueuedPlayer(name="ann"),), queues=("main",))])
    assert isinstance(told, ConflictError)
    operator.submit(at, do="reopen")
    service.record(duel(20, "ann", "bob", ladder=league))
    assert "settings.changed" in words(operator.page("/operate/audit"))


def test_a_ladder_is_verified_as_work_whose_end_is_told(operator, league):
    at = f"/ladders/{league}/operate"
    operator.submit(f"{at}/jobs", on=at, kind="verify")
    for _ in range(100):
        told = words(operator.page(at))
        if "No differences" in told:
            break
        time.sleep(0.1)
    assert "No differences: 6 matches of 4 players give exactly these ratings." in told


def test_a_ladder_is_made(operator, service):
    answer = operator.submit("/operate/ladders", on="/operate", name="new-one", title="New", system="wager")
    assert answer.headers["location"] == "/ladders/new-one/operate"
    assert service.ladder("new-one").rules.values() == rules("wager").values()
    refused = operator.submit("/operate/ladders", on="/operate", name="x", title="", system="mine.py")
    assert "Unknown system" in words(refused.text)


def test_a_ladder_name_for_people_is_refused_beside_its_field_with_one_for_programs(operator, service):
    refused = operator.submit("/operate/ladders", on="/operate", name="My Cup!", title="My Cup", system="wager")
    assert refused.status_code == 422
    typed, wrong = field(refused.text, "name")
    assert typed == "My Cup!"
    assert wrong.endswith("such as my-cup")
    assert field(refused.text, "title")[0] == "My Cup"
    assert "<option selected>wager</option>" in refused.text
    assert service.names() == []
    again = operator.submit("/operate/ladders", on="/operate", name="my-cup", title="My Cup", system="wager")
    assert again.status_code == 303
    taken = operator.submit("/operate/ladders", on="/operate", name="my-cup", title="Other", system="wager")
    assert taken.status_code == 409
    assert field(taken.text, "name") == ("my-cup", "Ladder 'my-cup' exists already; choose another name")


def test_a_key_is_made_shown_once_and_revoked_when_its_name_was_typed(operator, site):
    assert operator.submit("/operate/keys", name="server", scope="report", days="7").status_code == 303
    shown = operator.get("/operate/keys")
    made = re.search(r"<code>(em_[^<]+)</code></p>", shown.text)[1]
    assert shown.headers["cache-control"] == "no-store"
    assert site.keys.authenticate(made).scopes == {"report"}
    reloaded = operator.page("/operate/keys")
    assert made not in reloaded
    assert [one.name for one in site.keys.list()].count("server") == 1
    at = f"/operate/keys/{made[:13]}/revoke"
    assert f'href="{at}"' in reloaded
    assert "May: report. Ladders: all." in words(operator.page(at))
    refused = operator.submit(at, confirm="serve")
    assert field(refused.text, "confirm") == ("serve", "Type server to confirm")
    assert site.keys.authenticate(made)
    operator.submit(at, confirm="server")
    assert [one.state(site.service.clock()) for one in site.keys.list() if one.name == "server"] == ["revoked"]
    told = words(operator.page("/operate/audit"))
    assert "key.created" in told
    assert "key.revoked" in told


def test_nobody_revokes_the_key_that_they_are_logged_in_with(operator, site, admin_key):
    at = f"/operate/keys/{admin_key[:13]}/revoke"
    assert at not in operator.page("/operate/keys")
    assert "You are logged in with this key" in words(operator.page(at))
    assert operator.submit(at, confirm="operator").status_code == 409
    assert site.keys.authenticate(admin_key)


def test_webhooks_are_added_and_their_failures_shown(operator, admin_key, site, league, service, clock):
    site.webhooks.allow_private = True
    operator.submit("/operate/webhooks", url="http://127.0.0.1:9/hook", event="match.rated", ladder=league)
    assert re.search(r"<code>whs_[^<]+</code>", operator.page("/operate/webhooks"))
    assert not re.search(r"<code>whs_[^<]+</code>", operator.page("/operate/webhooks"))

    service.record(duel(20, "ann", "bob", ladder=league))
    deliverer = Deliverer(site.webhooks)
    deliverer.make()
    for attempt in range(7):  # nobody listens at port 9
        if attempt == 6:
            operator.post("/login", data={"key": admin_key})  # twelve hours are over
            assert "6 attempts failed: ConnectError" in words(operator.page("/operate/webhooks"))
        asyncio.run(deliverer.drain())
        clock.move(days=0.125)
    operator.post("/login", data={"key": admin_key})  # twelve hours are over
    told = words(operator.page("/operate/webhooks"))
    assert "http://127.0.0.1:9/hook league match.rated" in told
    number = re.search(r"/operate/webhooks/(\d+)", operator.page("/operate/webhooks"))[1]
    assert "failed" in words(operator.page(f"/operate/webhooks/{number}?state=dead"))
    operator.submit(f"/operate/webhooks/{number}/remove", on="/operate/webhooks")
    assert "There are no webhooks yet" in words(operator.page("/operate/webhooks"))


def test_a_failing_webhook_is_shown_and_tried_at_once(operator, site, league, service, clock):
    site.webhooks.allow_private = True
    hook, _ = site.webhooks.add("http://127.0.0.1:9/hook", ["match.rated"], league)
    service.record(duel(20, "ann", "bob", ladder=league))
    deliverer = Deliverer(site.webhooks)
    deliverer.make()
    asyncio.run(deliverer.drain())
    assert "1 failing" in words(operator.page("/operate"))
    assert "1 attempt failed: ConnectError" in words(operator.page("/operate/webhooks"))
    operator.submit(f"/operate/webhooks/{hook.webhook}/resume", on="/operate/webhooks")
    asyncio.run(deliverer.drain())
    assert "2 attempts failed: ConnectError" in words(operator.page("/operate/webhooks"))
    assert site.audit.page()[0].action == "webhook.resumed"


def test_an_operator_of_one_ladder_sees_and_changes_no_other(site, league, service):

    service.create_ladder("other", "elo", rules("elo"))
    text = site.keys.create("limited", ["admin"], [league])[1]
    browsing = Browsing(application(site, pages=pages))
    browsing.post("/login", data={"key": text})
    assert "other" not in words(browsing.page("/operate"))
    assert browsing.get("/ladders/other/operate").status_code == 403
    assert browsing.get("/operate/keys").status_code == 403
    assert browsing.get("/operate/audit?ladder=other").status_code == 403
    assert browsing.get(f"/ladders/{league}/operate").status_code == 200
    browsing.close()


def test_a_ladder_of_a_system_of_its_own_has_pages_and_keeps_its_file(operator, service):
    own = str(Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py")
    service.create_ladder("own", own, rules(own))
    service.record_many("own", [duel(1, "ann", "bob", ladder="own"), duel(2, "bob", "ann", ladder="own")])
    assert "so their rating" in operator.page("/ladders/own/matches/m2")
    name = service.ladder("own").rules.system.name
    page = operator.page("/ladders/own/operate/rules")
    assert f"<option selected>{name}</option>" in page
    field, value = re.search(r'name="(p\.[a-z_]+)" value="(\d+)"', page).groups()
    sent = operator.submit(
        "/ladders/own/operate/rules",
        **{"system": name, "shown_system": name, "preset": "", "shown_preset": "", field: str(int(value) + 1)},
        begin="start",
    )
    assert sent.status_code == 303
    for _ in range(100):
        if service.ladder("own").rules.values()[field[2:]] == int(value) + 1:
            break
        time.sleep(0.1)
    assert service.ladder("own").system == own
    assert service.ladder("own").rules.values()[field[2:]] == int(value) + 1


def test_a_link_fills_no_confirmation(operator, site, league):
    key = site.keys.create("servers", ["report"])[0].key
    for page in (f"/ladders/{league}/operate/season", f"/ladders/{league}/operate/archive"):
        assert field(operator.page(f"{page}?confirm={league}"), "confirm") == ("", None)
    assert field(operator.page(f"/operate/keys/{key}/revoke?confirm=servers"), "confirm") == ("", None)


def test_a_refused_form_shows_no_page_that_its_sender_may_not_see(site, league):
    key = site.keys.create("reader", ["read"])[1]
    browsing = Browsing(application(site, pages=pages))
    browsing.post("/login", data={"key": key, "to": "/"})
    proof = re.search(r'name="proof" value="([^"]+)"', browsing.page("/"))[1]
    for address in ("/operate/keys", f"/ladders/{league}/operate/settings", f"/ladders/{league}/operate/season"):
        answer = browsing.post(address, data={"proof": proof, "name": "x", "title": "x"})
        assert answer.status_code == 403
        assert '<form method="post" action="/operate' not in answer.text
        assert "That is not allowed" in words(answer.text)
    browsing.close()


def test_falls_by_inactivity_are_previewed_and_applied_once(operator, admin_key, anyone, service, clock):
    rule = {"placement": 2, "active_days": 1000.0, "inactivity": "rating", "grace_days": 3.0, "rating_decay": 10.0}
    clock.move(days=-10)
    service.create_ladder("idle", "elo", rules("elo"), Settings().changed(rule))
    service.record_many("idle", [duel(number, "ann", "bob", ladder="idle") for number in (1, 2)])
    top = ratings(service, "idle")["ann"]
    at = "/ladders/idle/operate/decay"
    assert f'href="{at}"' in operator.page("/ladders/idle/operate")
    now = words(operator.page(at))
    assert "A rating falls by 10.00 for each whole week after 3 days" in now
    assert "Now: inactivity lowers no rating" in now
    assert "Lower these ratings now" not in now
    ahead = words(operator.page(f"{at}?days=12"))
    assert "After 12 days without matches: inactivity lowers ratings 1 of 2 players would move" in ahead
    assert f"ann {top:,.0f} {top - 10:,.0f} −10.0" in ahead
    assert "Lower these ratings now" not in ahead
    clock.move(days=12)  # the session has ended
    operator.post("/login", data={"key": admin_key, "to": "/operate"})
    assert "Lower these ratings now" in words(operator.page(at))
    assert ratings(service, "idle")["ann"] == top
    done = operator.submit(at)
    assert (done.status_code, done.headers["location"]) == (303, "/ladders/idle/operate")
    assert ratings(service, "idle")["ann"] == top - 10
    assert "Inactivity lowered 1 rating." in words(operator.page("/ladders/idle/operate"))
    operator.submit(at, on=at)
    assert "Inactivity lowers no rating now." in words(operator.page("/ladders/idle/operate"))
    assert ratings(service, "idle")["ann"] == top - 10
    assert "ratings.decayed" in words(operator.page("/operate/audit"))
    assert anyone.get(at).status_code in (303, 401, 403)
    service.change_settings("idle", {"inactivity": "leave"})
    assert f'href="{at}"' not in operator.page("/ladders/idle/operate")
    assert "Inactivity does not lower ratings on this ladder: inactivity is set to leave" in words(operator.page(at))
    refused = operator.submit(at, on="/ladders/idle/operate")
    assert refused.status_code == 409
    assert "expected inactivity=rating" in words(refused.text)


def test_a_preview_that_takes_long_is_followed_on_its_page_and_cancelled_there(operator, site, league, service):
    held, go = threading.Event(), threading.Event()
    site.jobs.begin("rebuild", league, lambda _: held.set() or (go.wait(60) and {}))
    assert held.wait(20)
    site.ladder_work.small = -1
    at = f"/ladders/{league}/operate/correct?what=void&match=m2"
    began = operator.get(at)
    assert began.status_code == 303
    following = began.headers["location"]
    page = operator.page(following)
    assert re.search(r'id="preview" data-every="1"', page)
    assert "waiting for 1 job before it" in words(page)
    name = re.search(r"job=(job_\w+)", following)[1]
    answer = operator.submit(f"/ladders/{league}/operate/jobs/cancel", on=f"/ladders/{league}/operate", job=name)
    assert answer.status_code == 303
    go.set()
    deadline = time.monotonic() + 20
    while site.jobs.find(name).state == "running" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert site.jobs.find(name).state == "cancelled"
    assert "There is no preview" in words(operator.page(following))


def test_a_job_is_cancelled_on_the_pages_of_its_own_ladder_alone(operator, site, league, service):
    service.create_ladder("other", "elo", rules("elo"))
    go = threading.Event()
    job, _ = site.jobs.begin("rebuild", "other", lambda _: go.wait(20) and {})
    operator.submit(f"/ladders/{league}/operate/jobs/cancel", on=f"/ladders/{league}/operate", job=job.job)
    go.set()
    deadline = time.monotonic() + 20
    while site.jobs.find(job.job).state == "running" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert site.jobs.find(job.job).state == "done"


def test_under_another_system_ratings_are_listed_without_gains(operator, league):
    page = words(operator.page(f"/ladders/{league}/operate/rules?system=glicko2&preset=&begin=start&look=1"))
    assert "a higher number is not a gain" in page
    assert "Ratings before and after" in page
    assert "Who gains" not in page


def test_a_running_job_shows_how_long_it_will_still_take(operator, site, league, service, clock):
    reached, go = threading.Event(), threading.Event()

    def work(progress):
        progress(3)
        reached.set()
        return go.wait(60) and {}

    site.jobs.begin("rebuild", league, work)
    assert reached.wait(20)
    clock.move(seconds=30)
    left = 30 / 3 * (service.ladder(league).position - 3)  # ten seconds for each of the other events
    assert f"about {left:.0f} s left" in words(operator.page(f"/ladders/{league}/operate"))
    go.set()
