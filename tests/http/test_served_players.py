"""What the service promises to players, through a real socket: true odds, filters, what is shown, inactivity, sides."""

import time

import pytest

from evenmatch import systems
from far_levels import far_levels
from server_process import request_json, wait_until_waiting_ends

ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
RULES = {"accept_within": 300, "heartbeat": 600, "tick": 0.1, "penalty": 0}
FOUR = ("ann", "bob", "eve", "joe")


@pytest.fixture
def served(shared_server):
    return shared_server[0]


@pytest.fixture
def admin(shared_server):
    return shared_server[1]


def create(admin, name, system="elo", size=1, **settings):
    """The address of a new ladder with the queue `main`."""
    request_json(admin, "POST", "/v1/ladders", {"name": name, "system": system, "settings": settings}, status=201)
    queue = {"policy": {**ANYBODY, "team_size": size}, "rules": RULES}
    request_json(admin, "PUT", f"/v1/ladders/{name}/queues/main", queue)
    return f"/v1/ladders/{name}"


def join(client, on, *players):
    members = [{"player": player} for player in players]
    return request_json(client, "POST", f"{on}/tickets", {"queues": ["main"], "members": members}, status=201)


def profile_of(client, on, player):
    """The profile of a player once a standing is shown: what is read may be a second old."""
    while (profile := request_json(client, "GET", f"{on}/players/{player}"))["standing"] is None:
        time.sleep(0.05)
    return profile


def match(number, teams, played_at, places=(1, 2)):
    """A reported match with what any system needs."""
    listed = []
    for place, names in zip(places, teams, strict=True):
        players = [{"player": name, "score": 12 - 5 * place, "seconds": 600, "performance": 0.5} for name in names]
        listed.append({"place": place, "score": 9 - 3 * place, "players": players})
    return {"id": f"m-{number}", "played_at": played_at, "duration": 600, "teams": listed}


@pytest.mark.slow
def test_the_odds_of_an_offer_are_those_of_the_system_at_far_levels(admin):
    """Three players of far levels in parties that cannot be split evenly, on a new ladder and after some play."""
    for system in systems.names():
        on = create(admin, system, system, size=2)
        ratings = dict(zip(FOUR, far_levels(system), strict=True))
        request_json(admin, "POST", f"{on}/start-ratings", {"id": "start", "ratings": ratings})
        for turn in range(2):
            together, *alone = ("eve", "joe"), ("ann",), ("bob" if turn else "new",)
            tickets = [join(admin, on, *names) for names in (together, *alone)]
            wait_until_waiting_ends(admin, f"{on}/tickets/{tickets[0]['ticket']}", tickets[0]["change"])
            offer = request_json(admin, "GET", f"{on}/tickets/{tickets[0]['ticket']}")["offer"]
            sides = [["eve", "joe"], [*alone[0], *alone[1]]]
            odds = request_json(admin, "POST", f"{on}/odds", {"teams": [{"players": side} for side in sides]})["teams"]
            predicted = [team["expected"] for team in odds]
            assert sorted(offer["odds"]) == pytest.approx(sorted(predicted), abs=1e-9), system
            assert max(offer["odds"]) > 0.5, system
            for ticket in tickets:
                request_json(admin, "DELETE", f"{on}/tickets/{ticket['ticket']}")
            request_json(admin, "POST", f"{on}/matches", match(turn, [["joe", "ann"], ["bob", "eve"]], "2026-01-01"))


