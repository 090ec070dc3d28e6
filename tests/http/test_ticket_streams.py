"""A ticket's stream from the offer to the rating, through a real socket: every player hears only what is theirs."""

import json
from contextlib import ExitStack

import pytest

from server_process import request_json, wait_until_waiting_ends

ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
QUEUE = {"policy": {**ANYBODY, "team_size": 1}, "rules": {"accept_within": 300, "heartbeat": 600, "tick": 0.1}}
AT = "203.0.113.7:7777"


class Stream:
    """The events of a ticket, read one after the other. A stream lasts a minute; a client then opens it again."""

    def __init__(self, client, path, opened):
        self._client, self._path, self._opened = client, path, opened
        self._open()

    def _open(self):
        answer = self._opened.enter_context(self._client.stream("GET", f"{self._path}/events"))
        assert answer.status_code == 200
        self._lines = answer.iter_lines()

    def event(self):
        """Return the name and the data of the next event; None: the stream has ended."""
        name = None
        for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: "))
        return None

    def until(self, name):
        """Return the data of the next event of this name."""
        while (event := self.event()) is None or event[0] != name:
            if event is None:
                self._open()
        return event[1]


@pytest.fixture
def opened():
    with ExitStack() as stack:
        yield stack


def new_ladder(admin, name, **settings):
    """Return the address of a new ladder with a queue of duels."""
    body = {"name": name, "system": "elo", "settings": {"placement": 1, **settings}}
    request_json(admin, "POST", "/v1/ladders", body, status=201)
    request_json(admin, "PUT", f"/v1/ladders/{name}/queues/main", QUEUE)
    return f"/v1/ladders/{name}"


class Duel:
    """Two players whose match has begun; each follows the stream of their own ticket with their own token."""

    def __init__(self, shared_server, opened, *names, **settings):
        process, self.admin = shared_server
        self.on = on = new_ladder(self.admin, "-".join(names), **settings)
        self.names, self.streams, self.players, tickets = names, {}, {}, {}
        for name in names:
            token = request_json(self.admin, "POST", "/v1/tokens", {"player": name}, status=201)["token"]
            self.players[name] = opened.enter_context(process.client(token))
            body = {"queues": ["main"], "members": [{"player": name}]}
            tickets[name] = request_json(self.players[name], "POST", f"{on}/tickets", body, status=201)
        last = tickets[names[-1]]
        wait_until_waiting_ends(self.admin, f"{on}/tickets/{last['ticket']}", last["change"])
        for name in names:
            self.streams[name] = Stream(self.players[name], f"{on}/tickets/{tickets[name]['ticket']}", opened)
            assert self.streams[name].event()[1]["state"] == "offered"
        self.tickets = {name: one["ticket"] for name, one in tickets.items()}
        for name in names:
            told = request_json(self.admin, "POST", f"{on}/tickets/{self.tickets[name]}/accept", {})
        self.match_id = told["match_id"]

    def announce(self, status=200, **connection):
        seen = request_json(self.admin, "GET", f"{self.on}/tickets/{self.tickets[self.names[0]]}")
        teams = [{"players": [player["player"] for player in team]} for team in seen["match"]["teams"]]
        body = {"teams": teams, "connection": connection}
        return request_json(self.admin, "PUT", f"{self.on}/live/{self.match_id}", body, status=status)

    def close(self):
        """The first player wins."""
        seen = request_json(self.admin, "GET", f"{self.on}/tickets/{self.tickets[self.names[0]]}")
        teams = [{"place": 1 if team[0]["player"] == self.names[0] else 2} for team in seen["match"]["teams"]]
        return request_json(self.admin, "POST", f"{self.on}/live/{self.match_id}/close", {"teams": teams})


