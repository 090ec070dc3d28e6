"""Operators correct what counts, over HTTP: seen before it is done, done once for an id, told afterwards."""

import pytest

from ledger.sample_matches import duel, ratings

LADDER = "/v1/ladders/duel"


@pytest.fixture
def played_ratings(admin, service):
    """Ann beat Bob, then Eve beat Ann, who was the favourite."""
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    service.record_many("duel", [duel(1, "ann", "bob", "duel"), duel(2, "eve", "ann", "duel")])
    return ratings(service, "duel")


def test_a_void_is_seen_done_told_and_lifted(admin, service, played_ratings):
    sent = {"match_id": "m1", "reason": "a crash", "id": "v1"}
    seen = admin.post(f"{LADDER}/voids", json=sent, params={"preview": "true"}).json()
    assert (seen["preview"], seen["effect"]["matches"], seen["effect"]["moved"]) == (True, 1, 3)
    moves = {one["player"]: (one["before"], one["after"]) for one in seen["effect"]["moves"]}
    assert moves["bob"] == (1484.0, None)
    assert moves["eve"] == (round(played_ratings["eve"], 2), 1516.0)  # two newcomers met: half of 32
    assert ratings(service, "duel") == played_ratings

    done = admin.post(f"{LADDER}/voids", json=sent).json()
    assert (done["there_already"], done["preview"]) == (False, False)
    assert done["effect"] == seen["effect"]
    assert ratings(service, "duel") == {"eve": 1516.0, "ann": 1484.0}
    assert admin.post(f"{LADDER}/voids", json=sent).json()["there_already"]
    assert admin.post(f"{LADDER}/voids", json={**sent, "id": "v2"}).status_code == 409
    listed = admin.get(f"{LADDER}/voids").json()["items"]
    assert [(one["match_id"], one["reason"], one["id"]) for one in listed] == [("m1", "a crash", "v1")]

    assert admin.delete(f"{LADDER}/voids/m1", params={"reason": "it was none"}).status_code == 200
    assert ratings(service, "duel") == played_ratings
    assert admin.get(f"{LADDER}/voids").json() == {"items": [], "next": None}
    assert admin.delete(f"{LADDER}/voids/m1").status_code == 409


def test_a_ban_by_refund_gives_the_victims_back_what_they_lost(admin, service, played_ratings):
    sent = {"player": "ann", "rule": "refund", "since": "2026-01-01T00:30:00Z", "reason": "aimbot"}
    assert admin.post(f"{LADDER}/bans", json=sent).status_code == 200
    assert ratings(service, "duel")["bob"] == 1500.0
    (listed,) = admin.get(f"{LADDER}/bans").json()["items"]
    assert (listed["player"], listed["said"]) == (
        "ann",
        {"rule": "refund", "since": "2026-01-01T00:30:00Z", "until": None},
    )
    seen = admin.delete(f"{LADDER}/bans/ann", params={"preview": "true"}).json()
    assert [one["player"] for one in seen["effect"]["moves"]] == ["bob"]
    assert admin.delete(f"{LADDER}/bans/ann").status_code == 200
    assert ratings(service, "duel") == played_ratings
    assert admin.delete(f"{LADDER}/bans/ann").status_code == 409


