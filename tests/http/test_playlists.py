"""Players who wait on two ladders at once, through real sockets, also with two processes of which one is killed."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from evenmatch_client import Client, calls

from run_command import run_command
from server_process import Served, request_json, wait_until_waiting_ends

pytestmark = pytest.mark.slow

ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
RULES = {"accept_within": 300, "heartbeat": 600, "tick": 0.1}
DUELS, ARENA = "/v1/ladders/duels", "/v1/ladders/arena"
PLAYERS = [f"p{number}" for number in range(8)]


@pytest.fixture
def key(either_database):
    return run_command("key", "create", "operator", "--scope", "admin", "--db", either_database).out.strip()


@pytest.fixture
def processes(either_database, key, tmp_path):
    """Servers over one database, one on SQLite and two on PostgreSQL; it has two ladders with a queue each."""
    folders = [tmp_path / "first"] + ([tmp_path / "second"] if "postgresql" in str(either_database) else [])
    with ExitStack() as stack:
        served = []
        for folder in folders:
            folder.mkdir()
            served.append(stack.enter_context(Served(str(either_database), folder)))
        with served[0].client(key) as admin:
            for name, size in (("duels", 1), ("arena", 2)):
                request_json(admin, "POST", "/v1/ladders", {"name": name, "system": "wager"}, status=201)
                queue = {"policy": {**ANYBODY, "team_size": size}, "rules": RULES}
                request_json(admin, "PUT", f"/v1/ladders/{name}/queues/main", queue)
        yield served


def wish(player, **others):
    return {"queues": ["main"], "members": [{"player": player}], **others}


def places(client):
    """Where each player has an open ticket with an offer or a match: (ladder, match or offer), by player."""
    taken = {player: [] for player in PLAYERS}
    for ladder in ("duels", "arena"):
        for player in PLAYERS:
            place = request_json(client, "GET", f"/v1/ladders/{ladder}/players/{player}/ticket")
            if place["match_id"] is not None:
                taken[player].append((ladder, place["match_id"]))
            elif place["ticket"] is not None:
                ticket = request_json(client, "GET", f"/v1/ladders/{ladder}/tickets/{place['ticket']}")
                if ticket["state"] == "offered":
                    taken[player].append((ladder, ticket["offer"]["offer"]))
    return taken


def test_the_first_match_ends_the_waiting_everywhere(processes, key):
    with processes[0].client(key) as first, processes[-1].client(key) as second:
        both = request_json(first, "POST", f"{DUELS}/tickets", wish("ann", playlist={"arena": ["main"]}), status=201)
        assert both["playlist"].keys() == {"arena"}
        linked = f"{ARENA}/tickets/{both['playlist']['arena']}"
        waiting = request_json(second, "GET", linked)
        assert (waiting["state"], waiting["follow"]) == ("waiting", None)
        rival = request_json(second, "POST", f"{DUELS}/tickets", wish("bob"), status=201)
        wait_until_waiting_ends(first, f"{DUELS}/tickets/{both['ticket']}", both["change"])
        elsewhere = request_json(second, "GET", linked)
        assert elsewhere["state"] == "elsewhere"
        assert elsewhere["follow"] == {"ladder": "duels", "ticket": both["ticket"], "state": "offered"}
        for ticket in (both, rival):
            request_json(second, "POST", f"{DUELS}/tickets/{ticket['ticket']}/accept", {})
        gone = request_json(first, "GET", linked)
        assert (gone["state"], gone["follow"]["state"]) == ("gone", "matched")
        refused = second.post(f"{ARENA}/tickets", json=wish("ann"))
        assert refused.status_code == 409
        assert "plays match" in refused.json()["detail"]


def test_a_client_follows_the_playlist_to_its_match(processes, key):
    with Client(processes[0].address, key) as ann, Client(processes[-1].address, key) as others:
        joined = ann.send(calls.join_queue("arena", ["main"], [{"player": "ann"}], playlist={"duels": ["main"]}))
        with ThreadPoolExecutor(1) as pool:
            rival = others.send(calls.join_queue("duels", ["main"], [{"player": "bob"}]))
            answered = others.wait_for_match("duels", rival.ticket, accept=True, timeout=1)
            assert answered.state in ("waiting", "offered")
            accepting = pool.submit(others.wait_for_match, "duels", rival.ticket, accept=True, timeout=60)
            matched = ann.wait_for_match("arena", joined.ticket, accept=True, timeout=60)
            assert accepting.result(60).state == "matched"
    assert (matched.ladder, matched.state) == ("duels", "matched")


def test_nobody_is_in_two_matches_when_a_process_is_killed(processes, key, either_database, tmp_path):
    """Eight players wait on both ladders; the matchmakers race, and the first process ends without a warning."""
    with processes[-1].client(key) as client, processes[0].client(key) as dying:
        with ThreadPoolExecutor(8) as pool:
            joined = list(
                pool.map(
                    lambda pair: pair[0].post(f"{DUELS}/tickets", json=wish(pair[1], playlist={"arena": ["main"]})),
                    [((client, dying)[number % 2], player) for number, player in enumerate(PLAYERS)],
                )
            )
        assert {answer.status_code for answer in joined} == {201}
        processes[0].kill()
    if len(processes) == 1:
        processes[0].launch()
        processes[0].wait_for_address()
    with processes[-1].client(key) as client:
        for _ in range(40):
            taken = places(client)
            assert max(map(len, taken.values())) <= 1
            if all(taken.values()):
                break
            for player, entries in taken.items():  # whoever still waits is followed, and found in time
                if not entries:
                    ticket = request_json(client, "GET", f"{DUELS}/players/{player}/ticket")["ticket"]
                    request_json(client, "GET", f"{DUELS}/tickets/{ticket}?wait=1&after=999999999")
        assert all(taken.values())


def test_bad_playlists_are_refused_and_nobody_loses_a_place(processes, key, either_database):
    with processes[0].client(key) as admin:
        place = request_json(admin, "POST", f"{DUELS}/tickets", wish("ann"), status=201)
        for playlist, status, said in (
            ({"arenas": ["main"]}, 404, "unknown ladder 'arenas' (did you mean 'arena'?)"),
            ({"arena": ["man"]}, 404, "unknown queue 'man' (did you mean 'main'?)"),
            ({"arena": []}, 422, "name at least one queue of ladder 'arena' to join"),
            ({"duels": ["main"]}, 422, "the playlist names ladder 'duels'"),
        ):
            refused = admin.post(f"{DUELS}/tickets", json=wish("bob", playlist=playlist))
            assert (refused.status_code, said in refused.json()["detail"]) == (status, True), refused.text
        refused = admin.post(f"{ARENA}/tickets", json=wish("ann", playlist={"duels": ["main"]}))
        assert refused.status_code == 409
        assert "waits in ticket" in refused.json()["detail"]
        assert request_json(admin, "GET", f"{DUELS}/tickets/{place['ticket']}")["state"] == "waiting"
    made = run_command("key", "create", "duels", "--scope", "queue", "--ladder", "duels", "--db", either_database)
    with processes[0].client(made.out.strip()) as narrow:
        refused = narrow.post(f"{DUELS}/tickets", json=wish("cat", playlist={"arena": ["main"]}))
        assert refused.status_code == 403
        assert "the scope queue on ladder 'arena' is required" in refused.json()["detail"]
