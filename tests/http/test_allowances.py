"""Whose requests count for whom: a key has an allowance, and so has an address for requests without a valid key."""

import json

import pytest

from evenmatch import rules
from evenmatch.accounts import account_sql, signing
from evenmatch.accounts.signing import SignedRequest
from evenmatch.http.access import client_of
from evenmatch.http.options import Options

REPORT = {
    "played_at": "2026-01-01T12:00:00Z",
    "teams": [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}],
}
LADDERS = "/v1/ladders"
FEW = 5


@pytest.fixture
def options():
    return Options(matchmaker=False, open_reads=True, open_rate=0.001, open_burst=FEW, rate=0.001, burst=50)


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def ladder(service):
    service.create_ladder("duel", "elo", rules("elo"))
    return "duel"


def statuses(client, count, **fields):
    return [client.get(LADDERS, **fields).status_code for _ in range(count)]


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def key(site):
    """A key that this process has not seen yet."""
    return site.keys.create("good", ["queue"], None, None)[1]


def wrong(at):
    return bearer(f"em_{'a' * 9}{'abcdefghijklmnopqrstuvwxyz'[at]}_{'x' * 43}")


@pytest.fixture
def token(site, key):
    return site.tokens.issue(site.keys.authenticate(key), "ann").text


def test_reads_without_a_key_leave_the_keys_of_their_address_alone(client, clock, key, token):
    assert statuses(client, FEW + 2) == [200] * FEW + [429] * 2
    clock.move(seconds=10)  # what the process remembered of the key is old
    assert statuses(client, 1, headers=bearer(key)) == [200]
    clock.move(seconds=10)
    assert statuses(client, 1, headers=bearer(token)) == [200]


@pytest.mark.parametrize(("method", "path", "status"), [("get", "/v1/nothing", 404), ("put", LADDERS, 405)])
def test_requests_without_an_endpoint_count_for_who_sends_them(client, key, method, path, status):
    ask = getattr(client, method)
    assert [ask(path).status_code for _ in range(FEW + 2)] == [status] * FEW + [429] * 2
    assert statuses(client, 1) == [429]
    assert statuses(client, 1, headers=bearer(key)) == [200]
    assert [ask(path, headers=bearer(key)).status_code for _ in range(FEW + 2)] == [status] * (FEW + 2)
    assert statuses(client, 50, headers=bearer(key)).count(429) == FEW + 3


@pytest.mark.parametrize("who", ["key", "token"])
def test_who_is_known_is_told_that_there_is_no_endpoint_though_others_of_the_address_asked_too_often(
    client, clock, key, token, who
):
    assert [client.get("/v1/nothing").status_code for _ in range(FEW + 1)] == [404] * FEW + [429]
    assert client.get("/v1/nothing", headers=wrong(0)).status_code == 429
    clock.move(seconds=10)  # what the process remembered of the key is old
    assert client.get("/v1/nothing", headers=bearer(key if who == "key" else token)).status_code == 404


def test_a_key_leaves_reads_without_one_alone(client, key):
    assert statuses(client, 20, headers=bearer(key)) == [200] * 20
    assert statuses(client, FEW + 1) == [200] * FEW + [429]


def test_wrong_keys_count_for_their_address_and_leave_its_good_keys_alone(client, clock, key, token):
    assert [client.get(LADDERS, headers=wrong(at)).status_code for at in range(FEW + 3)] == [401] * FEW + [429] * 3
    assert statuses(client, 1) == [429]
    for text in (key, token):
        clock.move(seconds=10)  # what the process remembered of the key is old
        assert statuses(client, 1, headers=bearer(text)) == [200]


@pytest.fixture
def key_queries(monkeypatch):
    """The ids of the keys that are read from the database, as a list that grows."""
    read, ids = account_sql.read_api_key, []

    def noting(store, key):
        ids.append(key)
        return read(store, key)

    monkeypatch.setattr(account_sql, "read_api_key", noting)
    return ids


def test_wrong_keys_of_an_address_are_looked_up_as_often_as_its_allowance_permits(client, clock, site, key_queries):
    seen, unseen = (site.keys.create(name, ["read"])[1] for name in ("seen", "unseen"))
    assert statuses(client, 1, headers=bearer(seen)) == [200]
    del key_queries[:]
    for at in range(FEW + 5):
        client.get(LADDERS, headers=wrong(at))
        client.post(f"{LADDERS}/duel/matches", json={}, headers=wrong(at + 12))
    assert len(key_queries) == FEW
    clock.move(seconds=10)  # what the process remembered of the key is old
    assert statuses(client, 1, headers=bearer(seen)) == [200]
    assert len(key_queries) == FEW + 1
    assert statuses(client, 1, headers=bearer(unseen)) == [429]  # it cannot be told from a wrong one without a query
    assert len(key_queries) == FEW + 1


def test_wrong_keys_leave_signed_reports_of_their_address_alone(client, clock, site, ladder):
    text, path = site.keys.create("game", ["report"])[1], f"/v1/ladders/{ladder}/matches"
    assert statuses(client, 1, headers=bearer(text)) == [200]
    clock.move(seconds=10)  # what the process remembered of the key is old

    def report(match_id, key=text[:13]):
        body = json.dumps({**REPORT, "id": match_id}).encode()
        now = clock.now // 1_000_000
        signature = signing.sign(signing.signing_key(text), now, "POST", path, body)
        signed = {"Authorization": signing.write(SignedRequest(key, now, signature))}
        return client.post(path, content=body, headers=signed).status_code

    assert [client.get(LADDERS, headers=wrong(at)).status_code for at in range(FEW + 1)] == [401] * FEW + [429]
    assert report("m-1") == 200
    assert report("m-2", key="em_aaaaaaaaaa") == 429


def test_wrong_tokens_count_as_wrong_keys_do(client, clock, token):
    forged = f"{token[:-10]}{'A' * 10}"
    assert statuses(client, FEW + 2, headers=bearer(forged)) == [401] * FEW + [429] * 2
    clock.move(seconds=10)
    assert statuses(client, 1, headers=bearer(token)) == [200]


def test_a_revoked_key_counts_as_a_wrong_one(client, clock, site, key):
    site.keys.revoke(key)
    clock.move(seconds=10)
    assert statuses(client, FEW + 1, headers=bearer(key)) == [401] * FEW + [429]


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9%eth0", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unix", "unix"),
    ],
)
def test_an_ipv6_network_counts_as_one_client(host, counted):
    """A site has 2^64 addresses of its own."""
    assert client_of({"client": (host, 1)}) == counted


def test_the_description_of_the_api_counts_as_other_reads_do(client, key):
    documents = [client.get("/v1/openapi.json").status_code for _ in range(FEW + 1)]
    assert documents == [200] * FEW + [429]
    assert client.get("/v1/ladders", headers=bearer(key)).status_code == 200
    assert client.get("/v1/openapi.json", headers=bearer(key)).status_code == 200
