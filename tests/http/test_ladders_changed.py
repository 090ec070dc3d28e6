"""Operators make ladders and change them, over HTTP."""

import pytest

from ledger.sample_matches import duel, team_match

SIDED = [
    {"players": [{"player": "ann"}], "place": 1},
    {"players": [{"player": "bob"}], "place": 2},
]
DUEL = {"name": "duel", "system": "elo"}


def test_a_ladder_is_made_and_told_with_every_parameter_and_setting(admin, reader):
    settings = {
        "title": "Duel",
        "placement": 1,
        "divisions": [{"name": "Low", "lowest": 1}, {"name": "Top", "lowest": 90}],
    }
    made = admin.post("/v1/ladders", json={**DUEL, "parameters": {"k": 20}, "settings": settings})
    assert made.status_code == 201
    told = made.json()
    assert (told["name"], told["title"], told["system"], told["matches"]) == ("duel", "Duel", "elo", 0)
    assert (told["parameters"]["k"], told["parameters"]["start"]) == (20.0, 1500.0)
    assert told["settings"]["divisions"] == settings["divisions"]
    assert told["settings"]["active_days"] == 30.0  # as it is for new ladders


REFUSED = [  # what is sent, the status, words of the answer
    ({"name": "duel"}, 422, "system"),
    ({**DUEL, "system": "elo2"}, 422, "did you mean 'elo'"),
    ({**DUEL, "system": "elsewhere/own.py"}, 422, "unknown system"),
    ({**DUEL, "preset": "fast"}, 422, "preset"),
    ({**DUEL, "parameters": {"k": -1}}, 422, "k"),
    ({**DUEL, "parameters": {"speed": 1}}, 422, "speed"),
    ({**DUEL, "name": " "}, 422, "name"),
    ({**DUEL, "name": "a\0b"}, 422, "name"),
    ({**DUEL, "settings": {"placement": "10"}}, 422, "settings.placement"),
    ({**DUEL, "settings": {"divisions": [{"name": "Top", "lowest": 5}]}}, 422, "expected 1"),
    ({**DUEL, "settings": {"reset": "half"}}, 422, "settings.reset"),
    ({**DUEL, "extra": 1}, 422, "extra"),
    ({**DUEL, "settings": {"title": "a\0b"}}, 422, "without NUL"),
]


@pytest.mark.parametrize(("sent", "status", "words"), REFUSED)
def test_a_wrong_ladder_is_refused_in_words(admin, sent, status, words):
    told = admin.post("/v1/ladders", json=sent)
    assert (told.status_code, told.headers["content-type"]) == (status, "application/problem+json")
    assert words in told.json()["detail"]


def test_a_name_that_is_taken_is_a_conflict(admin):
    assert admin.post("/v1/ladders", json=DUEL).status_code == 201
    assert admin.post("/v1/ladders", json=DUEL).status_code == 409


def test_settings_change_alone_that_are_named(admin):
    admin.post("/v1/ladders", json={**DUEL, "settings": {"title": "Duel", "team_size": 2}})
    told = admin.patch("/v1/ladders/duel", json={"placement": 3}).json()["settings"]
    assert (told["title"], told["team_size"], told["placement"]) == ("Duel", 2, 3)
    assert admin.patch("/v1/ladders/duel", json={"team_size": None}).json()["settings"]["team_size"] is None
    assert admin.patch("/v1/ladders/duel", json={"placement": None}).status_code == 422
    assert admin.patch("/v1/ladders/none", json={}).status_code == 404


def test_settings_that_are_so_already_are_no_event_and_no_deed(admin):
    admin.post("/v1/ladders", json=DUEL)
    assert admin.patch("/v1/ladders/duel", json={"placement": 10}).json()["events"] == 1
    assert [one["action"] for one in admin.get("/v1/audit").json()["items"] if one["ladder"]] == ["ladder.created"]


def test_other_rules_are_a_job_that_rates_all_anew(admin, service, reader):
    admin.post("/v1/ladders", json=DUEL)
    service.record(duel(1, "ann", "bob", "duel"))
    seen = admin.post("/v1/ladders/duel/rules/preview", json={"parameters": {"k": 10}}).json()
    assert [(one["player"], one["before"], one["after"]) for one in seen["moves"]] == [
        ("ann", 1516.0, 1505.0),  # 32 / 2, and 10 / 2: both have an expected score of 1/2
        ("bob", 1484.0, 1495.0),
    ]
    assert service.ladder("duel").rules.values()["k"] == 32  # a preview changes nothing
    begun = admin.put("/v1/ladders/duel/rules", json={"parameters": {"k": 10}, "id": "slower"})
    assert begun.status_code == 202
    job = admin.get(begun.headers["location"], params={"wait": 20}).json()
    assert (job["kind"], job["state"], job["result"]["effect"]) == ("correction", "done", seen)
    assert (
        dict(service.named(service.view("duel").snapshot.among(service.view("duel").snapshot.board.player)))[
            "ann"
        ].rating
        == 1505
    )
    actions = [
        (one["action"], one["body"]) for one in admin.get("/v1/audit", params={"ladder": "duel"}).json()["items"]
    ]
    assert actions[0] == ("rules.changed", {"parameters": {"k": 10}, "id": "slower"})


