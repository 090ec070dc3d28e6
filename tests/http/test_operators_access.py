"""Keys, tokens, the trail and webhooks, over HTTP."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenmatch.http import site as http_site
from evenmatch.http.site import THREADS
from evenmatch.times import iso_time
from evenmatch.webhooks import webhook_sql


@pytest.fixture
def ladder(admin):
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    return "duel"


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


def test_a_key_is_shown_once_works_and_is_revoked(asking, admin, clock, ladder):
    made = admin.post("/v1/keys", json={"name": "server", "scopes": ["read"], "ladders": ["duel"]})
    assert made.status_code == 201
    told = made.json()
    assert (told["state"], told["scopes"], told["ladders"]) == ("good", ["read"], ["duel"])
    text = told.pop("text")
    assert text.startswith(told["key"] + "_")
    assert told in admin.get("/v1/keys").json()["items"]
    assert text not in admin.get("/v1/keys").text + admin.get("/v1/audit").text
    assert asking.post("/v1/keys", json={"name": "x", "scopes": ["read"]}, headers=bearer(text)).status_code == 403
    revoked = admin.delete(f"/v1/keys/{told['key']}").json()
    assert (revoked["state"], revoked["revoked_at"] is None) == ("revoked", False)
    clock.move(seconds=3)
    assert asking.get("/v1/ladders/duel/voids", headers=bearer(text)).status_code == 401


def test_a_key_that_would_expire_yesterday_or_is_for_no_ladder_there_is_is_refused(admin):
    past = admin.post("/v1/keys", json={"name": "k", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"})
    assert past.status_code == 422
    assert admin.post("/v1/keys", json={"name": "k", "scopes": ["read"], "ladders": ["none"]}).status_code in (404, 422)
    assert admin.post("/v1/keys", json={"name": "k", "scopes": ["root"]}).status_code == 422
    assert admin.post("/v1/keys", json={"name": "k", "scopes": []}).status_code == 422
    assert admin.delete("/v1/keys/em_aaaaaaaaaa").status_code == 404


def test_a_token_lets_a_player_queue_and_nothing_else(asking, keys, ladder, clock):
    made = asking.post("/v1/tokens", json={"player": "ann", "expires_in": 60}, headers=keys["queue"])
    assert made.status_code == 201
    told = made.json()
    assert (told["player"], told["expires_at"]) == ("ann", "2026-01-11T00:01:00Z")
    own = bearer(told["token"])
    assert asking.post("/v1/tokens", json={"player": "bob"}, headers=own).status_code == 403
    assert asking.post("/v1/ladders/duel/bans", json={"player": "bob"}, headers=own).status_code == 403
    assert asking.post("/v1/tokens", json={"player": "ann"}, headers=keys["read"]).status_code == 403
    assert (
        asking.post("/v1/tokens", json={"player": "ann", "expires_in": 10**6}, headers=keys["queue"]).status_code == 422
    )
    clock.move(seconds=61)
    assert asking.post("/v1/tokens", json={"player": "bob"}, headers=own).status_code == 401


HOOK = {"url": "https://93.184.216.34/hook", "events": ["match.rated"], "ladder": "duel"}


def test_a_webhook_is_made_listed_and_removed(admin, ladder):
    made = admin.post("/v1/webhooks", json=HOOK)
    assert made.status_code == 201
    told = made.json()
    secret = told.pop("secret")
    assert secret.startswith("whs_")
    assert admin.get("/v1/webhooks").json() == {"items": [told], "next": None}
    assert admin.get(f"/v1/webhooks/{told['webhook']}/deliveries").json() == {"items": [], "next": None}
    assert admin.delete(f"/v1/webhooks/{told['webhook']}").status_code == 200
    assert admin.delete(f"/v1/webhooks/{told['webhook']}").status_code == 404
    trail = admin.get("/v1/audit")
    assert [one["action"] for one in trail.json()["items"][:2]] == ["webhook.removed", "webhook.created"]
    assert secret not in trail.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "http://127.0.0.1/x"}, "which is not a public address; EVENMATCH_PRIVATE_WEBHOOKS allows others"),
        ({"url": "ftp://game.example/"}, "http"),
        ({"events": []}, "events"),
        ({"events": ["match.lost"]}, "events.0"),
    ],
)
def test_a_webhook_that_is_sent_nothing_is_refused(admin, ladder, change, words):
    told = admin.post("/v1/webhooks", json={**HOOK, **change})
    assert told.status_code == 422
    assert words in told.json()["detail"]


def test_names_that_resolve_slowly_hold_up_only_the_webhooks_of_their_ladder(asking, admin, site, ladder, monkeypatch):
    admin.post("/v1/ladders", json={"name": "team", "system": "elo"})
    monkeypatch.setattr(http_site, "RESOLVE_LIMIT", 0.5)
    release = threading.Event()
    site.webhooks.find = lambda host, port: [] if host == "quick.example" else [] * release.wait(30)
    own = bearer(site.keys.create("one", ["admin"], ["duel"])[1])
    count = THREADS + 4

    def add(number):
        return asking.post("/v1/webhooks", json={**HOOK, "url": f"http://x{number}.example/"}, headers=own)

    with ThreadPoolExecutor(count) as threads:
        asked = [threads.submit(add, number) for number in range(count)]
        time.sleep(0.2)
        begun = time.monotonic()
        assert admin.get("/v1/ladders/team").status_code == 200
        assert admin.post("/v1/webhooks", json={**HOOK, "ladder": "team", "url": "http://quick.example/"}).is_success
        answers = [one.result(20) for one in asked]
        assert time.monotonic() - begun < 5
        release.set()
    assert {(told.status_code, told.headers["retry-after"]) for told in answers} == {(503, "2")}
    told = {told.json()["detail"].partition(" was not resolved within 0.5 s; ")[2] for told in answers}
    assert told - {""} == {"the webhook was not created: check the name, or try again in a moment"}
    assert [hook["url"] for hook in admin.get("/v1/webhooks").json()["items"]] == ["http://quick.example/"]


def test_a_failing_webhook_is_shown_and_tried_at_once(admin, service, clock, ladder):
    number = admin.post("/v1/webhooks", json=HOOK).json()["webhook"]
    with service.database.write() as store:
        webhook_sql.insert_deliveries(store, number, [("match.rated", "{}")], clock.now)
        (first,) = webhook_sql.read_pending(store, number, 1)
        webhook_sql.count_attempt(store, first.delivery, next_at=2**50, delivered_at=None, error="no answer")
    (failing,) = admin.get("/v1/webhooks").json()["items"]
    assert (failing["failures"], failing["error"], failing["next_at"][:4]) == (1, "no answer", "2005")
    resumed = admin.post(f"/v1/webhooks/{number}/resume").json()
    assert (resumed["failures"], resumed["next_at"]) == (1, iso_time(clock.now))
    assert admin.get("/v1/webhooks").json()["items"] == [resumed]
    assert admin.get("/v1/audit").json()["items"][0]["action"] == "webhook.resumed"
    assert admin.post("/v1/webhooks/99/resume").status_code == 404


def test_a_dead_delivery_is_found_and_sent_again(admin, service, ladder):
    number = admin.post("/v1/webhooks", json=HOOK).json()["webhook"]
    sql = "INSERT INTO delivery (webhook, event, body, made_at, attempts, error) VALUES (?, ?, ?, ?, ?, ?)"
    with service.database.write() as store:
        store.run(sql, number, "match.rated", "{}", service.clock(), 6, "410")
    (dead,) = admin.get(f"/v1/webhooks/{number}/deliveries", params={"state": "dead"}).json()["items"]
    assert (dead["state"], dead["attempts"], dead["error"]) == ("dead", 6, "410")
    again = admin.post(f"/v1/deliveries/{dead['delivery']}/redeliver").json()
    assert (again["state"], again["attempts"]) == ("pending", 0)
    assert admin.get(f"/v1/webhooks/{number}/deliveries", params={"state": "dead"}).json()["items"] == []
    assert admin.post("/v1/deliveries/99/redeliver").status_code == 404


def test_an_admin_of_one_ladder_keeps_the_webhooks_of_that_one(asking, admin, site, ladder):
    own = bearer(site.keys.create("one", ["admin"], ["duel"])[1])
    whole = admin.post("/v1/webhooks", json={**HOOK, "ladder": None}).json()["webhook"]
    mine = asking.post("/v1/webhooks", json=HOOK, headers=own).json()["webhook"]
    assert asking.post("/v1/webhooks", json={**HOOK, "ladder": None}, headers=own).status_code == 403
    assert asking.post(f"/v1/webhooks/{whole}/resume", headers=own).status_code == 404  # as if there were none
    assert asking.delete(f"/v1/webhooks/{whole}", headers=own).status_code == 404
    assert asking.delete(f"/v1/webhooks/{mine}", headers=own).status_code == 200
