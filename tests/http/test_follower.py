"""A process that only reads, over a real hot standby of a real server: the same answers, and no write."""

import time

import httpx
import pytest

from postgres_standby import Standby
from protocol_server import wait_for
from run_command import run_command
from server_process import SLOWEST, Served

pytestmark = pytest.mark.slow

WRITES_AT = "https://rank.example"


@pytest.fixture(scope="module")
def standby(postgres):
    with Standby(postgres) as following:
        yield following


@pytest.fixture(scope="module")
def primary_url(postgres, standby):  # a database that is made after the standby follows, too
    assert standby.is_up
    return postgres.fresh_database()


@pytest.fixture(scope="module")
def key(primary_url):
    run_command("ladder", "create", "duel", "--system", "elo", "--placement", "0", "--db", primary_url)
    return run_command("key", "create", "operator", "--scope", "admin", "--db", primary_url).out.strip()


@pytest.fixture(scope="module")
def primary(primary_url, key, tmp_path_factory):
    with Served(primary_url, tmp_path_factory.mktemp("primary")) as process, process.client(key) as admin:
        admin.put("/v1/ladders/duel/queues/ranked", json={}).raise_for_status()
        admin.get("/login").raise_for_status()
        yield admin


@pytest.fixture(scope="module")
def follower(primary, primary_url, standby, key, tmp_path_factory):
    standby.catch_up()
    settings = {"EVENMATCH_FOLLOWER": "true", "EVENMATCH_WRITES_AT": WRITES_AT}
    url, folder = standby.url_of(primary_url), tmp_path_factory.mktemp("follower")
    with Served(url, folder, **settings) as process, process.client(key) as reader:
        wait_for(lambda: reader.get("/readyz").is_success, 3 * SLOWEST)
        yield reader


def report(number):
    teams = [{"place": place, "players": [{"player": name}]} for place, name in ((1, "ann"), (2, "bob"))]
    return {"id": f"m-{number}", "played_at": "2026-01-01T12:00:00Z", "teams": teams}


READS = (
    *("/v1/ladders", "/v1/ladders/duel", "/v1/ladders/duel/standings", "/v1/ladders/duel/matches/m-1", "/v1/audit"),
    *("/v1/ladders/duel/players/ann", "/v1/ladders/duel/queues", "/v1/ladders/duel/head", "/v1/webhooks", "/v1/keys"),
    *("/v1/players?search=an", "/v1/ladders/duel/seasons", "/v1/jobs", "/v1/ladders/duel/odd-names"),
    *("/metrics", "/", "/ladders/duel", "/ladders/duel/players/ann", "/login"),
)


@pytest.fixture(scope="module")
def reported(primary, follower, standby):
    """A match that the primary has recorded, and the standby has by now."""
    primary.post("/v1/ladders/duel/matches", json=report(1)).raise_for_status()
    standby.catch_up()
    for client in (primary, follower):  # a view that was costly is kept for a moment
        wait_for(lambda client=client: client.get("/v1/ladders/duel/standings").json()["players"] == 2)
    return follower


@pytest.mark.parametrize("path", READS)
def test_reads_are_answered_as_by_the_primary(primary, reported, path):
    expected, answer = (client.get(path, follow_redirects=True) for client in (primary, reported))
    assert answer.status_code == expected.status_code, answer.text
    assert answer.status_code < 500
    if path.startswith("/v1/ladders/duel/") and "queues" not in path:
        assert answer.json() == expected.json()


def test_odds_are_a_read_with_a_body(primary, reported):
    body = {"teams": [{"players": ["ann"]}, {"players": ["bob"]}]}
    expected, answer = (client.post("/v1/ladders/duel/odds", json=body) for client in (primary, reported))
    assert (answer.status_code, answer.json()) == (200, expected.json())


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/ladders/duel/matches"),
        ("POST", "/v1/ladders/duel/tickets"),
        ("GET", "/v1/ladders/duel/tickets/1"),
        ("POST", "/v1/ladders"),
        ("DELETE", "/v1/ladders/duel/voids/m-1"),
        ("PUT", "/v1/ladders/duel/queues/other"),
    ],
)
def test_a_write_is_refused_and_told_where_it_is_taken(follower, method, path):
    headers = {"Idempotency-Key": "an attempt"}
    told = follower.request(method, path, json=report(2), headers=headers)
    assert told.status_code == 405
    assert told.json()["type"].endswith(":follower")
    assert f"send it to {WRITES_AT}" in told.json()["detail"]
    assert told.headers["allow"] == "GET, HEAD, OPTIONS"


def test_a_session_of_the_primary_is_known_and_cannot_be_ended_here(primary, follower, standby, key):
    def logged_in(client):
        with httpx.Client(base_url=client.base_url, timeout=SLOWEST) as browser:
            page = browser.post("/login", data={"key": key}, headers={"Origin": str(client.base_url).rstrip("/")})
            return page.status_code, dict(browser.cookies)

    status, cookies = logged_in(primary)
    assert cookies, status
    standby.catch_up()
    with httpx.Client(base_url=follower.base_url, cookies=cookies, timeout=SLOWEST) as browser:
        assert browser.get("/operate").status_code == 200


def test_a_follower_is_ready_while_the_primary_is_down_and_not_when_its_standby_is(postgres, reported, standby):
    postgres.stop_now()
    try:
        time.sleep(0.1)
        assert reported.get("/readyz").status_code == 200
        assert reported.get("/v1/ladders/duel/standings").json()["players"] == 2
        standby.stop_now()
        wait_for(lambda: reported.get("/readyz").status_code == 503)
        standby.start()
        wait_for(lambda: reported.get("/readyz").status_code == 200)
    finally:
        postgres.start()


def test_a_database_without_the_schema_is_not_created_by_a_follower(tmp_path):
    told = run_command("serve", "--follower", "--port", "0", "--db", str(tmp_path / "evenmatch.db"))
    assert told.code == 3
    assert "has schema none, which a follower cannot upgrade" in told.err
