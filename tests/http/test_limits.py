"""What a process limits by itself: the size of bodies, the number of connections, and lines of the log."""

import json
import shutil
import socket
import struct
import time
from contextlib import ExitStack

import httpx
import pytest

from evenmatch.accounts.keys import Keys
from evenmatch.errors import RateLimitError
from evenmatch.http import server
from evenmatch.http.middleware import SMALL_BODY
from evenmatch.http.rate_limits import BUCKETS_AT_MOST, RateLimit
from evenmatch.operations.service import Service
from protocol_server import received, wait_for
from server_process import Served

FILES = 256
MATCHES = "/v1/ladders/duel/matches"
REPORT = {
    "id": "m-1",
    "played_at": "2026-01-01T12:00:00Z",
    "teams": [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}],
}


class Wire:
    """A process that may open few files, and a key for it."""

    def __init__(self, served, key):
        self.served, self.key = served, key
        host, port = served.address.removeprefix("http://").split(":")
        self.address = host, int(port)

    def connect(self):
        return socket.create_connection(self.address, 30)

    def client(self):
        return self.served.client(self.key)

    def head(self, lines, path=f"{MATCHES}/batch", key=None):
        text = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key or self.key}\r\n{lines}\r\n\r\n"
        return text.encode()


@pytest.fixture(scope="module")
def wire(empty_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    path = shutil.copy(empty_file, folder / "evenmatch.db")
    with Service.open(str(path)) as service:
        key = Keys(service.database, service.clock).create("operator", ["admin"])[1]
    with Served(str(path), folder, open_files=FILES, EVENMATCH_OPEN_BURST="50", EVENMATCH_OPEN_RATE="1") as served:
        made = Wire(served, key)
        with made.client() as client:
            assert client.post("/v1/ladders", json={"name": "duel", "system": "elo"}).status_code == 201
        yield made


def first_status(connection):
    text = connection.recv(1 << 16)
    return int(text.split()[1]) if text else 0


def test_bodies_that_are_not_of_matches_are_small(wire):
    with wire.client() as known:
        for path in ("/v1/ladders", "/v1/keys", "/login"):
            told = known.post(path, content=b" " * (SMALL_BODY + 1))
            assert (told.status_code, f"{SMALL_BODY:,} bytes" in told.text) == (413, True), told.text


def test_a_batch_may_be_large(wire):
    body = json.dumps({"matches": [{**REPORT, "id": f"m-{at}"} for at in range(1000)]}).encode()
    assert len(body) > SMALL_BODY
    with wire.client() as known:
        assert known.post(f"{MATCHES}/batch", content=body).json()["recorded"] == 1000


def test_a_key_that_is_revoked_during_a_slow_upload_reports_nothing(wire):
    body = json.dumps({"matches": [{**REPORT, "id": f"late-{at}"} for at in range(1000)]}).encode()
    with wire.client() as admin, wire.connect() as connection:
        made = admin.post("/v1/keys", json={"name": "leaver", "scopes": ["report"]}).json()
        connection.sendall(wire.head(f"Content-Length: {len(body)}", key=made["text"]) + body[:100_000])
        time.sleep(0.3)
        assert admin.delete(f"/v1/keys/{made['key']}").status_code == 200
        connection.sendall(body[100_000:])
        assert first_status(connection) == 401
        assert admin.get(f"{MATCHES}/late-0").status_code == 404


def test_requests_beyond_the_connections_that_open_files_allow_get_503(wire):
    health = f"{wire.served.address}/healthz"
    with ExitStack() as stack:
        for _ in range(FILES - server.FILES_KEPT):
            stack.enter_context(wire.connect())
        wait_for(lambda: httpx.get(health).status_code == 503)
    wait_for(lambda: httpx.get(health).status_code == 200)
    assert "Too many open files" not in wire.served.told()


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "connections"),
    [
        (256, 256, 10_000, 256 - server.FILES_KEPT),
        (1024, 1_048_576, 10_000, 10_000),  # the soft limit is raised
        (1024, 4096, 10_000, 4096 - server.FILES_KEPT),
        (1024, 1_048_576, 100_000, server.OPEN_FILES - server.FILES_KEPT),
        (1_000_000, 1_048_576, 100_000, 100_000),
        (100, 100, 10_000, server.FEWEST_CONNECTIONS),
    ],
)
def test_the_limit_of_open_files_bounds_the_connections(monkeypatch, soft, hard, wanted, connections):
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(server.resource, "setrlimit", lambda *_: None)
    assert server.allow_connections(wanted) == connections


def test_a_rate_limit_forgets_full_buckets_and_keeps_those_that_were_used_most():
    now = [0.0]
    limit = RateLimit(1.0, 3, "", lambda: now[0])
    for at in range(BUCKETS_AT_MOST - 1):
        limit.take(f"once {at}")
    for _ in range(3):
        limit.take("busy")
    limit.take("one more")
    assert len(limit._full_at) <= BUCKETS_AT_MOST // 2 + 1
    with pytest.raises(RateLimitError):
        limit.take("busy")
    now[0] = 10.0
    assert limit.take("busy").remaining == 2


# the log


def test_what_repeats_is_counted_in_the_log(wire):
    before = len(wire.served.told().splitlines())
    for _ in range(50):
        with wire.connect() as connection:
            connection.sendall(b"no HTTP at all\r\n\r\n")
            received(connection)
    with httpx.Client(base_url=wire.served.address) as stranger:
        statuses = [stranger.get("/v1/keys").status_code for _ in range(200)]
    assert statuses.count(429) > 100
    lines = wire.served.told().splitlines()[before:]
    assert len([line for line in lines if "Invalid HTTP" in line]) == 1
    assert len([line for line in lines if "too many requests" in line]) == 1
    assert not [line for line in lines if '"status": 429' in line]


def test_long_paths_are_cut_in_the_log(wire):
    before = len(wire.served.told().splitlines())
    with wire.client() as known:  # refusals of strangers are not listed
        for start in ("/v1/nothing/", "/v1/ladders/", "/v1/keys/", "/nothing/"):
            assert known.get(start + "x" * 50_000).status_code >= 400
    lines = wire.served.told().splitlines()[before:]
    assert '"path": "/v1/nothing/xxx' in "".join(lines)
    assert max(map(len, lines)) < 1_000


def test_a_stranger_who_breaks_off_writes_no_traceback(wire):
    before = len(wire.served.told().splitlines())
    with ExitStack() as stack:
        for path in (b"/readyz", b"/login", b"/v1/openapi.json") * 5:
            connection = stack.enter_context(wire.connect())
            connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    with wire.client() as known:
        wait_for(lambda: "evenmatch_requests_running 1.0" in known.get("/metrics").text)
    lines = wire.served.told().splitlines()[before:]
    assert [line for line in lines if "Traceback" in line or "Exception in ASGI" in line or '"bug"' in line] == []
