"""The whole life of matches through a real socket: a process, plain httpx, and nothing of ours between them."""

import time
from contextlib import ExitStack

import pytest

from run_command import run_command
from server_process import SLOWEST, Served, request_json, wait_until_waiting_ends

ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
QUEUE = {"policy": {**ANYBODY, "team_size": 2}, "rules": {"accept_within": 300, "heartbeat": 600, "tick": 0.1}}
LADDER = {"name": "arena", "system": "elo", "settings": {"placement": 1, "team_size": 2}}
ON = "/v1/ladders/arena"


@pytest.fixture
def served(either_database, tmp_path):
    with Served(str(either_database), tmp_path) as process:
        yield process


@pytest.fixture
def operator(either_database):
    """The text of a key that may do everything, made as operators make the first one."""
    made = run_command("key", "create", "operator", "--scope", "admin", "--db", either_database)
    assert made.code == 0, made.err
    return made.out.strip()


class People:
    """Who asks: the operator, a game server, the game's backend, a page that shows standings, and two players."""

    def __init__(self, served, operator):
        self._served, self._open = served, ExitStack()
        self.keys = {"operator": operator}
        self.admin = self.client("operator")
        request_json(self.admin, "POST", "/v1/ladders", LADDER, status=201)
        for scope in ("report", "queue", "read"):
            wish = {"name": scope, "scopes": [scope], "ladders": ["arena"]}
            self.keys[scope] = request_json(self.admin, "POST", "/v1/keys", wish, status=201)["text"]
        backend = self.client("queue")
        for player in ("eve", "joe"):
            self.keys[player] = request_json(backend, "POST", "/v1/tokens", {"player": player}, status=201)["token"]
        self.ask_anew()

    def ask_anew(self):
        """Ask the process that serves now."""
        self._open.close()
        self.admin, self.server, self.backend, self.page = map(self.client, ("operator", "report", "queue", "read"))
        self.eve, self.joe = self.client("eve"), self.client("joe")

    def client(self, who):
        return self._open.enter_context(self._served.client(self.keys[who]))

    def close(self):
        self._open.close()


@pytest.fixture
def people(served, operator):
    made = People(served, operator)
    yield made
    made.close()


def party(*names, queue="main"):
    return {"queues": [queue], "members": [{"player": name, "ping": {"eu": 20}} for name in names]}


def match_json(match_id, *teams):
    listed = [{"score": score, "players": [{"player": name} for name in names]} for score, *names in teams]
    return {"id": match_id, "played_at": "2026-01-01T12:00:00Z", "teams": listed}


def lines(receipt):
    """What a receipt says of each player."""
    return {line["player"]: line for team in receipt["teams"] for line in team}


def ratings(client):
    return {one["player"]: one["rating"] for one in request_json(client, "GET", f"{ON}/standings")["items"]}


def ratings_with(client, player):
    """The same once a player is among them: what is shown may be some moments old."""
    deadline = time.monotonic() + SLOWEST
    while player not in (found := ratings(client)):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def ended(client, job):
    """What a job came to."""
    found = request_json(client, "GET", f"/v1/jobs/{job['job']}?wait=60")
    assert found["state"] == "done", found
    return found["result"]


def queue_up(served, people, end):
    """Parties join, the process ends and another begins; no ticket is lost. Three tickets, and the offer to them."""
    for queue in ("main", "other"):
        request_json(people.admin, "PUT", f"{ON}/queues/{queue}", QUEUE)
    pair = request_json(people.backend, "POST", f"{ON}/tickets", party("ann", "bob"), status=201)
    alone = request_json(people.eve, "POST", f"{ON}/tickets", party("eve"), status=201)
    waits = request_json(people.backend, "POST", f"{ON}/tickets", party("zoe", queue="other"), status=201)
    assert people.eve.post(f"{ON}/tickets", json=party("joe")).status_code == 403  # her token is for her alone
    last = request_json(people.joe, "POST", f"{ON}/tickets", party("joe"), status=201)
    wait_until_waiting_ends(people.joe, f"{ON}/tickets/{last['ticket']}", last["change"])
    numbers = [one["ticket"] for one in (pair, alone, last, waits)]
    before = [request_json(people.backend, "GET", f"{ON}/tickets/{number}") for number in numbers]
    assert [one["state"] for one in before] == ["offered"] * 3 + ["waiting"]
    assert (before[0]["offer"]["players"], before[0]["offer"]["teams"]) == (4, [["ann", "bob"], ["eve", "joe"]])
    end(served)
    served.launch()
    served.wait_for_address()
    people.ask_anew()
    after = [request_json(people.backend, "GET", f"{ON}/tickets/{number}") for number in numbers]
    kept = ("ticket", "state", "players", "queues", "queued_at", "offer")
    assert [[one[name] for name in kept] for one in after] == [[one[name] for name in kept] for one in before]
    assert request_json(people.backend, "DELETE", f"{ON}/tickets/{waits['ticket']}")["state"] == "gone"
    return *numbers[:3], before[0]["offer"]["offer"]


