"""From the odds of an offer to the audit of the queue, through a real socket."""

import json
import time

import pytest

from run_command import run_command
from server_process import Served, request_json, wait_until_waiting_ends

pytestmark = pytest.mark.slow

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


def test_two_policies_share_a_queue(admin, served, either_database):
    """Started by a request and stopped by a command; every match says which policy made it, also after a restart.

    With a share of 1 the second policy decides alone, and it never pairs players who have just met.
    """
    apart = {"policy": {**QUEUE["policy"], "rematch_wait": 5000, "rematch_fade": 3600}, "share": 1.0, "seed": 7}
    refused = [
        ({**apart, "share": 1.5}, 422, "share=1.5: expected a number from 0 to 1"),
        ({**apart, "policy": {"preset": "quik"}}, 422, "unknown policy 'quik' (did you mean 'quick'?)"),
        ({**apart, "policy": {"team_size": 6}}, 422, "team_size=6: expected 1, as in the queue's own policy"),
        ({**apart, "shares": 1}, 422, "shares"),
    ]
    for body, status, message in refused:
        answer = admin.put(f"{ON}/queues/main/experiment", json=body)
        assert (answer.status_code, message in answer.text) == (status, True), answer.text
    assert admin.delete(f"{ON}/queues/main/experiment").status_code == 409
    started = request_json(admin, "PUT", f"{ON}/queues/main/experiment", apart)
    assert started["design"] == {"share": 1.0, "seed": 7, "slice_seconds": 600, "washout": 120, "worth": 0.1}
    assert (started["first"]["rematch_wait"], started["second"]["rematch_wait"]) == (0, 5000)
    assert started["stopped_at"] is None
    assert request_json(admin, "PUT", f"{ON}/queues/main/experiment", apart) == started  # sent twice
    other = admin.put(f"{ON}/queues/main/experiment", json={**apart, "seed": 8})
    assert other.status_code == 409
    assert "stop it before you start another" in other.text
    assert admin.put(f"{ON}/queues/main", json={"policy": {"team_size": 1}}).status_code == 409
    played = make_match(admin)
    report = {"id": played["match_id"], "played_at": "2026-01-01T12:00:00Z"}
    places = [{"place": place, "players": team} for place, team in enumerate(names_of(played), 1)]
    request_json(admin, "POST", f"{ON}/matches", {**report, "teams": places})
    served.stop()
    served.launch()
    served.wait_for_address()
    admin.base_url = served.address
    tickets = join_all(admin)
    waited = wait_for_estimate(admin, tickets[0])
    assert waited["state"] == "waiting"
    printed = run_command("queue", "list", "--ladder", "arena", "--db", either_database)
    assert "a second policy decides in 100% of the slices of 600 s, seed 7" in printed.out
    stopped = run_command("queue", "stop-experiment", "arena", "main", "--db", either_database)
    assert "until 2" in stopped.out
    wait_until_waiting_ends(admin, f"{ON}/tickets/{tickets[1]['ticket']}", tickets[1]["change"])
    (audited,) = request_json(admin, "GET", f"{ON}/queues/main/audit")["experiments"]
    assert audited["experiment"]["stopped_at"] is not None
    assert audited["slices"] == {"a": 0, "b": 1}
    assert audited["formed"] == {"a": 0, "b": 1}
    assert [compared["figure"] for compared in audited["figures"]][:3] == ["wait_median", "wait_p95", "spread"]
    assert audited["summary"].startswith("Nothing is known yet: at least 10 blocks of slices are needed")
    told = json.loads(run_command("queue", "audit", "arena", "main", "--json", "--db", either_database).out)
    assert told["experiments"][0]["experiment"]["design"]["seed"] == 7
    printed = run_command("queue", "audit", "arena", "main", "--db", either_database)
    assert "B: 1 slice, 1 match formed, 0 of them counted" in printed.out
    entries = request_json(admin, "GET", "/v1/audit")["items"]
    assert {"experiment.started", "experiment.stopped"} <= {entry["action"] for entry in entries}


def join_all(admin):
    return [
        request_json(admin, "POST", f"{ON}/tickets", {"queues": ["main"], "members": [{"player": name}]}, status=201)
        for name in RANKS
    ]


def make_match(admin):
    """The match of everyone, offered and accepted."""
    tickets = join_all(admin)
    wait_until_waiting_ends(admin, f"{ON}/tickets/{tickets[1]['ticket']}", tickets[1]["change"])
    for ticket in tickets:
        request_json(admin, "POST", f"{ON}/tickets/{ticket['ticket']}/accept", {})
    return request_json(admin, "GET", f"{ON}/tickets/{tickets[0]['ticket']}")["match"]


def names_of(match):
    return [[{"player": player["player"]} for player in team] for team in match["teams"]]


def wait_for_estimate(admin, ticket):
    """The ticket, once the matchmaker that runs has looked at it for a second."""
    end = time.monotonic() + 60
    while True:
        status = request_json(admin, "GET", f"{ON}/tickets/{ticket['ticket']}")
        if status["matchmaker"] == "running" and status["waited"] is not None and status["waited"] > 1.5:
            return status
        assert status["state"] == "waiting"
        assert time.monotonic() < end
        time.sleep(0.1)


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
