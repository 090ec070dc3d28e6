"""Writes with an Idempotency-Key: carried out once, answered as often as they are sent."""

import hashlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenmatch.accounts import idempotent_requests, signing
from evenmatch.accounts.idempotent_requests import LEASE
from evenmatch.accounts.signing import SignedRequest
from evenmatch.errors import StoreError
from evenmatch.http import middleware
from evenmatch.http import site as site_module
from evenmatch.http.app import endpoints
from evenmatch.http.options import Options

pytestmark = pytest.mark.both_databases

SOON = 20.0  # seconds within which a thread does what it is about to do
KEY = {"name": "one more", "scopes": ["read"]}
DAY = 86_400


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def send(asking, operator):
    """Send a request with an Idempotency-Key, a new key by default."""

    def request(idempotency_key, method="POST", path="/v1/keys", body=KEY, *, text=operator, by=asking):
        headers = {"Authorization": f"Bearer {text}", "Idempotency-Key": idempotency_key}
        return by.request(method, path, json=body, headers=headers)

    return request


@pytest.fixture
def duel(send):
    send("a ladder", path="/v1/ladders", body={"name": "duel", "system": "elo"})
    return "/v1/ladders/duel"


def count_made(site):
    return sum(key.name == "one more" for key in site.keys.list())


def count_stored(service):
    with service.database.read() as store:
        return store.connection.exec_driver_sql("SELECT COUNT(*) FROM idempotent_request").scalar()


def is_repeated(answer):
    return answer.headers.get("Idempotent-Replayed") == "true"


def match(name="m-1", winner="ann"):
    players = [winner, "bob" if winner == "ann" else "ann"]
    teams = [{"place": place, "players": [{"player": player}]} for place, player in enumerate(players, 1)]
    return {"id": name, "played_at": "2026-01-10T12:00:00Z", "teams": teams}


def test_a_write_that_is_sent_again_is_answered_again_and_not_carried_out_again(send, other, site):
    first = send("k")
    assert (first.status_code, is_repeated(first)) == (201, False)
    for by in (None, other):
        again = send("k") if by is None else send("k", by=by)
        assert (again.status_code, is_repeated(again)) == (201, True)
        assert again.content == first.content
        assert again.headers["content-type"] == first.headers["content-type"]
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert count_made(site) == 1
    assert send("another").json()["key"] != first.json()["key"]


# How a request differs from the first one with the same key
OTHERS = [{"body": {**KEY, "name": "two"}}, {"method": "PUT"}, {"path": "/v1/keys?x=1"}, {"path": "/v1/webhooks"}]


@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_the_same_key_for_another_request_is_a_conflict(send, change):
    send("k")
    told = send("k", **change)
    assert (told.status_code, told.json()["type"]) == (409, "urn:evenmatch:problem:conflict")
    assert "the Idempotency-Key 'k' was used for another request" in told.json()["detail"]


def test_keys_of_two_callers_have_nothing_to_do_with_each_other(send, site):
    mine, yours = send("k"), send("k", text=site.keys.create("other", ["admin"])[1])
    assert mine.json()["key"] != yours.json()["key"]
    assert not is_repeated(yours)


def test_an_answer_is_repeated_for_a_day(send, clock, site):
    first = send("k")
    clock.move(seconds=DAY - 1)
    assert send("k").content == first.content
    send("another")
    clock.move(seconds=61)  # old requests are deleted once a minute
    assert not is_repeated(send("k"))
    assert count_made(site) == 3
    clock.move(seconds=DAY + 1)
    send("last")
    assert count_stored(site.service) == 1  # the others were deleted


@pytest.fixture
def held(site, monkeypatch):
    """Makes the creation of keys wait: events `begun` and `go`."""
    begun, go, create = threading.Event(), threading.Event(), site.keys.create

    def slow(*arguments, **options):
        begun.set()
        assert go.wait(SOON)
        return create(*arguments, **options)

    monkeypatch.setattr(site.keys, "create", slow)
    yield begun, go
    go.set()