def test_rules_from_now_leave_what_there_is(admin, service):
    admin.post("/v1/ladders", json=DUEL)
    service.record(duel(1, "ann", "bob", "duel"))
    begun = admin.put("/v1/ladders/duel/rules", json={"parameters": {"k": 10}, "from": "now"}).json()
    assert admin.get(f"/v1/jobs/{begun['job']}", params={"wait": 20}).json()["state"] == "done"
    receipt = service.record(duel(2, "eve", "joe", "duel"))
    assert receipt.teams[0][0].change.after == 1505
    assert admin.put("/v1/ladders/duel/rules", json={"system": "glicko2", "from": "now"}).status_code == 422


def test_rules_that_cannot_rate_a_match_fail_with_it_and_change_nothing(admin, service):
    admin.post("/v1/ladders", json=DUEL)
    service.record_many(
        "duel", [duel(1, "ann", "bob", "duel"), team_match(7, (1, "eve"), (2, "joe"), (3, "ann"), ladder="duel")]
    )
    begun = admin.put("/v1/ladders/duel/rules", json={"system": "trophies"}).json()  # which knows two teams alone
    job = admin.get(f"/v1/jobs/{begun['job']}", params={"wait": 20}).json()
    assert (job["state"], [one["where"] for one in job["problems"]]) == ("failed", ["m7"])
    assert service.ladder("duel").system == "elo"
    begun = admin.put("/v1/ladders/duel/rules", json={"system": "trophies", "skip_bad": True}).json()
    assert admin.get(f"/v1/jobs/{begun['job']}", params={"wait": 20}).json()["result"]["effect"]["matches"] == 1


def test_a_season_is_opened_once_for_an_id(admin, service):
    admin.post("/v1/ladders", json=DUEL)
    service.record(duel(1, "ann", "bob", "duel"))
    opened = admin.post("/v1/ladders/duel/seasons", json={"title": "Two", "reset": "full", "id": "s2"}).json()
    assert (opened["number"], opened["title"], opened["closed_at"]) == (2, "Two", None)
    again = admin.post("/v1/ladders/duel/seasons", json={"title": "Two", "reset": "full", "id": "s2"}).json()
    assert again == opened
    assert admin.post("/v1/ladders/duel/seasons", json={"title": "Three", "id": "s2"}).status_code == 409
    assert len(service.seasons("duel")) == 2


def test_ratings_from_elsewhere_begin_players(admin, service):
    admin.post("/v1/ladders", json=DUEL)
    sent = {"ratings": {"ann": 1710.5, "bob": 1300}, "id": "old"}
    assert admin.post("/v1/ladders/duel/start-ratings", json=sent).json() == {"players": 2}
    assert admin.post("/v1/ladders/duel/start-ratings", json=sent).json() == {"players": 0}
    assert service.record(duel(1, "ann", "bob", "duel")).teams[0][0].change.before == 1710.5
    assert admin.post("/v1/ladders/duel/start-ratings", json={"ratings": {"ann": 1}}).status_code == 422


def test_an_admin_of_one_ladder_makes_no_other_but_changes_that_one(asking, admin, site):
    admin.post("/v1/ladders", json=DUEL)
    text = site.keys.create("one", ["admin"], ["duel"])[1]
    own = {"Authorization": f"Bearer {text}"}
    assert asking.post("/v1/ladders", json={**DUEL, "name": "b"}, headers=own).status_code == 403
    assert asking.patch("/v1/ladders/duel", json={"title": "T"}, headers=own).json()["title"] == "T"


def test_what_a_ladder_by_even_has_learned_is_listed_with_its_intervals_and_none_of_one_by_elo(admin, reader):
    for name, system in (("arena", "even"), ("duel", "elo")):
        assert admin.post("/v1/ladders", json={"name": name, "system": system}).status_code == 201
    before = {number["name"]: number for number in reader.get("/v1/ladders/arena/learned").json()["items"]}
    for number in range(5):
        match = {"id": f"m{number}", "played_at": f"2026-01-0{number + 1}T12:00:00Z", "teams": SIDED}
        assert admin.post("/v1/ladders/arena/matches", json=match).status_code in (200, 201)
    learned = {number["name"]: number for number in reader.get("/v1/ladders/arena/learned").json()["items"]}
    assert list(learned)[:6] == ["side", "player", "leavers", "newcomers", "entry", "experience"]
    assert before["side"]["value"] == 0 < learned["side"]["value"]
    for name in ("side", "player", "newcomers"):
        assert learned[name]["low"] < learned[name]["value"] < learned[name]["high"]
    assert learned["margin"]["low"] is None
    assert reader.get("/v1/ladders/duel/learned").json()["items"] == []
    assert reader.get("/v1/ladders/none/learned").status_code == 404
