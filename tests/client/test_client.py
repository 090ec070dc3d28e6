"""The Python client against a real service, against servers that fail, and against the OpenAPI document."""

import asyncio
import inspect
import re
import time
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest
from evenmatch_client import AsyncClient, Client, ListMovedError, ProblemError, UnreachableError, calls, models

URL = "http://ranks.example"
NOW = datetime(2026, 11, 21, 20, tzinfo=UTC)
NOT_FOUND = {"type": "urn:evenmatch:problem:unknown-name", "title": "No", "status": 404, "detail": "no ladder 'x'"}


def duel(match_id, winner, loser, minutes=0):
    teams = [{"place": place, "players": [{"player": name}]} for place, name in ((1, winner), (2, loser))]
    return {"id": match_id, "played_at": NOW + timedelta(minutes=minutes), "teams": teams}


def flaky(*script):
    """A transport that gives these answers in turn, and the requests that it got."""
    asked, answers = [], iter(script)

    def answer(request):
        asked.append(request)
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        status, body, *headers = given
        return httpx.Response(status, json=body, headers=dict(headers))

    return httpx.MockTransport(answer), asked


def client_of(transport, key="em_0123456789_secret", **options):
    return Client(URL, key, transport=transport, **options)


@pytest.fixture
def quick(monkeypatch):
    """Pauses that end at once; the seconds that were asked for."""
    slept = []
    monkeypatch.setattr("evenmatch_client.client.time.sleep", slept.append)
    return slept


@pytest.fixture(scope="module")
def ladder(admin):
    admin.send(calls.post("/v1/ladders", {"name": "duel", "system": "elo", "settings": {"placement": 1}}))
    return "duel"


def test_a_reported_match_has_a_receipt_and_the_same_report_again_the_same(admin, ladder):
    report = calls.report_match(ladder, duel("m-1", "ann", "bob"))
    receipt = admin.send(report)
    (ann,), (bob,) = receipt.teams
    assert (ann.player, bob.player, ann.before, receipt.rated) == ("ann", "bob", 1500.0, True)
    assert (ann.change, bob.change) == (16.0, -16.0)  # half of K = 32 between equals
    assert admin.send(report) == receipt
    batch = admin.send(calls.report_matches(ladder, [duel("m-2", "bob", "ann", 1), duel("m-1", "eve", "joe")]))
    assert (batch.recorded, batch.refused) == (1, 1)
    assert batch.outcomes[1].problem.status == 409
    assert admin.send(calls.match(ladder, "m-1"))["state"] == "rated"
    assert admin.send(calls.odds(ladder, [["ann"], ["bob"]]))["teams"][0]["expected"] == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ProblemError, match="unknown player 'zoe'; known: ann, bob"):
        admin.send(calls.odds(ladder, [["ann"], ["bob"]], entry={"zoe": 1834}))


def test_pages_are_walked_to_their_end_and_corrections_are_finished(admin, ladder):
    for number in range(7):
        admin.send(calls.report_match(ladder, duel(f"w-{number}", f"player {number}", "zoe", 10 + number)))
    until = time.monotonic() + 30  # a view of the standings that was slow to compute is used for some seconds
    rows = list(admin.all(calls.standings(ladder, limit=3)))
    while "zoe" not in {row.player for row in rows}:
        assert time.monotonic() < until
        time.sleep(0.1)
        rows = list(admin.all(calls.standings(ladder, limit=3)))
    assert [row.rank for row in rows] == sorted(row.rank for row in rows)
    assert "player 0" in {row.player for row in rows}
    assert len(list(admin.all(calls.matches(ladder, limit=2)))) >= 7
    effect = admin.finish(calls.post(f"/v1/ladders/{ladder}/bans", {"player": "zoe"}))
    assert "zoe" in {move["player"] for move in effect["effect"]["moves"]}
    job = admin.send(calls.post(f"/v1/ladders/{ladder}/rebuild"))["job"]
    assert admin.wait_for_job(job).state == "done"