def accept(people, pair, alone, last, offer):
    """Everybody accepts; the match that they are in."""
    request_json(people.backend, "POST", f"{ON}/tickets/{pair}/accept", {"player": "ann", "offer": offer})
    assert people.eve.post(f"{ON}/tickets/{pair}/accept", json={"player": "bob"}).status_code == 403
    request_json(people.backend, "POST", f"{ON}/tickets/{pair}/accept", {"player": "bob", "offer": offer})
    request_json(people.eve, "POST", f"{ON}/tickets/{alone}/accept", {})
    told = request_json(people.joe, "POST", f"{ON}/tickets/{last}/accept", {"offer": offer})
    assert told["state"] == "matched"
    teams = request_json(people.eve, "GET", f"{ON}/tickets/{alone}")["match"]["teams"]
    assert sorted(sorted(one["player"] for one in team) for team in teams) == [["ann", "bob"], ["eve", "joe"]]
    return told["match_id"], [[one["player"] for one in team] for team in teams]


def play_match(people, match_id, teams):
    """The match is announced, joe leaves for good, it is closed: ann and bob have won. The receipt."""
    address = f"{ON}/live/{match_id}"
    (waiting,) = request_json(people.server, "GET", f"{ON}/live?queue=main")["items"]
    assert (waiting["match_id"], waiting["made_by"], waiting["confirmed"]) == (match_id, "queue", False)
    announced = {"teams": [{"players": team} for team in teams]}
    assert request_json(people.server, "PUT", address, announced)["confirmed"] is True
    assert request_json(people.server, "PUT", address, announced)["confirmed"] is True
    request_json(people.server, "POST", f"{address}/presence", {"players": [{"player": "joe"}]})
    scores = {"teams": [{"score": 7 if "ann" in team else 4} for team in teams], "players": {"ann": {"score": 5}}}
    receipt = request_json(people.server, "POST", f"{address}/close", scores)
    assert request_json(people.server, "POST", f"{address}/close", scores) == receipt
    assert request_json(people.server, "GET", f"{ON}/live")["items"] == []
    assert people.server.put(address, json=announced).json()["state"] == "closed"
    return receipt


def check_first(people, receipt):
    """Even teams, k is 32: the winners gain half of it each, the losers lose it; joe quit, so he is not placed."""
    told = lines(receipt)
    changes = {name: (line["before"], line["after"], line["change"]) for name, line in told.items()}
    assert changes["ann"] == changes["bob"] == (1500.0, 1516.0, 16.0)
    assert changes["eve"] == changes["joe"] == (1500.0, 1484.0, -16.0)
    assert (told["ann"]["expected"], told["ann"]["result"], told["ann"]["factors"]["k"]) == (0.5, 1.0, 32.0)
    ratings_with(people.page, "ann")
    rows = request_json(people.page, "GET", f"{ON}/standings")["items"]
    assert [(one["rank"], one["player"], one["rating"]) for one in rows] == [
        (1, "ann", 1516.0),
        (1, "bob", 1516.0),
        (3, "eve", 1484.0),
    ]
    shown = {one["player"]: (one["percentile"], one["division"]) for one in rows}
    assert {name: (told[name]["percentile"], told[name]["division"]) for name in shown} == shown
    assert (shown["ann"], shown["eve"]) == ((100, "Champion"), (1, "Bronze"))
    assert (told["joe"]["percentile"], told["joe"]["division"]) == (None, None)
    kept = request_json(people.page, "GET", f"{ON}/matches/{receipt['match_id']}")
    quitters = [one["player"] for team in kept["teams"] for one in team["players"] if one["quit"]]
    assert (kept["state"], quitters) == ("rated", ["joe"])