def test_a_filter_is_kept_used_and_changed_while_waiting(admin):
    on = create(admin, "filters")
    request_json(admin, "POST", f"{on}/matches", match(1, [["ann"], ["bob"]], "2026-01-01T12:00:00Z"))
    kept = request_json(admin, "PUT", f"{on}/players/ann/filter", {"within": 4, "loose": False})
    assert (kept["within"], kept["loose"], kept["kept"]) == (4, False, True)
    ticket = join(admin, on, "ann")["ticket"]
    before = request_json(admin, "GET", f"{on}/tickets/{ticket}")
    while not before["waiting"]:  # until the matchmaker is loaded: time before that does not count as waiting
        before = request_json(admin, "GET", f"{on}/tickets/{ticket}?after={before['change']}&wait=1")
    before = request_json(admin, "GET", f"{on}/tickets/{ticket}")  # read whole after the matchmaker's first step
    request_json(admin, "PUT", f"{on}/players/ann/filter", {"within": 30, "loose": False})
    refused = admin.put(f"{on}/players/ann/filter", json={"within": 130})
    assert refused.status_code == 422
    assert "130" in refused.text
    after = request_json(admin, "GET", f"{on}/tickets/{ticket}?after={before['change']}&wait=10")
    assert (after["state"], after["queued_at"]) == ("waiting", before["queued_at"])
    assert after["waiting"]["main"]["window"] == [20, 80]
    request_json(admin, "DELETE", f"{on}/tickets/{ticket}")


def test_a_player_sees_what_the_ladder_shows_and_an_operator_everything(served, admin):
    on = create(admin, "shown", "wager", show="division", placement=1)
    request_json(admin, "POST", f"{on}/matches", match(1, [["ann"], ["bob"]], "2026-01-01T12:00:00Z"))
    token = request_json(admin, "POST", "/v1/tokens", {"player": "ann"}, status=201)["token"]
    assert profile_of(admin, on, "ann")["standing"]["rating"] == pytest.approx(1.05)
    with served.client(token) as ann:
        ticket = join(ann, on, "ann")["ticket"]
        rival = join(admin, on, "bob")["ticket"]
        offered = wait_until_waiting_ends(ann, f"{on}/tickets/{ticket}", ticket)
        assert (offered["offer"]["odds"], offered["offer"]["stakes"]) == (None, {})
        profile = ann.get(f"{on}/players/ann")
        path = ann.get(f"{on}/players/ann/path")
        for answer in (profile, path):
            assert "1.05" not in answer.text
        request_json(ann, "DELETE", f"{on}/tickets/{ticket}")
    request_json(admin, "DELETE", f"{on}/tickets/{rival}")


def test_what_inactivity_will_cost_is_said_and_previewed_before_it_starts(admin):
    """The rule counts days from when the ladder has it, so nothing falls at once."""
    on = create(admin, "idle", inactivity="rating", rating_decay=20.0, grace_days=14.0, placement=1)
    request_json(admin, "POST", f"{on}/matches", match(1, [["ann"], ["bob"]], "2026-01-01T12:00:00Z"))
    notice = profile_of(admin, on, "ann")["inactivity"]
    assert (notice["rule"], notice["amount"]) == ("rating", 20.0)
    assert "the rating falls by" in notice["text"]
    assert request_json(admin, "GET", f"{on}/decay/preview")["moves"] == []
    (move,) = request_json(admin, "GET", f"{on}/decay/preview?days=60")["moves"]
    assert (move["player"], move["before"], move["after"]) == ("ann", 1516, 1500)
    assert request_json(admin, "POST", f"{on}/decay")["players"] == 0
    assert profile_of(admin, on, "ann")["standing"]["rating"] == 1516


def test_who_changes_sides_is_counted_where_they_played_longest(admin):
    on = create(admin, "sides")
    teams = [{"players": ["ann", "bob"]}, {"players": ["eve", "joe", "kim"]}]
    request_json(admin, "PUT", f"{on}/live/cup", {"teams": teams})
    moved = {"players": [{"player": "kim", "back": True, "team": 0}]}
    request_json(admin, "POST", f"{on}/live/cup/presence", moved)
    there = request_json(admin, "GET", f"{on}/live/cup")
    assert [sorted(player["player"] for player in team) for team in there["teams"]] == [
        ["ann", "bob", "kim"],
        ["eve", "joe"],
    ]
    request_json(admin, "PATCH", on, {"side_counts": "last"})
    receipt = request_json(admin, "POST", f"{on}/live/cup/close", {"teams": [{"place": 1}, {"place": 2}]})
    assert [sorted(line["player"] for line in team) for team in receipt["teams"]] == [
        ["ann", "bob", "kim"],
        ["eve", "joe"],
    ]
    gains = {line["player"]: line["change"] for team in receipt["teams"] for line in team}
    assert gains["kim"] > 0 > gains["eve"]