def test_while_a_request_runs_the_same_one_is_told_to_come_again(send, held, site, other):
    begun, go = held
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(send, "k")
        assert begun.wait(SOON)
        for told in (send("k"), send("k", by=other)):
            assert (told.status_code, told.json()["type"]) == (409, "urn:evenmatch:problem:still-running")
            assert told.headers["Retry-After"] == "1"
        assert send("k", body={**KEY, "name": "two"}).json()["type"] == "urn:evenmatch:problem:conflict"
        go.set()
        assert first.result().status_code == 201
    assert send("k").content == first.result().content
    assert count_made(site) == 1


def test_of_many_at_the_same_moment_one_is_carried_out(send, site, other):
    for by in (None, other):
        send("warm", "GET", by=by) if by else send("warm", "GET")
    start = threading.Barrier(8)

    def again(at):
        start.wait()
        return send("k", by=other) if at % 2 else send("k")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(again, range(8)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert sum(answer.status_code == 201 and not is_repeated(answer) for answer in answers) == 1
    assert count_made(site) == 1


def test_a_request_that_runs_long_stays_that_of_its_process(send, held, clock, site, monkeypatch):
    monkeypatch.setattr(middleware, "EXTEND_EVERY", 0.01)
    begun, go = held
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(send, "k")
        assert begun.wait(SOON)
        clock.move(seconds=2 * LEASE / 1e6)
        deadline = time.monotonic() + SOON
        while lease_end(site.service) < clock.now + LEASE:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert send("k").json()["type"] == "urn:evenmatch:problem:still-running"
        go.set()
        assert first.result().status_code == 201
    assert count_made(site) == 1


@pytest.mark.parametrize("is_done", [True, False])
def test_a_request_that_was_not_answered_in_time_runs_until_its_thread_has_ended(
    send, held, clock, site, monkeypatch, is_done
):
    monkeypatch.setattr(middleware, "EXTEND_EVERY", 0.01)
    (begun, go), create = held, site.keys.create

    def failing(*_, **__):
        begun.set()
        assert go.wait(SOON)
        raise StoreError("the connection was lost")

    monkeypatch.setattr(site.keys, "create", create if is_done else failing)
    with monkeypatch.context() as hurried:
        hurried.setattr(site_module, "CALL_LIMIT", 1.0)
        assert send("k").status_code == 503
    assert begun.is_set()
    assert send("k").json()["type"] == "urn:evenmatch:problem:still-running"
    clock.move(seconds=2 * LEASE / 1e6)
    deadline = time.monotonic() + SOON
    while lease_end(site.service) < clock.now + LEASE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert send("k").json()["type"] == "urn:evenmatch:problem:still-running"
    monkeypatch.setattr(site.keys, "create", create)
    go.set()
    while (again := send("k")).json().get("type") == "urn:evenmatch:problem:still-running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert again.status_code == (409 if is_done else 201), again.json()
    assert count_made(site) == 1


def lease_end(service):
    with service.database.read() as store:
        return store.connection.exec_driver_sql("SELECT held_until FROM idempotent_request").scalar()


def begin(site, operator, request="r-1"):
    """Begin the request of `send("k")` as a process does that then dies."""
    content = hashlib.sha256(b"POST\n/v1/keys\n\n" + json.dumps(KEY, separators=(",", ":")).encode()).digest()
    caller = site.keys.authenticate(operator)
    attempt = site.idempotent_requests.begin(caller, "k", content, request)
    assert attempt.request == request
    return caller


def test_the_request_of_a_process_that_died_is_carried_out_once_its_lease_has_ended(send, site, operator, clock):
    begin(site, operator)
    assert send("k").json()["type"] == "urn:evenmatch:problem:still-running"
    clock.move(seconds=LEASE / 1e6 - 0.001)
    assert send("k").json()["type"] == "urn:evenmatch:problem:still-running"
    clock.move(seconds=0.001)
    first = send("k")
    assert (first.status_code, is_repeated(first)) == (201, False)
    assert send("k").content == first.content
    assert count_made(site) == 1


def test_if_the_process_died_after_it_was_done_it_is_not_done_again(send, site, operator, clock):
    caller = begin(site, operator)
    site.keys.create("one more", ["read"], by=caller, request="r-1")
    clock.move(seconds=LEASE / 1e6)
    told = send("k")
    assert (told.status_code, told.json()["type"]) == (409, "urn:evenmatch:problem:conflict")
    assert "was carried out, but its answer was lost" in told.json()["detail"]
    assert count_made(site) == 1


def test_what_a_database_error_stopped_may_be_sent_again_at_once(send, site, monkeypatch):
    create = site.keys.create
    for fails_after in (False, True):

        def failing(*arguments, fails_after=fails_after, **options):
            if fails_after:
                create(*arguments, **options)
            raise StoreError("the connection was lost")

        monkeypatch.setattr(site.keys, "create", failing)
        name = f"fails after: {fails_after}"
        assert send(name).status_code == 503
        monkeypatch.setattr(site.keys, "create", create)
        assert send(name).status_code == (409 if fails_after else 201)  # the audit trail says that it was done
    assert count_made(site) == 2


def test_a_bug_is_no_answer_either(send, site, monkeypatch):
    create = site.keys.create
    monkeypatch.setattr(site.keys, "create", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(middleware.log, "error", lambda *_, **__: None)  # which takes seconds with a traceback
    assert send("k").status_code == 500
    monkeypatch.setattr(site.keys, "create", create)
    assert send("k").status_code == 201


# What is refused: it leaves no row
REFUSALS = [
    ("/v1/ladders/none/rebuild", None, 404),
    ("/v1/nowhere", None, 404),
    ("/v1/keys", {"name": "x", "scopes": ["none"]}, 422),
]


def test_a_refusal_is_not_stored(send, site, service):
    reader = site.keys.create("reader", ["read"])[1]
    assert [send("k", text=text).status_code for text in (reader, "em_wrong", reader)] == [403, 401, 403]
    for path, body, status in REFUSALS:
        answers = [send("k", path=path, body=body) for _ in range(2)]
        assert [(one.status_code, is_repeated(one)) for one in answers] == [(status, False)] * 2, path
    assert count_stored(service) == 0
    assert send("k").status_code == 201


def test_odds_are_a_read_and_not_stored(send, duel, site, service):
    reader, before = site.keys.create("reader", ["read"])[1], count_stored(service)
    line_up = {"teams": [{"players": ["ann"]}, {"players": ["bob"]}]}
    answers = [send("k", path=f"{duel}/odds", body=line_up, text=reader) for _ in range(2)]
    assert [(one.status_code, is_repeated(one)) for one in answers] == [(200, False)] * 2
    assert count_stored(service) == before


def test_a_signed_request_is_repeated_by_a_new_signature_alone(asking, operator, clock, site):
    """Or whoever saw the request would get its answer."""
    body, secret = json.dumps(KEY).encode(), hashlib.sha256(operator.encode()).digest()

    def signed(nonce):
        now = clock.now // 1_000_000
        signature = signing.sign(secret, now, "POST", "/v1/keys", body, nonce)
        header = signing.write(SignedRequest(operator[:13], now, signature, nonce))
        headers = {"Authorization": header, "Idempotency-Key": "k"}
        return asking.post("/v1/keys", content=body, headers=headers)

    first, again, replayed = signed("a"), signed("b"), signed("a")
    assert (first.status_code, again.status_code, replayed.status_code) == (201, 201, 401)
    assert again.content == first.content
    assert count_made(site) == 1


def test_reports_and_joins_take_it_too(send, duel, service):
    for path, body in ((f"{duel}/matches", match()), (f"{duel}/matches/batch", {"matches": [match("m-2")]})):
        first, again = send(path, path=path, body=body), send(path, path=path, body=body)
        assert (first.status_code, again.status_code) == (200, 200)
        assert again.content == first.content
        assert (is_repeated(first), is_repeated(again)) == (False, True)
    told = send(f"{duel}/matches", path=f"{duel}/matches", body=match("m-3"))
    assert told.json()["type"] == "urn:evenmatch:problem:conflict"
    assert send("new", path=f"{duel}/matches", body=match(winner="bob")).status_code == 409  # the match's own id
    send("set", "PUT", f"{duel}/queues/main", {"policy": {"preset": "quick", "team_size": 1}})
    party = {"queues": ["main"], "members": [{"player": "ann"}]}
    first, again = (send("join", path=f"{duel}/tickets", body=party) for _ in range(2))
    assert (first.status_code, again.content) == (201, first.content)
    left, twice = (send("leave", "DELETE", f"{duel}/tickets/{first.json()['ticket']}", None) for _ in range(2))
    assert (left.status_code, twice.content) == (200, left.content)


def test_an_answer_without_a_body_is_repeated(send, duel):
    send("set", "PUT", f"{duel}/players/ann/filter", {"within": 5})
    send("report", path=f"{duel}/matches", body=match())
    answers = [send("forget", "DELETE", f"{duel}/players/ann/filter", None) for _ in range(2)]
    assert [(one.status_code, one.content, is_repeated(one)) for one in answers] == [
        (204, b"", False),
        (204, b"", True),
    ]


def test_a_read_is_not_remembered(send, service):
    answers = [send("k", "GET", body=None) for _ in range(2)]
    assert [(one.status_code, is_repeated(one)) for one in answers] == [(200, False)] * 2
    assert count_stored(service) == 0


@pytest.mark.parametrize("key", ["", "k" * 257])
def test_a_key_has_1_to_256_characters(send, site, key):
    told = send(key)
    assert told.status_code == 422
    assert f"the header Idempotency-Key has {len(key)} characters; expected 1 to 256" in told.json()["detail"]
    assert count_made(site) == 0


@pytest.mark.parametrize("key", ["k" * 256, "ключ".encode(), 'a b;c="d", e', "0"])
def test_any_text_of_that_length_is_a_key(send, key):
    assert (send(key).status_code, is_repeated(send(key))) == (201, True)


class TestLimits:
    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, rate=0.001, burst=3)

    def test_an_answer_that_is_repeated_counts_once(self, send):
        assert [send("k").status_code for _ in range(4)] == [201, 201, 201, 429]


def test_a_players_token_has_a_limited_number_of_keys(send, duel, site, operator, monkeypatch, clock):
    monkeypatch.setattr(idempotent_requests, "PER_PLAYER", 3)
    send("report", path=f"{duel}/matches", body=match())
    token = site.tokens.issue(site.keys.authenticate(operator), "ann", None, DAY).text

    def keep(key):
        return send(key, "PUT", f"{duel}/players/ann/filter", {"within": 5}, text=token)

    assert [keep(key).status_code for key in "abc"] == [200] * 3
    refused = keep("d")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, str(DAY))
    assert "player ann has used 3 Idempotency-Keys within a day, which is the limit" in refused.json()["detail"]
    assert is_repeated(keep("a"))
    assert send("k").status_code == 201  # others have theirs