def test_the_stream_goes_on_from_the_offer_over_the_connection_to_the_rating(shared_server, opened):
    duel = Duel(shared_server, opened, "ann", "bob")
    on = duel.on
    live = duel.announce(address=AT, tokens={"ann": "a-1", "bob": "b-2"})
    assert live["connected"]
    assert "a-1" not in json.dumps(live)
    for name, token in (("ann", "a-1"), ("bob", "b-2")):
        ticket = duel.streams[name].until("announced")
        assert ticket["state"] == "matched"
        assert ticket["match"]["connection"] == {"address": AT, "tokens": {name: token}}
        looked = request_json(duel.players[name], "GET", f"{on}/tickets/{ticket['ticket']}")
        assert looked["match"] == ticket["match"]
        assert (
            duel.players[name].get(f"{on}/tickets/{duel.tickets['bob' if name == 'ann' else 'ann']}").status_code == 403
        )
    polled = request_json(duel.admin, "GET", f"{on}/tickets/{duel.tickets['ann']}?after=0&wait=60")
    assert polled["match"]["connection"]["tokens"] == {"ann": "a-1"}
    shown = json.dumps(request_json(duel.players["ann"], "GET", f"{on}/live/{duel.match_id}"))
    assert AT not in shown
    assert "a-1" not in shown

    duel.close()
    page = f"{on.removeprefix('/v1')}/matches/{duel.match_id}/results"
    for name, after in (("ann", 1516.0), ("bob", 1484.0)):  # Elo with K = 32
        match = duel.streams[name].until("rated")["match"]
        assert (match["state"], match["connection"], match["receipt"]["rated"]) == ("closed", None, True)
        (told,) = match["receipt"]["players"].items()
        assert told[0] == name
        assert (told[1]["before"], told[1]["after"], told[1]["change"]) == (1500.0, after, after - 1500.0)
        assert told[1]["page"] == f"{page}/{name}"
        assert duel.streams[name].event() is None
        assert duel.admin.get(told[1]["page"], headers={"Accept": "text/html"}).status_code in (200, 303)


def test_a_ladder_with_hidden_ratings_hides_them_in_the_stream(shared_server, opened):
    duel = Duel(shared_server, opened, "cid", "dan", show="division")
    duel.close()
    rating = duel.streams["cid"].until("rated")["match"]["receipt"]["players"]["cid"]
    assert [rating[name] for name in ("before", "after", "change", "percentile")] == [None] * 4
    seen = request_json(duel.admin, "GET", f"{duel.on}/tickets/{duel.tickets['cid']}")
    assert seen["match"]["receipt"]["players"]["cid"]["after"] == 1516.0


def test_a_cancelled_match_ends_the_stream(shared_server, opened):
    duel = Duel(shared_server, opened, "eve", "fay")
    duel.announce(address=AT)
    duel.streams["eve"].until("announced")
    request_json(duel.admin, "POST", f"{duel.on}/live/{duel.match_id}/cancel", {"reason": "the server fell over"})
    ticket = duel.streams["eve"].until("ticket")
    match = ticket["match"]
    assert (match["state"], match["reason"], match["connection"]) == ("cancelled", "the server fell over", None)
    assert duel.streams["eve"].event() is None


CONNECTIONS = [
    ({}, "connection.address"),
    ({"address": ""}, "connection.address"),
    ({"address": "x" * 513}, "connection.address"),
    ({"address": AT, "tokens": {"zoe": "z"}}, "zoe"),
    ({"address": AT, "tokens": {"gus": "t" * 4097}}, "connection.tokens.gus"),
    ({"address": AT, "port": 1}, "connection.port"),
]


def test_a_connection_that_cannot_be_stored_is_refused_with_its_place(shared_server, opened):
    duel = Duel(shared_server, opened, "gus", "hal")
    for connection, place in CONNECTIONS:
        assert place in json.dumps(duel.announce(422, **connection)), connection
    duel.announce(address=AT)
    assert "203.0.113.7:7777" in duel.announce(409, address="203.0.113.8:1")["detail"]