def report_plainly(people):
    """A match that nobody announced, and two in a batch of which one cannot be rated."""
    receipt = request_json(people.server, "POST", f"{ON}/matches", match_json("plain", (1, "eve"), (0, "ann")))
    # 1484 against 1516: eve was expected to score 1 / (1 + 10 ** (32 / 400)) = 0.45408
    assert lines(receipt)["eve"]["change"] == round(32 * (1 - 0.4540788), 2)
    # now bob has 1516, eve 1501.47, ann 1498.53
    assert (lines(receipt)["eve"]["percentile"], lines(receipt)["ann"]["percentile"]) == (51, 1)
    batch = {"matches": [match_json("b1", (1, "kim"), (0, "bob")), match_json("b2", (1, "kim"), (0, "kim"))]}
    told = request_json(people.server, "POST", f"{ON}/matches/batch", batch)
    assert (told["recorded"], told["refused"]) == (1, 1)
    assert told["outcomes"][1]["problem"]["status"] == 422
    return receipt


def check_trail(people, keys):
    """The trail tells who did what: by the id of the key."""
    done = [(one["actor"], one["action"]) for one in request_json(people.admin, "GET", "/v1/audit?limit=500")["items"]]
    operator = "key " + keys["operator"][: len("em_") + 10]
    backend = "key " + keys["queue"][: len("em_") + 10]
    assert done[0] == (operator, "ladder.verified")
    expected = ["ladder.created", "key.created", "queue.set", "match.voided", "ladder.rebuilt", "ladder.verified"]
    assert {action for actor, action in done if actor == operator} == set(expected)
    assert {actor for actor, _ in done} <= {operator, "operator", backend}
    assert [one for one in done if one[1] == "key.created"].count((operator, "key.created")) == 3
    request = people.admin.post(f"{ON}/verify", headers={"X-Request-Id": "who-asked"})
    assert ended(people.admin, request.json())["equal"] is True
    assert request_json(people.admin, "GET", "/v1/audit?ladder=arena")["items"][0]["request"] == "who-asked"


@pytest.mark.slow
def test_keys_ladder_queue_match_ratings_void_rebuild_and_the_trail(served, people, either_database):
    """The process is asked to end in the midst of it on SQLite, and killed on PostgreSQL."""
    end = Served.kill if "://" in str(either_database) else Served.stop
    match_id, teams = accept(people, *queue_up(served, people, end))
    check_first(people, play_match(people, match_id, teams))
    before = ratings(people.page)
    seen = people.page.get(f"{ON}/standings")
    report_plainly(people)
    moved = ratings_with(people.page, "kim")
    assert moved["eve"] > before["eve"]
    assert moved["ann"] < before["ann"]
    known = {"If-None-Match": seen.headers["etag"]}
    assert people.page.get(f"{ON}/standings", headers=known).status_code == 200
    for void in ("plain", "b1"):
        request_json(people.admin, "POST", f"{ON}/voids", {"match_id": void, "reason": "the server crashed"})
    assert ratings(people.page) == before
    assert request_json(people.page, "GET", f"{ON}/matches/plain")["state"] == "void"
    rebuilt = ended(people.admin, request_json(people.admin, "POST", f"{ON}/rebuild", status=202))
    assert rebuilt["matches"] == 1
    assert ratings(people.page) == before
    assert ended(people.admin, request_json(people.admin, "POST", f"{ON}/verify", status=202))["equal"] is True
    check_trail(people, people.keys)
    assert served.stop() == 0
    assert "Traceback" not in served.told()
    checked = run_command("verify", "--ladder", "arena", "--db", either_database)
    assert checked.code == 0, checked.out
