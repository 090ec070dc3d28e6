"""From the odds of an offer to the audit of the queue, through a real socket."""

import json

import pytest

from run_command import run_command
from server_process import Served, request_json, wait_until_waiting_ends

ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
QUEUE = {"policy": {**ANYBODY, "team_size": 1}, "rules": {"accept_within": 300, "heartbeat": 600, "tick": 0.1}}
LADDER = {"name": "arena", "system": "wager", "settings": {"placement": 1, "team_size": 1, "stomp_margin": 3}}
ON = "/v1/ladders/arena"
RANKS = {"ann": 4.0, "bob": 1.0}  # 16 / 17 for ann: YA² / (YA² + OA²)


@pytest.fixture
def served(either_database, tmp_path):
    with Served(str(either_database), tmp_path) as process:
        yield process


@pytest.fixture
def admin(served, either_database):
    made = run_command("key", "create", "operator", "--scope", "admin", "--db", either_database)
    with served.client(made.out.strip()) as client:
        request_json(client, "POST", "/v1/ladders", LADDER, status=201)
        request_json(client, "POST", f"{ON}/start-ratings", {"id": "start", "ratings": RANKS})
        request_json(client, "PUT", f"{ON}/queues/main", QUEUE)
        yield client


def test_a_match_is_predicted_played_and_audited(admin, either_database):
    tickets = [
        request_json(admin, "POST", f"{ON}/tickets", {"queues": ["main"], "members": [{"player": name}]}, status=201)
        for name in RANKS
    ]
    wait_until_waiting_ends(admin, f"{ON}/tickets/{tickets[1]['ticket']}", tickets[1]["change"])
    offer = request_json(admin, "GET", f"{ON}/tickets/{tickets[0]['ticket']}")["offer"]
    line_up = {"teams": [{"players": ["ann"]}, {"players": ["bob"]}]}
    odds = request_json(admin, "POST", f"{ON}/odds", line_up)["teams"]
    assert sorted(offer["odds"]) == pytest.approx(sorted(team["expected"] for team in odds), abs=1e-9)
    assert max(offer["odds"]) == pytest.approx(16 / 17, abs=1e-9)
    for ticket in tickets:
        request_json(admin, "POST", f"{ON}/tickets/{ticket['ticket']}/accept", {"offer": offer["offer"]})
    match = request_json(admin, "GET", f"{ON}/tickets/{tickets[0]['ticket']}")["match"]
    live = request_json(admin, "GET", f"{ON}/live/{match['match_id']}")
    assert live["odds"] == offer["odds"]
    teams = [[player["player"] for player in team] for team in match["teams"]]
    report = {
        "id": match["match_id"],
        "played_at": "2026-01-01T12:00:00Z",
        "teams": [{"score": 5 if team == ["ann"] else 1, "players": [{"player": team[0]}]} for team in teams],
    }
    receipts = request_json(admin, "POST", f"{ON}/matches", report)["teams"]
    receipt = next(line for team in receipts for line in team if line["player"] == "ann")
    assert offer["stakes"].keys() == {"ann"}
    assert offer["stakes"]["ann"]["before"] == receipt["before"]
    assert offer["stakes"]["ann"]["after"]["win"] == receipt["after"] == 4.05  # 4.00 + 4.00/20 · 1.00/4.00
    assert offer["stakes"]["ann"]["after"]["loss"] == 3.2  # 4.00 - 4.00/20 · 4.00/1.00
    assert offer["stakes"]["ann"]["change"]["draw"] == 0  # for the team with the higher average
    audit = request_json(admin, "GET", f"{ON}/queues/main/audit")
    assert (audit["formed"], audit["overall"]["matches"]) == (1, 1)
    assert audit["overall"]["brier"] == {"value": pytest.approx((1 / 17) ** 2), "low": None, "high": None}
    assert audit["overall"]["stomps"]["value"] == 1.0
    assert request_json(admin, "GET", f"{ON}/queues/main/audit?until=2026-01-01T00:00:00Z")["formed"] == 0
    assert admin.get(f"{ON}/queues/side/audit").status_code == 404
    printed = run_command("queue", "audit", "arena", "main", "--db", either_database)
    assert printed.out.startswith("queue main of ladder arena: 1 match formed, 1 played as predicted")
    told = json.loads(run_command("queue", "audit", "arena", "main", "--json", "--db", either_database).out)
    assert told["overall"]["brier"]["value"] == audit["overall"]["brier"]["value"]
    assert told["overall"]["slope"]["low"] is None
    metrics = admin.get("/metrics").text
    assert 'evenmatch_queue_brier{ladder="arena",queue="main"}' in metrics
