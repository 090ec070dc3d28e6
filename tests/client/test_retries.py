"""Failures on the way: what is sent again, for how long, and what becomes of the rest."""

import asyncio
import hashlib
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evenmatch.accounts import signing
from evenmatch.client import AsyncClient, Client, ListMovedError, Problem, ProblemError, UnreachableError
from evenmatch.client.models import AppearanceReport, JoinRequest, KeyCreate, MatchReport, PartyMember, TeamReport
from evenmatch.client.talk import Patience
from evenmatch.errors import UsageError

GOOD = '{"status": "ok"}'
LADDER = '{"items": [], "next": null}'
RECEIPT = '{"match_id": "m-1", "ladder": "arena", "position": 2, "rated": true, "teams": []}'
DONE = '{"ticket": 4, "ladder": "arena", "state": "waiting", "change": 1, "offer": null, "match_id": null}'
MATCH = MatchReport(
    id="m-1",
    played_at="2026-11-21T18:30:00Z",
    teams=[TeamReport(players=[AppearanceReport(player=name)], place=at) for at, name in enumerate(("ann", "bob"), 1)],
)
CREATED = """{"key": "em_abcdefghij", "name": "server", "scopes": ["report"], "ladders": null, "state": "good",
 "created_at": "2026-11-21T18:30:00Z", "expires_at": null, "revoked_at": null, "text": "em_a"}"""
DROP = None  # the connection ends without an answer


def problem(status, slug="x", **more):
    told = Problem(type=f"urn:evenmatch:problem:{slug}", title="T", status=status, detail="why", **more)
    return status, told.model_dump_json(exclude_none=True), {}


@contextmanager
def flaky(*script):
    """A server that answers as the script says, in turn, the last for ever; gives its address and what it was asked."""
    asked, left = [], list(script)

    class Answer(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append((time.monotonic(), self.command, self.path, body, self.headers))
            told = left.pop(0) if len(left) > 1 else left[0]
            if told is DROP:
                self.close_connection = True
                return
            status, text, headers = told
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text.encode())), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = answer  # noqa: N815 - so they are called there

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_a_read_is_sent_again_until_it_is_answered():
    with flaky(DROP, (502, "<h1>Bad gateway</h1>", {}), problem(503), (200, LADDER, {})) as (url, asked):
        assert Client(url).list_ladders().items == []
    assert [(method, path) for _, method, path, *_ in asked] == [("GET", "/v1/ladders?limit=50")] * 4


def test_a_report_is_sent_again_as_it_was():
    with flaky(DROP, (200, RECEIPT, {})) as (url, asked), Client(url) as client:
        assert client.report_match("arena", MATCH).position == 2
    assert len(asked) == 2
    assert asked[0][3] == asked[1][3] == MATCH.model_dump_json(exclude_unset=True).encode()


def idempotency_keys(asked):
    return [headers["Idempotency-Key"] for *_, headers in asked]


def test_a_join_is_sent_again_under_its_own_id_or_an_idempotency_key():
    party = JoinRequest(members=[PartyMember(player="ann")], queues=["main"])
    with flaky(DROP, (201, DONE, {})) as (url, asked), Client(url) as client:
        assert client.join_queue("arena", party).ticket == 4
        first, second = idempotency_keys(asked)
        assert first == second is not None
    with flaky(DROP, (201, DONE, {})) as (url, asked), Client(url) as client:
        assert client.join_queue("arena", party.model_copy(update={"request_id": "ann-17"})).ticket == 4
        assert idempotency_keys(asked) == [None, None]


def test_what_may_not_be_done_twice_is_sent_again_as_the_same_request():
    running = problem(409, "still-running", retry_after=0.01)
    with (
        flaky(DROP, problem(503, retry_after=0.01), running, (201, CREATED, {})) as (url, asked),
        Client(url) as client,
    ):
        for _ in range(2):
            assert client.create_key(KeyCreate(name="server", scopes=["report"])).text == "em_a"
    first, second = idempotency_keys(asked)[-2:]
    assert idempotency_keys(asked) == [first] * 4 + [second]
    assert len({first, second, None}) == 3


def test_a_conflict_is_told_at_once():
    with flaky(problem(409, "conflict")) as (url, asked), Client(url) as client:
        with pytest.raises(ProblemError):
            client.create_key(KeyCreate(name="server", scopes=["report"]))
        assert len(asked) == 1


