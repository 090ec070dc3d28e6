"""Heartbeats: reads of a ticket by its own party and its backend keep it in its queue, refused ones do not."""

import pytest

from evenmatch.accounts.keys import Keys
from evenmatch.errors import StoreError
from evenmatch.operations.service import Service
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_service import WRITE_EVERY
from protocol_server import wait_for
from server_process import Served

QUEUE = {"policy": {"team_size": 2, "max_odds": "none"}, "rules": {"heartbeat": 30}}
TICKETS = "/v1/ladders/duel/tickets"
READ, POLL, STREAM, HEARTBEAT = ("GET", ""), ("GET", "?after=0&wait=1"), ("GET", "/events"), ("POST", "/heartbeat")


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def ticket(admin):
    for ladder in ("duel", "arena"):
        admin.post("/v1/ladders", json={"name": ladder, "system": "elo"})
        admin.put(f"/v1/ladders/{ladder}/queues/main", json=QUEUE)
    told = admin.post(TICKETS, json={"members": [{"player": "ann"}], "queues": ["main"]})
    assert told.status_code == 201, told.text
    return told.json()["ticket"]


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


def token(asking, headers, player):
    return bearer(asking.post("/v1/tokens", json={"player": player}, headers=headers).json()["token"])


def test_a_refused_read_is_no_heartbeat(asking, site, keys, ticket, clock):
    revoked, text = site.keys.create("was a backend", ["queue"])
    strangers = [token(asking, keys["queue"], "bob"), keys["read"], token(asking, bearer(text), "ann"), {}]
    strangers.append(bearer(site.keys.create("of arena", ["queue"], ["arena"])[1]))
    site.keys.revoke(revoked.key)
    joined_at = clock()
    clock.move(seconds=3)
    for headers in strangers:
        for method, path in (READ, POLL, STREAM, HEARTBEAT):
            told = asking.request(method, f"{TICKETS}/{ticket}{path}", headers=headers)
            assert told.status_code in (401, 403), told.text
            site.queue_service.heartbeats.write()
            assert seen_at(site.service, ticket) == joined_at, (method, path)


def test_an_answer_to_the_ticket_of_another_party_does_not_name_its_players(asking, keys, ticket):
    mallory = token(asking, keys["queue"], "mallory")
    answers = [("POST", "/accept", {}), ("POST", "/decline", {}), ("DELETE", "", None)]
    answers += [("POST", "/accept", {"player": "mallory", "offer": 1})]
    read = asking.get(f"{TICKETS}/{ticket}", headers=mallory)
    for method, path, body in answers:
        told = asking.request(method, f"{TICKETS}/{ticket}{path}", json=body, headers=mallory)
        assert (told.status_code, told.json()["detail"]) == (403, read.json()["detail"]), path
        assert "ann" not in told.text
    told = asking.post(f"{TICKETS}/{ticket}/accept", json={"player": "mallory"}, headers=keys["queue"])
    assert (told.status_code, "its players are 'ann'" in told.text) == (422, True)
    left = asking.delete(f"{TICKETS}/{ticket}", headers=token(asking, keys["queue"], "ann"))
    assert (left.status_code, left.json()["state"]) == (200, "gone")


def test_a_player_who_was_renamed_while_waiting_keeps_the_ticket(asking, admin, site, keys, ticket, clock):
    assert admin.post("/v1/players/ann/rename", json={"to": "anna"}).status_code == 200
    anna = token(asking, keys["queue"], "anna")
    for method, path in (READ, POLL, HEARTBEAT):
        clock.move(seconds=3)
        assert asking.request(method, f"{TICKETS}/{ticket}{path}", headers=anna).status_code in (200, 204), path
        site.queue_service.heartbeats.write()
        assert seen_at(site.service, ticket) == clock(), path
    assert asking.get(f"{TICKETS}/{ticket}", headers=token(asking, keys["queue"], "annabel")).status_code == 403
    left = asking.delete(f"{TICKETS}/{ticket}", headers=anna)
    assert (left.status_code, left.json()["state"]) == (200, "gone")


@pytest.mark.parametrize("who", ["player", "backend"])
def test_reads_by_its_own_party_and_by_its_backend_are(asking, site, keys, ticket, clock, who):
    headers = keys["queue"] if who == "backend" else token(asking, keys["queue"], "ann")
    for method, path in (READ, POLL, HEARTBEAT):
        clock.move(seconds=3)
        told = asking.request(method, f"{TICKETS}/{ticket}{path}", headers=headers)
        assert told.status_code in (200, 204), told.text
        site.queue_service.heartbeats.write()
        assert seen_at(site.service, ticket) == clock(), (method, path)


def test_heartbeats_that_could_not_be_written_are_written_later(site, admin, ticket, clock, monkeypatch):
    def fail(*_):
        raise StoreError("the disk is full")

    clock.move(seconds=20)
    assert admin.post(f"{TICKETS}/{ticket}/heartbeat").status_code == 204
    heartbeats = site.queue_service.heartbeats
    with monkeypatch.context() as broken:
        broken.setattr("evenmatch.queues.queue_sql.set_heartbeats", fail)
        with pytest.raises(StoreError):
            heartbeats.write()
    assert seen_at(site.service, ticket) == clock() - 20_000_000
    heartbeats.write()
    assert seen_at(site.service, ticket) == clock()


def test_a_process_without_matchmakers_writes_heartbeats(database_url, tmp_path):
    with Service.open(str(database_url)) as service:
        key = Keys(service.database, service.clock).create("operator", ["admin"])[1]
        with Served(str(database_url), tmp_path, EVENMATCH_MATCHMAKER="false") as process, process.client(key) as admin:
            admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
            admin.put("/v1/ladders/duel/queues/main", json=QUEUE)
            ticket = admin.post(TICKETS, json={"members": [{"player": "ann"}], "queues": ["main"]}).json()["ticket"]
            joined_at = seen_at(service, ticket)
            assert admin.get(f"{TICKETS}/{ticket}").status_code == 200
            wait_for(lambda: seen_at(service, ticket) > joined_at, WRITE_EVERY + 10)


def seen_at(service, ticket):
    """When the last heartbeat of a ticket of the ladder duel was, as the database says."""
    with service.database.read() as store:
        return queue_sql.read_heartbeats(store, store.head("duel").ladder, [ticket])[ticket]