def test_the_document_names_the_header_at_every_write_and_nowhere_else(site):
    for path, methods in endpoints(site).openapi()["paths"].items():
        for method, operation in methods.items():
            headers = [one for one in operation.get("parameters", ()) if one["in"] == "header"]
            is_write = method != "get" and operation["operationId"] != "get_odds"
            assert [one["name"] for one in headers] == (["Idempotency-Key"] if is_write else []), path


def test_an_extension_that_comes_late_does_not_undo_the_end_of_a_request(send, site, monkeypatch):
    monkeypatch.setattr(middleware, "EXTEND_EVERY", 0.01)
    extend = site.idempotent_requests.extend
    extending, extend_now = threading.Event(), threading.Event()

    def late(attempt):
        extending.set()
        assert extend_now.wait(SOON)
        extend(attempt)

    def failing(*_, **__):
        assert extending.wait(SOON)
        threading.Timer(0.2, extend_now.set).start()
        raise StoreError("the connection was lost")

    monkeypatch.setattr(site.idempotent_requests, "extend", late)
    create = site.keys.create
    monkeypatch.setattr(site.keys, "create", failing)
    assert send("k").status_code == 503
    assert extend_now.wait(SOON)
    time.sleep(0.2)
    monkeypatch.setattr(site.keys, "create", create)
    assert send("k").status_code == 201