def test_players_queue_with_tokens_and_play(serving, admin, ladder):
    policy = {"preset": "quick", "team_size": 1, "steps": [[0, 100]], "even_spread": 100, "newcomer_wait": 0}
    admin.send(calls.put(f"/v1/ladders/{ladder}/queues/main", {"policy": policy, "rules": {"tick": 0.1}}))
    tickets = {}
    for name in ("kim", "lee"):
        token = admin.send(calls.issue_token(name, [ladder])).token
        with Client(serving.url, token) as player:
            tickets[name] = player.send(calls.join_queue(ladder, ["main"], [{"player": name}])).ticket
            with pytest.raises(ProblemError, match=r"^403"):
                player.send(calls.report_match(ladder, duel("own", name, "x")))
    seen = admin.send(calls.ticket(ladder, tickets["kim"]))
    assert (seen.players, seen.queues) == (["kim"], ["main"])
    for name, number in tickets.items():
        ticket = admin.send(calls.ticket(ladder, number))
        while ticket.offer is None:
            ticket = admin.send(calls.ticket(ladder, number, after=ticket.change, wait=5))
        admin.send(calls.accept_offer(ladder, number, player=name))
    match = admin.wait_for_match(ladder, tickets["kim"]).match
    sides = [[player.player for player in team] for team in match.teams]
    assert sorted(sides) == [["kim"], ["lee"]]
    at = {"address": "203.0.113.7:7777", "tokens": {"kim": "k-1"}}
    assert admin.send(calls.announce_match(ladder, match.match_id, sides, queue="main", connection=at)).connected
    announced = {name: admin.wait_for_match(ladder, tickets[name], stage="announced").match for name in tickets}
    assert [announced[name].connection.tokens for name in ("kim", "lee")] == [{"kim": "k-1"}, {}]
    assert announced["lee"].connection.address == "203.0.113.7:7777"
    assert [live.match_id for live in admin.send(calls.live_matches(ladder)).items] == [match.match_id]
    receipt = admin.send(calls.close_match(ladder, match.match_id, {"teams": [{"score": 2}, {"score": 1}]}))
    assert receipt.rated
    rated = admin.wait_for_match(ladder, tickets["kim"], stage="rated").match.receipt.players["kim"]
    assert {rated.after} == {line.after for team in receipt.teams for line in team if line.player == "kim"}
    gone = admin.send(calls.join_queue(ladder, ["main"], [{"player": "mia"}])).ticket
    assert admin.wait_for_match(ladder, gone, timeout=0.2).state == "waiting"
    assert admin.send(calls.leave_queue(ladder, gone)).state == "gone"


def test_signed_requests_carry_no_key(serving, admin, ladder):
    with Client(serving.url, serving.keys["report"], signed=True) as client:
        receipt = client.send(calls.report_match(ladder, duel("signed ü/1", "ann", "bob", 60)))
        assert receipt.match_id == "signed ü/1"
        assert client.send(calls.match(ladder, "signed ü/1"))["match_id"] == "signed ü/1"


async def awaited(url, key, ladder):
    async with AsyncClient(url, key) as client:
        first = await client.send(calls.standings(ladder, limit=2))
        rows = [row async for row in client.all(calls.standings(ladder, limit=2))]
        joined = await client.send(calls.join_queue(ladder, ["main"], [{"player": "nat"}]))
        waiting = await client.wait_for_match(ladder, joined.ticket, timeout=0.2)
        await client.send(calls.leave_queue(ladder, joined.ticket))
        done = await client.finish(calls.post(f"/v1/ladders/{ladder}/verify"))
        return first, rows, waiting, done


def test_everything_can_be_awaited(serving, ladder):
    first, rows, waiting, done = asyncio.run(awaited(serving.url, serving.keys["admin"], ladder))
    assert len(rows) > len(first.items) == 2
    assert waiting.state == "waiting"
    assert done


def test_a_failed_request_is_sent_again_with_growing_pauses(quick):
    transport, asked = flaky(
        httpx.ConnectError("refused"), (503, {}), (429, {}, ("Retry-After", "3")), (200, {"name": "duel"})
    )
    with client_of(transport) as client:
        assert client.send(calls.get("/v1/ladders/duel")) == {"name": "duel"}
    assert len(asked) == 4
    assert 0.05 <= quick[0] <= 0.1
    assert 0.1 <= quick[1] <= 0.2
    assert quick[2] == 3.0


def test_a_write_without_an_id_is_sent_again_under_one_key(quick):
    transport, asked = flaky((502, {}), (200, {}), (502, {}), (200, {}))
    with client_of(transport) as client:
        client.send(calls.post("/v1/ladders/duel/rebuild"))
        client.send(calls.post("/v1/ladders/duel/rebuild"))
    keys = [request.headers["Idempotency-Key"] for request in asked]
    assert (keys[0], keys[2]) == (keys[1], keys[3])
    assert keys[0] != keys[2]


def test_a_join_is_sent_again_under_the_id_of_the_party(quick):
    joined = {"ticket": 1, "ladder": "duel", "state": "waiting", "change": 1}
    transport, asked = flaky(httpx.ReadTimeout("slow"), (200, joined))
    with client_of(transport) as client:
        assert client.send(calls.join_queue("duel", ["main"], [{"player": "ann"}])).ticket == 1
    assert len({msgspec.json.decode(request.content)["request_id"] for request in asked}) == 1


def test_a_refusal_is_not_sent_again(quick):
    transport, asked = flaky((404, NOT_FOUND))
    with client_of(transport) as client, pytest.raises(ProblemError, match=r"^404: no ladder 'x'$") as refused:
        client.send(calls.standings("x"))
    assert (len(asked), refused.value.problem.type) == (1, NOT_FOUND["type"])


@pytest.mark.parametrize("answer", [(200, ["not", "ours"]), (200, {"title": "A shop"})])
def test_an_answer_of_another_server_is_refused(answer):
    transport, _ = flaky(answer)
    with client_of(transport) as client, pytest.raises(UnreachableError, match="not from evenmatch"):
        client.send(calls.standings("duel"))


