"""Whose reads keep a ticket in its queue: those of its own party and of its backend, and no refused one."""

import pytest

from evenmatch.service.queues.matchmaker import Matchmaker

QUEUE = {"policy": {"team_size": 2, "max_odds": "none"}, "rules": {"heartbeat": 30}}
TICKETS = "/v1/ladders/duel/tickets"
READ, POLL, STREAM, HEARTBEAT = ("GET", ""), ("GET", "?after=0&wait=1"), ("GET", "/events"), ("POST", "/heartbeat")


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def matchmaker(site, admin):
    for ladder in ("duel", "arena"):
        admin.post("/v1/ladders", json={"name": ladder, "system": "elo"})
        admin.put(f"/v1/ladders/{ladder}/queues/main", json=QUEUE)
    return Matchmaker(site.queue_service)


@pytest.fixture
def ticket(admin, matchmaker):
    told = admin.post(TICKETS, json={"members": [{"player": "ann"}], "queues": ["main"]})
    assert told.status_code == 201, told.text
    return told.json()["ticket"]


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


def token(asking, headers, player):
    return bearer(asking.post("/v1/tokens", json={"player": player}, headers=headers).json()["token"])


def passing(matchmaker, clock, ask):
    """The tickets that are dropped while something is asked every 15 seconds, for a minute."""
    dropped = ()
    for _ in range(4):
        dropped += matchmaker.step("duel").dropped
        clock.move(seconds=15)
        ask()
        matchmaker.queue_service.flush_seen()
    return dropped


def test_a_refused_read_keeps_no_ticket_alive(asking, site, keys, ticket, matchmaker, clock):
    revoked, text = site.keys.create("was a backend", ["queue"])
    strangers = [token(asking, keys["queue"], "bob"), keys["read"], token(asking, bearer(text), "ann"), {}]
    strangers.append(bearer(site.keys.create("of arena", ["queue"], ["arena"])[1]))
    site.keys.revoke(revoked.key)
    clock.move(seconds=3)

    def ask():
        for headers in strangers:
            for method, path in (READ, POLL, STREAM, HEARTBEAT):
                told = asking.request(method, f"{TICKETS}/{ticket}{path}", headers=headers)
                assert told.status_code in (401, 403), told.text

    assert passing(matchmaker, clock, ask) == (ticket,)


@pytest.mark.parametrize(
    ("who", "read"), [("player", READ), ("player", POLL), ("player", HEARTBEAT), ("backend", READ)]
)
def test_reads_of_its_own_party_and_of_its_backend_do(asking, keys, ticket, matchmaker, clock, who, read):
    headers = keys["queue"] if who == "backend" else token(asking, keys["queue"], "ann")
    method, path = read

    def ask():
        told = asking.request(method, f"{TICKETS}/{ticket}{path}", headers=headers)
        assert told.status_code in (200, 204), told.text

    assert passing(matchmaker, clock, ask) == ()