def test_each_attempt_is_signed_for_itself():
    """The service accepts a signature once, and the second attempt may be of the same second as the first."""
    key = "em_abcdefghij_" + "s" * 43
    with flaky(DROP, DROP, (200, RECEIPT, {})) as (url, asked), Client(url, key, signed=True) as client:
        client.report_match("arena", MATCH)
    sent = [signing.read(headers["Authorization"]) for *_, headers in asked]
    assert len({one.nonce for one in sent}) == len({one.signature for one in sent}) == 3
    for one, (_, method, path, body, _) in zip(sent, asked, strict=True):
        signing.check(hashlib.sha256(key.encode()).digest(), one, method, path, body, round(time.time() * 1e6))


def test_who_asks_too_often_waits_as_long_as_is_said():
    limited = (429, problem(429)[1], {"Retry-After": "1"})
    with flaky(limited, (200, LADDER, {})) as (url, asked), Client(url) as client:
        client.list_ladders()
    assert 1.0 <= asked[1][0] - asked[0][0] < 3.0


def test_a_wait_that_patience_does_not_cover_is_not_begun():
    limited = (429, problem(429)[1], {"Retry-After": "60"})
    with flaky(limited) as (url, asked), Client(url, patience=2.0) as client:
        begin = time.monotonic()
        with pytest.raises(ProblemError) as caught:
            client.list_ladders()
        assert time.monotonic() - begin < 1.5
        assert caught.value.problem.retry_after == 60.0
        assert len(asked) == 1


def test_refusals_are_told_at_once_in_the_service_s_words():
    told = problem(404, "unknown-name", request_id="f1c2")
    with flaky(told) as (url, asked), Client(url) as client:
        with pytest.raises(ProblemError, match=r"^404: why \(request f1c2\)$") as caught:
            client.get_ladder("arena")
        assert caught.value.problem.type == "urn:evenmatch:problem:unknown-name"
        assert len(asked) == 1


def test_what_stands_between_is_told_as_a_problem_too():
    said = r"POST /v1/ladders/arena/matches: .*: <h1>Too large</h1>"
    with flaky((413, "<h1>Too\n large</h1>", {})) as (url, _), pytest.raises(ProblemError, match=said) as caught:
        Client(url).report_match("arena", MATCH)
    assert caught.value.status == 413
    assert caught.value.problem.type == "about:blank"


def test_an_answer_that_is_none_of_evenmatch_s_is_no_answer():
    with flaky((200, "<h1>Welcome to the hotel</h1>", {})) as (url, asked), Client(url) as client:
        with pytest.raises(UnreachableError, match="evenmatch serve"):
            client.list_ladders()
        assert len(asked) == 1


def test_where_nobody_listens_patience_ends():
    with flaky(DROP) as (url, _):
        pass
    begin = time.monotonic()
    with Client(url, patience=0.5) as client, pytest.raises(UnreachableError, match="GET /v1/ladders: "):
        client.list_ladders()
    assert time.monotonic() - begin < 2


def test_whether_the_service_is_ready_is_asked_once():
    with flaky(problem(503), (200, GOOD, {})) as (url, asked), Client(url) as client:
        with pytest.raises(ProblemError):
            client.ready()
        assert len(asked) == 1
        assert client.ready().status == "ok"


def test_the_client_that_is_awaited_sends_again_too():
    async def run(url):
        async with AsyncClient(url) as client:
            return await client.report_match("arena", MATCH)

    with flaky(DROP, problem(503), (200, RECEIPT, {})) as (url, asked):
        assert asyncio.run(run(url)).match_id == "m-1"
        assert len(asked) == 3


def test_a_stream_that_breaks_is_opened_again_until_the_ticket_is_matched():
    def event(state, change):
        body = (
            f'{{"ticket": 4, "ladder": "arena", "state": "{state}", "change": {change}, "players": ["ann"], '
            '"queues": ["main"], "queued_at": "2026-11-21T18:30:00Z", "waited": null, "ended": null, "offer": null, '
            '"match": null, "waiting": {}}'
        )
        return f"id: {change}\nevent: ticket\ndata: {body}\n\n"

    noise = ": a comment\nevent: other\ndata: 1\n\n"
    half = event("offered", 3)[:40]
    with flaky(
        (200, event("waiting", 1) + noise + half, {"Content-Type": "text/event-stream"}),
        DROP,
        (200, event("waiting", 2) + event("matched", 5) + event("gone", 6), {}),
        problem(404),
    ) as (url, asked):
        seen = [(told.state, told.change) for told in Client(url).watch_ticket("arena", 4)]
    assert seen == [("waiting", 1), ("waiting", 2), ("matched", 5)]
    assert [path for _, _, path, *_ in asked] == ["/v1/ladders/arena/tickets/4/events"] * 3