@pytest.mark.parametrize("status", [200, 502])
def test_an_answer_that_is_not_utf_8_is_refused(status):
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=b'{"type":"\xff"}'))
    with client_of(transport, patience=0.0) as client, pytest.raises((UnreachableError, ProblemError)):
        client.send(calls.standings("duel"))


def test_without_an_answer_patience_ends(quick):
    transport, _ = flaky(*[httpx.ConnectError("refused")] * 9)
    with client_of(transport, patience=0.0) as client, pytest.raises(UnreachableError, match="refused"):
        client.send(calls.get("/v1/ladders"))


def test_a_job_that_failed_is_a_problem():
    job = {
        "job": "j1",
        "ladder": "duel",
        "kind": "correction",
        "state": "failed",
        "done": 1,
        "total": 2,
        "told": "full",
    }
    transport, _ = flaky((202, job), (200, job))
    with client_of(transport) as client, pytest.raises(ProblemError, match="j1 is failed: full"):
        client.finish(calls.post("/v1/ladders/duel/bans", {"player": "eve"}))


def test_standings_that_moved_on_end_a_walk():
    page = {"ladder": "duel", "items": [], "next": "c1", "moved": False}
    transport, _ = flaky((200, page), (200, page | {"moved": True}))
    with client_of(transport) as client, pytest.raises(ListMovedError):
        list(client.all(calls.standings("duel")))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ranks.example",), "url 'ranks.example': expected the address of a service"),
        ((URL, " em_x"), "has characters that no key has"),
        ((URL, "eyJ", True), "needs an API key, em_…; a player's token cannot sign"),
        ((URL, None, True), "needs an API key to sign with"),
    ],
)
def test_a_wrong_address_or_key_is_refused_at_once(arguments, said):
    url, key, *signed = (*arguments, None)[:3] if len(arguments) < 3 else arguments
    with pytest.raises(ValueError, match=re.escape(said)):
        Client(url, key, signed=bool(signed and signed[0]))


def test_the_environment_names_the_service(monkeypatch):
    monkeypatch.delenv("EVENMATCH_URL", raising=False)
    with pytest.raises(ValueError, match="EVENMATCH_URL is not set"):
        Client.from_env()
    monkeypatch.setenv("EVENMATCH_URL", URL)
    Client.from_env().close()


def test_an_empty_name_is_refused_before_it_is_sent():
    with pytest.raises(ValueError, match="a name is empty"):
        calls.match("duel", "")


EXAMPLES = {
    "ladder": "duel",
    "match_id": "m1",
    "number": 1,
    "name": "ann",
    "player": "ann",
    "queues": ["main"],
    "members": [{"player": "ann"}],
    "teams": [["ann"], ["bob"]],
    "match": {},
    "matches": [],
    "result": {},
    "changes": [],
}
OF_GAMES = [
    function
    for name, function in inspect.getmembers(calls, inspect.isfunction)
    if function.__module__ == "evenmatch_client.calls"
    and name not in {"get", "post", "put", "patch", "delete"}
    and not name.startswith("_")
]


@pytest.fixture(scope="module")
def document(serving):
    return httpx.get(f"{serving.url}/v1/openapi.json").json()


@pytest.mark.parametrize("function", OF_GAMES, ids=lambda function: function.__name__)
def test_every_call_is_an_operation_of_the_service_with_its_parameters(function, document):
    needed = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    call = function(**{name: EXAMPLES[name] for name in needed})
    found = [
        operations[call.method.lower()]
        for path, operations in document["paths"].items()
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), call.path) and call.method.lower() in operations
    ]
    assert found, f"{call.method} {call.path}"
    known = {parameter["name"] for operation in found for parameter in operation.get("parameters", ())}
    assert set(call.query or ()) <= known


SENT_AS = {
    "Receipt": "Receipt",
    "Outcome": "Outcome",
    "PlayerChange": "PlayerChange",
    "BatchOutcome": "BatchOutcome",
    "PlayerRecord": "PlayerRecord",
    "StandingRow": "StandingRow",
    "StandingsPage": "StandingsPage",
    "Ticket": "TicketOut",
    "TicketChange": "TicketChange",
    "Offer": "OfferOut",
    "Waiting": "WaitingOut",
    "FormedMatch": "StartedMatch",
    "LiveMatch": "MatchStatus",
    "LivePlayer": "LivePlayer",
    "Token": "TokenOut",
    "Job": "JobOut",
    "Problem": "Problem",
}


@pytest.mark.parametrize("name", SENT_AS)
def test_every_field_of_an_answer_is_one_of_the_service(name, document):
    schema = document["components"]["schemas"][SENT_AS[name]]
    assert set(getattr(models, name).__struct_fields__) <= set(schema["properties"])


def test_the_client_imports_neither_evenmatch_nor_anything_heavy(run_python):
    told = run_python(
        "import sys, evenmatch_client; print([name for name in ('evenmatch', 'numpy', 'pydantic', 'sqlalchemy') "
        "if name in sys.modules])"
    )
    assert told == "[]"