def test_what_is_not_there_is_not_found(admin, played_ratings):
    assert admin.post(f"{LADDER}/voids", json={"match_id": "m9"}).status_code in (404, 422)
    assert admin.post(f"{LADDER}/bans", json={"player": "joe"}).status_code in (404, 422)
    assert admin.delete(f"{LADDER}/bans/joe").status_code == 404
    assert admin.get("/v1/ladders/none/voids").status_code == 404
    assert admin.post(f"{LADDER}/bans", json={"player": "ann", "rule": "shadow"}).status_code == 422
    early = {"player": "ann", "since": "0001-01-01T00:00:00+14:00"}  # in the year 0 of UTC
    assert admin.post(f"{LADDER}/bans", json=early).status_code == 422
    assert admin.post(f"{LADDER}/voids", json={"match_id": "m1", "id": "a\0b"}).status_code == 422
    half = admin.post(
        f"{LADDER}/voids", content=b'{"match_id": "\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert half.status_code == 422


def test_each_deed_is_in_the_trail_once_with_who_did_it(admin, played_ratings):
    void = {"match_id": "m2", "id": "v"}
    told = [admin.post(f"{LADDER}/voids", json=void, headers={"X-Request-Id": f"r{at}"}) for at in range(2)]
    assert [one.headers["x-request-id"] for one in told] == ["r0", "r1"]
    found = admin.get("/v1/audit", params={"ladder": "duel"}).json()["items"]
    (audit_entry,) = [one for one in found if one["action"] == "match.voided"]
    assert (audit_entry["target"], audit_entry["ladder"], audit_entry["request"]) == ("m2", "duel", "r0")
    assert audit_entry["actor"].startswith("key em_")


def test_a_refused_correction_leaves_no_trace(admin, played_ratings):
    admin.delete(f"{LADDER}/voids/m2")
    assert all(one["action"] != "match.reinstated" for one in admin.get("/v1/audit").json()["items"])


def test_players_are_renamed_merged_and_erased(admin, service, played_ratings):
    assert admin.post("/v1/players/ann/rename", json={"to": "anna"}).json() == {"player": "anna", "changed": True}
    assert admin.post("/v1/players/ann/rename", json={"to": "anna"}).json()["changed"] is False
    assert admin.post("/v1/players/anna/rename", json={"to": "bob"}).status_code == 409
    assert admin.post("/v1/players/bob/merge", json={"into": "ann"}).status_code == 409  # they met
    merged = admin.post("/v1/players/bob/merge", json={"into": "eve"}).json()
    assert merged.pop("note").startswith("from now on, a match reported with two of the player's names")
    assert merged == {"player": "eve", "ladders": ["duel"]}
    pseudonym = admin.post("/v1/players/anna/erase").json()["pseudonym"]
    assert admin.post("/v1/players/anna/erase").status_code == 404
    assert set(ratings(service, "duel")) == {pseudonym, "eve"}
    trail = admin.get("/v1/audit").json()["items"]
    assert [one["action"] for one in trail[:3]] == ["player.erased", "player.merged", "player.renamed"]
    assert trail[0]["target"] == pseudonym


def test_players_are_changed_by_an_admin_of_all_ladders_alone(asking, admin, site, played_ratings):
    own = {"Authorization": f"Bearer {site.keys.create('one', ['admin'], ['duel'])[1]}"}
    assert asking.post("/v1/players/ann/rename", json={"to": "x"}, headers=own).status_code == 403
    assert asking.post("/v1/players/ann/erase", headers=own).status_code == 403
    assert asking.post(f"{LADDER}/voids", json={"match_id": "m1"}, headers=own).status_code == 200


def test_late_matches_are_previewed_inserted_at_their_time_and_noted(admin, service, played_ratings):
    teams = [{"place": 1, "players": [{"player": "zoe"}]}, {"place": 2, "players": [{"player": "ann"}]}]
    late = {"id": "late", "played_at": "2026-01-01T01:30:00Z", "teams": teams}
    sent = {"matches": [late], "reason": "the server was offline", "id": "i1"}
    seen = admin.post(f"{LADDER}/late-matches", json=sent, params={"preview": "true"}).json()
    assert ratings(service, "duel") == played_ratings
    done = admin.post(f"{LADDER}/late-matches", json=sent).json()
    assert done["effect"] == seen["effect"]
    moves = {one["player"]: (one["before"], one["after"]) for one in done["effect"]["moves"]}
    lost = 32 / (1 + 10 ** ((1500 - 1516) / 400))  # by ann, to a newcomer, before eve beat her
    assert moves["zoe"] == (None, round(1500 + lost, 2))
    assert "bob" not in moves
    listed = admin.get(f"{LADDER}/matches").json()["items"]
    assert [(one["match_id"], one["late"]) for one in listed] == [
        ("m2", None),
        ("late", "recorded late, and rated as of the time it was played"),
        ("m1", None),
    ]
    assert admin.post(f"{LADDER}/late-matches", json=sent).json()["there_already"]
    assert admin.post(f"{LADDER}/late-matches", json={**sent, "id": "i2"}).status_code == 409
    newest = {**late, "id": "new", "played_at": "2026-01-05T00:00:00Z"}
    refused = admin.post(f"{LADDER}/late-matches", json={"matches": [newest]})
    assert (refused.status_code, "report it as usual" in refused.json()["detail"]) == (422, True)
    mixed = admin.post(f"{LADDER}/late-matches", json={"matches": [late, {**newest, "rated": False}]})
    assert (mixed.status_code, "in two requests" in mixed.json()["detail"]) == (422, True)
    noted = admin.get("/v1/audit").json()["items"][0]
    body = {"matches": 1, "reason": "the server was offline"}
    assert (noted["action"], noted["target"], noted["body"]) == ("matches.inserted", "late", body)
