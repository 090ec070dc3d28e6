"""Attributes, vetoes and maps through a real socket: from a queue that declares them to a match that is played."""

import json
import time

import pytest

from run_command import run_command
from server_process import Served, request_json, wait_until_waiting_ends

pytestmark = pytest.mark.slow

ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
ATTRIBUTES = {
    "mode": {"kind": "equal", "values": ["ctf", "dm"]},
    "platform": {"values": ["pc", "console"]},
    "input": {"values": ["pad", "keys"], "worth": 600},
}
POLICY = {**ANYBODY, "team_size": 1, "attributes": ATTRIBUTES, "maps": ["dust", "nuke", "mirage"], "vetoes": 2}
QUEUE = {"policy": POLICY, "rules": {"accept_within": 300, "heartbeat": 600, "tick": 0.1}}
ON = "/v1/ladders/arena"


@pytest.fixture
def served(either_database, tmp_path):
    with Served(str(either_database), tmp_path) as process:
        yield process


@pytest.fixture
def admin(served, either_database):
    made = run_command("key", "create", "operator", "--scope", "admin", "--db", either_database)
    with served.client(made.out.strip()) as client:
        request_json(
            client, "POST", "/v1/ladders", {"name": "arena", "system": "elo", "settings": {"team_size": 1}}, status=201
        )
        request_json(client, "PUT", f"{ON}/queues/main", QUEUE)
        yield client


def join(client, name, status=201, **wishes):
    body = {"queues": ["main"], "members": [{"player": name, **wishes}]}
    return request_json(client, "POST", f"{ON}/tickets", body, status=status)


def explained(client, ticket, accepts=bool):
    """What a ticket waits for, once the matchmaker runs and this is accepted."""
    for _ in range(600):
        waiting = request_json(client, "GET", f"{ON}/tickets/{ticket}")["waiting"]
        if waiting and accepts(waiting["main"]):
            return waiting["main"]
        time.sleep(0.1)
    raise AssertionError(f"{waiting} after a minute")


def test_a_match_is_played_with_what_its_players_accept(admin, served, either_database, tmp_path):
    declared = request_json(admin, "GET", f"{ON}/queues/main")["policy"]
    assert declared["attributes"]["input"] == {"kind": "meet", "values": ["pad", "keys"], "worth": 600}
    assert (declared["maps"], declared["vetoes"]) == (["dust", "nuke", "mirage"], 2)
    ann = join(admin, "ann", attributes={"platform": ["pc"], "mode": ["dm"]}, vetoes=["dust"])
    join(admin, "bob", attributes={"platform": ["console"]})
    waiting = explained(admin, ann["ticket"])
    assert waiting["within"] == 0
    assert waiting["attributes"] == {"platform": {"accepts": ["pc"], "players": 0}}
    assert "1 other player waits, 0 of them accept platform pc" in waiting["sentences"]

    kept = {"attributes": {"platform": ["pc", "console"]}, "vetoes": ["nuke"]}
    teams = [{"place": place, "players": [{"player": name}]} for place, name in ((1, "cat"), (2, "eve"))]
    request_json(
        admin, "POST", f"{ON}/matches", {"id": "first", "played_at": "2026-01-01T12:00:00Z", "teams": teams}
    )  # a filter is kept for players whom the ladder knows
    filter_out = request_json(admin, "PUT", f"{ON}/players/cat/filter", kept)
    assert (filter_out["attributes"], filter_out["vetoes"]) == (kept["attributes"], ["nuke"])
    cat = join(admin, "cat", attributes={"mode": ["dm"], "platform": ["pc"]})
    wait_until_waiting_ends(admin, f"{ON}/tickets/{ann['ticket']}", ann["change"])
    offer = request_json(admin, "GET", f"{ON}/tickets/{ann['ticket']}")["offer"]
    assert (offer["map"], offer["attributes"]) == ("mirage", {"mode": "dm", "platform": "pc", "input": "pad"})
    for ticket in (ann, cat):
        request_json(admin, "POST", f"{ON}/tickets/{ticket['ticket']}/accept", {})
    match = request_json(admin, "GET", f"{ON}/tickets/{cat['ticket']}")["match"]
    live = request_json(admin, "GET", f"{ON}/live/{match['match_id']}")
    for played in (match, live):
        assert (played["map"], played["attributes"]) == (offer["map"], offer["attributes"])

    dan = join(admin, "dan", attributes={"platform": ["console"]}, vetoes=["dust", "mirage"])  # bob has waited
    wait_until_waiting_ends(admin, f"{ON}/tickets/{dan['ticket']}", dan["change"])
    assert request_json(admin, "GET", f"{ON}/tickets/{dan['ticket']}")["offer"]["map"] == "nuke"
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"team_size": 1, "maps": ["dust"], "attributes": {"mode": {"values": ["ctf"]}}}))
    run_command("queue", "set", "arena", "side", "--policy", policy, "--db", either_database)
    listed = json.loads(run_command("queue", "list", "--ladder", "arena", "--json", "--db", either_database).out)
    side = next(queue for queue in listed if queue["queue"] == "side")
    assert side["policy"]["attributes"]["mode"]["values"] == ["ctf"]
