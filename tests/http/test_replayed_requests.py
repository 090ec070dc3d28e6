"""Signed writes that are sent again by somebody who has seen them: each is accepted once."""

import hashlib
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from asgi_client import Asking
from evenmatch.accounts import signing
from evenmatch.accounts.signing import PRUNE_EVERY, SKEW, SignedRequest
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.operations.service import Service

pytestmark = pytest.mark.both_databases

PATH = "/v1/keys"
BODY = json.dumps({"name": "one more", "scopes": ["read"]}).encode()


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def sign(operator, clock):
    """The headers of a signed request."""

    def headers(method="POST", path=PATH, body=BODY, *, key=operator, nonce=None, ago=0):
        now, secret = clock.now // 1_000_000 - ago, hashlib.sha256(key.encode()).digest()
        signature = signing.sign(secret, now, method, path, body, nonce)
        return {"Authorization": signing.write(SignedRequest(key[:13], now, signature, nonce))}

    return headers


def count_made(site):
    return sum(key.name == "one more" for key in site.keys.list())


def count_seen(service):
    with service.database.read() as store:
        return store.connection.exec_driver_sql("SELECT COUNT(*) FROM seen_signature").scalar()


def test_a_signed_write_is_accepted_once(asking, sign, site):
    headers = sign()
    assert asking.post(PATH, content=BODY, headers=headers).status_code == 201
    for _ in range(2):
        again = asking.post(PATH, content=BODY, headers=headers)
        assert again.status_code == 401
        assert "this signature was already used: a signed write is accepted once" in again.json()["detail"]
        assert again.headers["WWW-Authenticate"]
    assert count_made(site) == 1


def test_another_process_and_one_that_is_started_again_refuse_it_too(asking, other, sign, site, database_url, clock):
    headers = sign()
    assert asking.post(PATH, content=BODY, headers=headers).status_code == 201
    assert other.post(PATH, content=BODY, headers=headers).status_code == 401
    with Service.open(str(database_url), clock) as service:
        restarted = site_over(service, Options(matchmaker=False))
        asking = Asking(application(restarted))
        assert asking.post(PATH, content=BODY, headers=headers).status_code == 401
        asking.close()
        restarted.threads.shutdown()
    assert count_made(site) == 1


def test_of_many_at_the_same_moment_in_two_processes_one_is_accepted(asking, other, sign, site):
    headers, start = sign(), threading.Barrier(8)
    for process in (asking, other):
        process.get(PATH)  # FastAPI prepares its endpoints with the first request, which two threads cannot do at once

    def send(process):
        start.wait()
        return process.post(PATH, content=BODY, headers=headers).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, [asking, other] * 4))
    assert sorted(statuses) == [201] + [401] * 7
    assert count_made(site) == 1


def test_a_new_nonce_or_a_new_second_makes_another_request(asking, sign, site):
    sent = [sign(), sign(nonce="a"), sign(nonce="b-_2"), sign(ago=1), sign(nonce="a", ago=1)]
    assert [asking.post(PATH, content=BODY, headers=headers).status_code for headers in sent] == [201] * 5
    assert [asking.post(PATH, content=BODY, headers=headers).status_code for headers in sent] == [401] * 5
    assert count_made(site) == 5


def test_a_nonce_is_part_of_what_is_signed(asking, sign, site):
    value = sign(nonce="a")["Authorization"]
    for forged in (value.replace("nonce=a", "nonce=b"), value.replace(" nonce=a,", ""), value.replace("=a,", "=a.,")):
        assert asking.post(PATH, content=BODY, headers={"Authorization": forged}).status_code == 401
    assert count_made(site) == 0
    assert asking.post(PATH, content=BODY, headers={"Authorization": value}).status_code == 201


def test_a_signed_read_may_be_repeated(asking, sign, service):
    headers = sign("GET", PATH, b"")
    assert [asking.get(PATH, headers=headers).status_code for _ in range(2)] == [200, 200]
    assert count_seen(service) == 0


def test_every_kind_of_write_is_accepted_once(asking, sign, admin):
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    played_at = datetime(2026, 1, 10, tzinfo=UTC).isoformat()
    teams = [{"place": place, "players": [{"player": name}]} for place, name in ((1, "ann"), (2, "bob"))]
    match = {"id": "m-1", "played_at": played_at, "teams": teams}
    writes = [
        ("POST", "/v1/ladders/duel/matches", match),
        ("POST", "/v1/ladders/duel/matches/batch", {"matches": [match]}),
        ("PATCH", "/v1/ladders/duel", {"title": "The duel"}),
        ("PUT", "/v1/ladders/duel/players/ann/filter", {"within": 5}),
        ("DELETE", "/v1/ladders/duel/players/ann/filter?x=1", None),
    ]
    for method, path, body in writes:
        content = b"" if body is None else json.dumps(body).encode()
        headers = sign(method, path, content)
        statuses = [asking.request(method, path, content=content, headers=headers).status_code for _ in range(2)]
        assert statuses in ([200, 401], [204, 401]), path


def test_what_is_refused_leaves_nothing(asking, sign, service):
    wrong = sign(key="em_aaaaaaaaaa_" + "b" * 43)
    assert asking.post(PATH, content=BODY, headers=wrong).status_code == 401
    assert asking.post(PATH, content=BODY + b" ", headers=sign()).status_code == 401
    assert asking.post(PATH, content=BODY, headers=sign(ago=SKEW + 1)).status_code == 401
    assert count_seen(service) == 0


class TestLimits:
    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, rate=0.001, burst=1)

    def test_a_request_beyond_the_rate_limit_does_not_use_its_signature_up(self, asking, sign, site, service):
        assert asking.post(PATH, content=BODY, headers=sign(nonce="a")).status_code == 201
        assert asking.post(PATH, content=BODY, headers=sign(nonce="b")).status_code == 429
        assert count_seen(service) == 1


def test_signatures_are_forgotten_when_their_timestamps_are_too_old_and_not_before(asking, sign, clock, service):
    first = sign(ago=-SKEW)  # of a clock that is as far ahead as it may be
    assert asking.post(PATH, content=BODY, headers=first).status_code == 201
    for at in itertools.count():
        asking.post(PATH, content=BODY, headers=sign(nonce=f"n{at}"))
        again = asking.post(PATH, content=BODY, headers=first)
        assert again.status_code == 401
        if "s ago; at most 300 s are allowed" in again.json()["detail"]:
            break
        assert "already used" in again.json()["detail"]
        clock.move(seconds=PRUNE_EVERY)
    assert at == 2 * SKEW // PRUNE_EVERY + 1
    clock.move(days=1)
    asking.post(PATH, content=BODY, headers=sign())
    assert count_seen(service) == 1