def test_a_stream_that_is_refused_is_not_opened_again():
    with flaky(problem(404)) as (url, asked), Client(url) as client:
        with pytest.raises(ProblemError):
            list(client.watch_ticket("arena", 4))
        assert len(asked) == 1


def test_pauses_grow_up_to_a_limit_and_end_with_patience():
    now, pauses = 1000.0, []
    patience = Patience(60.0, lambda: now)
    while sum(pauses) < 55:
        pauses.append(patience.pause(UnreachableError("no")).seconds)
        now += pauses[-1]
    now += 5.0
    with pytest.raises(UnreachableError):
        patience.pause(UnreachableError("no"))
    longest = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, *[5.0] * 50]
    assert all(0.5 * most <= one <= most for one, most in zip(pauses, longest, strict=False))
    patience.renew()
    assert patience.pause(UnreachableError("no")).seconds <= 0.1


BAD = [
    (("ranks.example",), "expected the address of a service"),
    (("ftp://ranks.example",), "expected the address of a service"),
    (("http://",), "expected the address of a service"),
    (("http://ranks.example/?a=1",), "expected the address of a service"),
    (("http://ranks.example", "em_abc\n"), "expected a key as it was shown"),
    (("http://ranks.example", ""), "expected a key as it was shown"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_an_address_or_a_key_that_is_none_is_refused_at_once(arguments, said):
    with pytest.raises(UsageError, match=said):
        Client(*arguments)


def test_a_token_cannot_sign():
    with pytest.raises(UsageError, match="a player's token cannot sign"):
        Client("http://ranks.example", "eyJhbGciOi.eyJz.c2ln", signed=True)
    with pytest.raises(UsageError, match="an API key to sign with"):
        Client("http://ranks.example", signed=True)


def test_the_environment_says_where_and_who(monkeypatch):
    monkeypatch.delenv("EVENMATCH_URL", raising=False)
    with pytest.raises(UsageError, match="EVENMATCH_URL is not set"):
        Client.from_env()
    with flaky((200, LADDER, {})) as (url, _):
        monkeypatch.setenv("EVENMATCH_URL", url)
        monkeypatch.delenv("EVENMATCH_KEY", raising=False)
        with Client.from_env() as client:
            assert client.list_ladders().next is None


def test_an_empty_name_is_refused_before_it_is_sent():
    with Client("http://127.0.0.1:9") as client, pytest.raises(UsageError, match="a name is empty"):
        client.get_ladder("")
    with Client("http://127.0.0.1:9") as client, pytest.raises(UsageError, match="UTF-8"):
        client.get_ladder("half a letter \ud800")


def test_a_walk_through_standings_that_moved_on_is_told():
    page = {"ladder": "arena", "title": "Arena", "season": None, "listed": 2, "active": 2, "players": 2}
    page |= {"placement": 0, "rebuild_due": False}
    row = {"rank": 1, "rating": 1500.0, "percentile": 50, "division": None, "matches": 1, "completed": 1}
    first = {**page, "items": [{**row, "player": "ann"}], "next": "abc", "moved": False}
    second = {**page, "items": [{**row, "player": "ann"}], "next": None, "moved": True}
    answers = [(200, json.dumps(answer), {}) for answer in (first, second)]
    with flaky(*answers) as (url, _), Client(url) as client:
        walk = client.all(client.get_standings, "arena")
        assert next(walk).player == "ann"
        with pytest.raises(ListMovedError, match="begin again"):
            next(walk)

    async def walk_through(url):
        async with AsyncClient(url) as client:
            return [row.player async for row in client.all(client.get_standings, "arena")]

    with flaky(*answers) as (url, _), pytest.raises(ListMovedError):
        asyncio.run(walk_through(url))
