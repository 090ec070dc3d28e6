"""Whoever has no key holds nothing for long: neither connections nor memory nor the allowance of those who have one."""

import asyncio
import json
import shutil
import socket
import struct
import sys
import time
from contextlib import ExitStack, suppress

import httpx
import pytest

from evenmatch.accounts.keys import Keys
from evenmatch.accounts.signing import SignedRequest, sign, signing_key, write
from evenmatch.errors import UsageError
from evenmatch.http import server
from evenmatch.http.bodies import (
    KEYS,
    SIGNATURES,
    STRANGERS,
    VERIFIED,
    BodyMemory,
    BodySender,
    least_memory,
    players_of,
)
from evenmatch.http.limited_body import OTHER, SMALL, LimitedBody
from evenmatch.http.options import Options, read_options
from evenmatch.http.rate_limits import RateLimit
from evenmatch.http.request_context import RequestContext
from evenmatch.operations.service import Service
from loop_lag import BUSY, ServedLag
from protocol_server import received, wait_for
from run_command import run_command
from server_process import Served

FILES = 256
MATCHES = "/v1/ladders/duel/matches"
LARGE = 7_900_000  # bytes
REPORT = {
    "id": "m-1",
    "played_at": "2026-01-01T12:00:00Z",
    "teams": [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}],
}


class Wire:
    """A process that may open few files, and three keys for it."""

    def __init__(self, served, keys):
        self.served, self.keys = served, keys
        host, port = served.address.removeprefix("http://").split(":")
        self.address = host, int(port)

    def connect(self, source="127.0.0.1"):
        return socket.create_connection(self.address, 30, source_address=(source, 0))

    def client(self, key=None):
        return self.served.client(self.keys[0] if key is None else key)

    def head(self, size, path=f"{MATCHES}/batch", key=None):
        """The head of a request with a body of this size; key "": a stranger's."""
        authorization = "" if key == "" else f"Authorization: Bearer {key or self.keys[0]}\r\n"
        return f"POST {path} HTTP/1.1\r\nHost: x\r\n{authorization}Content-Length: {size}\r\n\r\n".encode()


@pytest.fixture(scope="module")
def wire(empty_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers")
    path = shutil.copy(empty_file, folder / "evenmatch.db")
    with Service.open(str(path)) as service:
        keys = [Keys(service.database, service.clock).create(f"key {at}", ["admin"])[1] for at in range(3)]
    settings = {
        "EVENMATCH_HEAD_WITHIN": "2",
        "EVENMATCH_BODY_MEMORY": "42000000",
        "EVENMATCH_OPEN_BURST": "500",
        "EVENMATCH_OPEN_RATE": "1",  # so that a slow machine does not fill it up again between requests
        "EVENMATCH_OPEN_READS": "true",
    }
    with Served(str(path), folder, open_files=FILES, **settings) as served:
        made = Wire(served, keys)
        with made.client() as client:
            assert client.post("/v1/ladders", json={"name": "duel", "system": "elo"}).status_code == 201
            assert client.post(MATCHES, json=REPORT).status_code == 200
        yield made


def status_of(text):
    return int(text.split()[1]) if text else 0


def first_status(connection):
    return status_of(connection.recv(1 << 16))


# connections


def test_the_start_says_how_many_connections_there_may_be(wire):
    line = next(line for line in wire.served.told().splitlines() if '"serving"' in line)
    assert json.loads(line)["connections"] == FILES - server.RESERVED


def test_four_hundred_silent_connections_keep_nobody_out(wire):
    with ExitStack() as stack, wire.client() as known:
        for at in range(400):
            stack.enter_context(wire.connect(f"127.0.1.{at % 200 + 1}"))
        begun = time.monotonic()
        assert httpx.get(f"{wire.served.address}/healthz").status_code == 200
        assert known.get("/v1/ladders").status_code == 200
        assert known.post(MATCHES, json={**REPORT, "id": "m-2"}).status_code == 200
        with wire.connect("127.0.2.1") as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert first_status(other) == 200
        assert time.monotonic() - begun < 5
    assert "Too many open files" not in wire.served.told()


@pytest.mark.parametrize(
    ("files", "options", "connections"),
    [
        (256, {}, 128),
        (1024, {}, 896),
        (1_000_000, {}, 50_000),
        (256, {"connections": 100}, 100),
    ],
)
def test_the_limit_of_open_files_says_how_many_connections_there_are(monkeypatch, files, options, connections):
    monkeypatch.setattr(server, "_open_files", lambda: files)
    limits = server.choose_limits(Options(**options))
    assert limits == (connections, max(32, connections // 4), connections // 8)


@pytest.mark.parametrize(("files", "options", "word"), [(150, {}, "at least 192"), (256, {"connections": 200}, "128")])
def test_a_limit_that_does_not_suffice_is_told_with_what_to_do(monkeypatch, files, options, word):
    monkeypatch.setattr(server, "_open_files", lambda: files)
    with pytest.raises(UsageError, match=word) as told:
        server.choose_limits(Options(**options))
    assert "ulimit -n" in str(told.value)


# heads


def test_two_million_headers_take_no_memory(wire):
    before = wire.served.memory
    with wire.connect() as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            for _ in range(2000):
                connection.sendall(b"X: y\r\n" * 1000)
        except OSError:
            pass
        assert status_of(received(connection)) in (0, 431)
    assert wire.served.memory < before + 10
    with wire.client() as known:
        refused = 'evenmatch_connections_refused_total{reason="large-head"}'
        assert refused in known.get("/metrics").text


# bodies


def test_a_stranger_is_refused_before_the_body_is_read(wire):
    before = wire.served.memory
    with ExitStack() as stack, ServedLag(wire.served.address) as lag:
        uploads = [stack.enter_context(wire.connect(f"127.0.3.{at + 1}")) for at in range(60)]
        for upload in uploads:
            upload.sendall(wire.head(LARGE, key=""))
        assert [first_status(upload) for upload in uploads] == [401] * 60
        assert wire.served.memory < before + 30
    assert lag.worst < BUSY


def test_a_wrong_key_is_as_good_as_none(wire):
    with wire.connect() as connection:
        connection.sendall(wire.head(LARGE, key=f"{wire.keys[0][:-1]}_"))
        assert first_status(connection) == 401
    for header in ("Evenmatch-HMAC-SHA256 key=em_aaaaaaaaaa, timestamp=1, signature=" + "0" * 64, "Basic YTpi"):
        with wire.connect() as connection:
            head = wire.head(LARGE, key="").replace(b"Host", f"Authorization: {header}\r\nHost".encode())
            connection.sendall(head)
            assert first_status(connection) == 401


def test_a_small_body_of_a_stranger_that_does_not_come_is_not_waited_for(wire):
    with wire.connect() as connection:
        connection.sendall(wire.head(500, path=MATCHES, key=""))
        assert first_status(connection) == 401


def ask_odds(wire, lines, pieces, pause):
    """The response to a request for odds without a key, whose body is sent in pieces."""
    head = b"POST /v1/ladders/duel/odds HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + lines + b"\r\n"
    with wire.connect() as connection:
        connection.sendall(head if pause else head + b"".join(pieces))
        for piece in pieces if pause else ():
            time.sleep(pause)
            connection.sendall(piece)
        return received(connection)


@pytest.mark.parametrize("pause", [0, 0.05])
def test_an_open_read_without_a_key_waits_for_its_small_body(wire, pause):
    body = json.dumps({"teams": [{"players": ["ann"]}, {"players": ["bob"]}]}).encode()
    declared, chunked = b"Content-Length: %d\r\n" % len(body), b"Transfer-Encoding: chunked\r\n"
    assert status_of(ask_odds(wire, declared, [body[:9], body[9:]], pause)) == 200
    assert status_of(ask_odds(wire, chunked, [b"%x\r\n" % len(body), body, b"\r\n0\r\n\r\n"], pause)) == 200
    assert status_of(ask_odds(wire, declared + b"Authorization: Bearer em_x\r\n", [body], pause)) == 401


def test_a_large_body_of_an_open_read_needs_a_key(wire):
    assert status_of(ask_odds(wire, b"Content-Length: %d\r\n" % (SMALL + 1), [b"{"], 0.05)) == 401
    chunk = b"%x\r\n" % (SMALL + 1) + b" " * (SMALL + 1) + b"\r\n"
    assert status_of(ask_odds(wire, b"Transfer-Encoding: chunked\r\n", [chunk], 0.05)) == 413


def test_half_a_body_of_each_stranger_keeps_nobody_out_and_ends_no_upload_with_a_key(wire):
    body = json.dumps({**REPORT, "id": "m-slow"}).encode()
    half = b"POST /v1/ladders/duel/odds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n{"
    with ExitStack() as stack, wire.connect("127.0.3.1") as upload:
        upload.sendall(wire.head(len(body), path=MATCHES) + body[:20])
        time.sleep(0.3)
        for at in range(300):
            stack.enter_context(wire.connect(f"127.0.1.{at % 200 + 1}")).sendall(half)
        with wire.connect("127.0.2.1") as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert first_status(other) == 200
        upload.sendall(body[20:])
        assert first_status(upload) == 200


def large_report(match_id):
    """A batch that counts as a large body."""
    body = json.dumps({"matches": [{**REPORT, "id": f"{match_id}-{at}"} for at in range(500)]}).encode()
    assert len(body) > SMALL
    return body


def test_one_key_cannot_hold_all_the_memory_for_bodies(wire):
    """Of 42 MB a key may hold no more than it leaves free: two such bodies, and another key then one."""
    with ExitStack() as stack, wire.client(wire.keys[2]) as third:
        connections = [stack.enter_context(wire.connect()) for _ in range(5)]
        kept, refused = (connections[0], connections[1], connections[3]), (connections[2], connections[4])
        for connection, key in zip(connections, [0, 0, 0, 1, 1], strict=True):
            before = held(third)
            connection.sendall(wire.head(LARGE, key=wire.keys[key]))
            time.sleep(0.2)
            if connection in kept:
                connection.sendall(b" " * (LARGE - 1))
                wait_for(lambda before=before: held(third) > before + LARGE - 1)
        for connection in refused:
            text = connection.recv(1 << 16)
            assert (status_of(text), b"retry-after: 1" in text) == (503, True)
        for connection in kept:
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
        assert third.post(f"{MATCHES}/batch", content=large_report("third")).status_code == 200
    with wire.client() as known:
        wait_for(lambda: held(known) == 0)


def held(client):
    """The bytes of bodies that the process holds."""
    lines = client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith("evenmatch_body_bytes ")).split()[1])


def test_bodies_that_are_announced_and_do_not_come_take_no_room_of_others(wire):
    with ExitStack() as stack, wire.client(wire.keys[2]) as third:
        for at in range(10):
            connection = stack.enter_context(wire.connect())
            connection.sendall(wire.head(LARGE, key=wire.keys[at % 2]) + b"{")
        time.sleep(0.5)
        assert held(third) < SMALL
        assert third.post(f"{MATCHES}/batch", content=large_report("ordinary")).status_code == 200


def test_a_body_in_very_many_pieces_is_counted_with_what_each_piece_costs(site):
    """A piece of one byte costs an object of its own."""
    scope = {
        "type": "http",
        "path": "/v1/ladders/duel/matches",
        "method": "POST",
        "headers": [(b"authorization", f"Bearer {site.keys.create('key', ['report'])[1]}".encode())],
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "evenmatch.asked": RequestContext("r"),
    }

    async def piece():
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def receive_all():
        body = LimitedBody(site, scope, piece, 0)
        for _ in range(1000):
            await body()
        return site.bodies.total

    assert asyncio.run(receive_all()) >= 1000 * sys.getsizeof(b" ")


def test_one_address_cannot_hold_all_the_memory_for_signed_bodies(wire):
    with ExitStack() as stack, wire.client() as known:
        first, second = (stack.enter_context(wire.connect("127.0.5.1")) for _ in range(2))
        first.sendall(signed(wire.head(LARGE), wire.keys[0]) + b" " * (LARGE - 1))
        wait_for(lambda: held(known) > LARGE - 1)
        second.sendall(signed(wire.head(LARGE), wire.keys[0]))
        assert first_status(second) == 503
        assert report_signed(wire, "127.0.5.2", large_report("signed")) == 200


def report_signed(wire, source, body):
    """The status of a signed batch from this address."""
    path, now, key = f"{MATCHES}/batch", int(time.time()), wire.keys[2]
    signature = sign(signing_key(key), now, "POST", path, body)
    headers = {"Authorization": write(SignedRequest(key[:13], now, signature))}
    with (
        httpx.HTTPTransport(local_address=source) as transport,
        httpx.Client(base_url=wire.served.address, transport=transport, timeout=30) as client,
    ):
        return client.post(path, content=body, headers=headers).status_code


def test_addresses_whose_signature_is_not_verified_take_no_room_of_those_whose_was(wire):
    one = json.dumps({"matches": [{**REPORT, "id": "small"}]}).encode()
    large = json.dumps({"matches": [{**REPORT, "id": "large"}]}).encode() + b" " * 4_000_000
    assert report_signed(wire, "127.0.6.1", one) == 200
    with ExitStack() as stack, wire.client() as known:
        for at in range(2, 14):
            for _ in range(4):
                upload = stack.enter_context(wire.connect(f"127.0.6.{at}"))
                upload.sendall(signed(wire.head(800_000), wire.keys[0]) + b" " * 100_000)
                with suppress(OSError):
                    upload.sendall(b" " * 699_999)
        wait_for(lambda: held(known) > 15_000_000)
        assert report_signed(wire, "127.0.7.1", large + b" ") == 503
        assert report_signed(wire, "127.0.6.1", large) == 200


def test_an_address_has_few_bodies_whose_signature_is_not_verified(wire):
    head = signed(wire.head(SMALL + 1), wire.keys[0]) + b"{"
    with ExitStack() as stack:
        uploads = [stack.enter_context(wire.connect("127.0.8.1")) for _ in range(9)]
        for upload in uploads[:8]:
            upload.sendall(head)
        time.sleep(0.5)
        uploads[8].sendall(head)
        assert first_status(uploads[8]) == 503
        uploads[0].close()
        time.sleep(0.5)
        upload = stack.enter_context(wire.connect("127.0.8.1"))
        upload.sendall(head)
        upload.settimeout(0.5)
        with pytest.raises(TimeoutError):
            upload.recv(1)


def signed(head, key):
    """The same head with the id of a key and a signature that was not made with it."""
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Authorization")]
    header = f"Authorization: Evenmatch-HMAC-SHA256 key={key[:13]}, timestamp=1, signature={'0' * 64}"
    return b"\r\n".join([lines[0], header.encode(), *lines[1:]])


def test_a_body_under_a_signature_that_is_not_verified_takes_no_memory_of_its_key(wire):
    with ExitStack() as stack:
        for _ in range(2):
            upload = stack.enter_context(wire.connect("127.0.5.1"))
            upload.sendall(signed(wire.head(LARGE), wire.keys[0]) + b"{" * 100_000)
        time.sleep(0.3)
        with wire.client() as known:
            body = json.dumps({"matches": [{**REPORT, "id": f"own-{at}"} for at in range(500)]})
            assert len(body) > SMALL
            assert known.post(f"{MATCHES}/batch", content=body).status_code == 200


def test_half_a_body_under_a_signature_that_is_not_verified_keeps_no_client_out(wire):
    half = signed(wire.head(60_000), wire.keys[0]) + b"{"
    with ExitStack() as stack:
        for at in range(300):
            stack.enter_context(wire.connect(f"127.0.5.{at % 200 + 1}")).sendall(half)
        time.sleep(0.3)
        with wire.connect("127.0.2.1") as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert first_status(other) == 200


def test_uploads_that_end_before_their_signature_is_verified_count_as_wrong_keys(asking, site):
    site.wrong_key_limit = RateLimit(0.001, 3, "")
    key = site.keys.create("game server", ["report"])[0]
    headers = {"Authorization": f"Evenmatch-HMAC-SHA256 key={key.key}, timestamp=1, signature={'0' * 64}"}

    async def too_large():
        for _ in range(3):
            yield b" " * OTHER

    statuses = [asking.post("/v1/ladders", content=too_large(), headers=headers).status_code for _ in range(4)]
    assert statuses == [413, 413, 413, 429]


def test_a_large_body_needs_the_scope_of_its_endpoint_before_it_is_read(wire):
    with wire.client() as known:
        queuing = known.post("/v1/keys", json={"name": "lobby", "scopes": ["queue"], "ladders": ["duel"]}).json()
        reporting = known.post("/v1/keys", json={"name": "game", "scopes": ["report"], "ladders": ["duel"]}).json()
    with wire.client(queuing["text"]) as lobby:
        token = lobby.post("/v1/tokens", json={"player": "eve"}).json()["token"]
    for key, path in (
        (token, f"{MATCHES}/batch"),
        (queuing["text"], MATCHES),
        (reporting["text"], "/v1/ladders/other/matches"),
        (reporting["text"], "/v1/ladders/duel/start-ratings"),
    ):
        with wire.connect() as connection:
            connection.sendall(wire.head(LARGE, path=path, key=key))
            text = received(connection)
        assert (status_of(text), b"scope" in text) == (403, True), text


def test_a_slow_body_counts_against_the_rate_limit_before_it_is_read(asking, site):
    site.player_limit = RateLimit(0.001, 2, "")
    lobby = {"Authorization": f"Bearer {site.keys.create('lobby', ['queue'])[1]}"}
    token = asking.post("/v1/tokens", json={"player": "eve"}, headers=lobby).json()["token"]
    pieces = []

    async def slow():
        for _ in range(3):
            pieces.append(b" ")
            yield pieces[-1]

    headers = {"Authorization": f"Bearer {token}"}
    answers = [asking.post("/v1/ladders/duel/tickets", content=slow(), headers=headers) for _ in range(3)]
    assert [told.status_code == 429 for told in answers] == [False, False, True]
    assert len(pieces) == 3 + 3 + 1


def test_the_allowance_of_a_player_is_that_of_the_key_that_issued_the_token(asking, site):
    site.player_limit = RateLimit(0.001, 1, "")
    answers = []
    for name in ("lobby", "other lobby"):
        issuer = {"Authorization": f"Bearer {site.keys.create(name, ['queue'])[1]}"}
        token = asking.post("/v1/tokens", json={"player": "eve"}, headers=issuer).json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        answers += [asking.get("/v1/ladders", headers=headers).status_code == 429 for _ in range(2)]
    assert answers == [False, True, False, True]


def test_bodies_that_are_not_of_matches_are_small(wire):
    with wire.client() as known:
        for path, most in (("/v1/ladders", OTHER), ("/v1/keys", OTHER), ("/login", SMALL)):
            told = known.post(path, content=b" " * (most + 1))
            assert (told.status_code, f"{most:,} bytes" in told.text) == (413, True), told.text


def test_a_key_that_is_revoked_during_a_slow_upload_reports_nothing(wire):
    body = json.dumps({"matches": [{**REPORT, "id": f"late-{at}"} for at in range(1000)]}).encode()
    with wire.client() as admin, wire.connect() as connection:
        made = admin.post("/v1/keys", json={"name": "leaver", "scopes": ["report"]}).json()
        connection.sendall(wire.head(len(body), key=made["text"]) + body[:100_000])
        time.sleep(0.3)
        assert admin.delete(f"/v1/keys/{made['key']}").status_code == 200
        connection.sendall(body[100_000:])
        assert first_status(connection) == 401
        assert admin.get(f"{MATCHES}/late-0").status_code == 404


def test_memory_for_bodies_is_shared_and_given_back():
    memory = BodyMemory(800)
    a, b, c = (BodySender(KEYS, name) for name in ("em_a", "em_b", "em_c"))
    assert memory.take(a, 400)
    assert not memory.take(a, 1)
    assert memory.take(b, 200)
    assert not memory.take(b, 1)
    assert memory.take(c, 100)
    memory.give_back(a, 400)
    assert memory.take(c, 150)
    assert memory.total == 450


def test_a_group_has_its_part_of_the_memory_for_bodies_and_no_sender_all_of_it():
    memory = BodyMemory(800)
    one, other = (BodySender(STRANGERS, name) for name in ("192.0.2.1", "192.0.2.2"))
    assert memory.take(one, 50)
    assert not memory.take(one, 1)
    assert memory.take(other, 25)
    assert not memory.has_room(BodySender(STRANGERS, "192.0.2.3"), 13)
    assert memory.has_room(BodySender(players_of("em_a"), "ann"), 50)
    assert memory.take(BodySender(SIGNATURES, "192.0.2.1"), 200)
    assert not memory.take(BodySender(SIGNATURES, "192.0.2.1"), 1)
    assert memory.has_room(BodySender(SIGNATURES, "192.0.2.2"), 100)
    assert memory.total == 275


@pytest.mark.parametrize("limit", [1024, 100_000, 2**20, 2**23])
def test_the_least_memory_takes_a_body_of_the_limit_of_each_sender(limit):
    small = min(limit, OTHER)
    for group, size in ((KEYS, limit), (SIGNATURES, limit), (VERIFIED, limit), (players_of("em_a"), small)):
        assert BodyMemory(least_memory(limit)).has_room(BodySender(group, "a"), size)


def test_settings_with_which_a_body_of_the_limit_cannot_arrive_are_refused(monkeypatch, tmp_path):
    with monkeypatch.context() as environment:
        environment.setenv("EVENMATCH_BODY_MEMORY", "8000000")
        made = run_command("serve", "--db", tmp_path / "none.db", "--port", 0)
    assert made.code == 2
    assert "EVENMATCH_BODY_MEMORY is '8000000'" in made.err
    assert "expected at least 41943040 with EVENMATCH_BODY_LIMIT 8388608" in " ".join(made.err.split())
    with pytest.raises(UsageError, match="expected at least 335544320"):
        read_options({"body_limit": 2**26})
    assert read_options({"body_limit": 2**26, "body_memory": 335_544_320}).body_limit == 2**26


# the log


def test_what_repeats_is_counted_in_the_log(wire):
    before = len(wire.served.told().splitlines())
    for _ in range(200):
        with wire.connect() as connection:
            connection.sendall(b"no HTTP at all\r\n\r\n")
            received(connection)
    with httpx.Client(base_url=wire.served.address) as stranger:
        statuses = [stranger.get("/v1/keys").status_code for _ in range(700)]
    assert statuses.count(429) > 100
    lines = wire.served.told().splitlines()[before:]
    assert len([line for line in lines if "connection refused" in line or "Invalid HTTP" in line]) <= 4
    assert len([line for line in lines if "too many requests" in line]) == 1
    assert not [line for line in lines if '"status": 429' in line]


def test_long_paths_are_cut_in_the_log(wire):
    before = len(wire.served.told().splitlines())
    with wire.client() as known:  # others' refusals are not listed
        for start in ("/v1/nothing/", "/v1/ladders/", "/v1/keys/", "/nothing/"):
            assert known.get(start + "x" * 50_000).status_code >= 400
    lines = wire.served.told().splitlines()[before:]
    assert '"path": "/v1/nothing/xxx' in "".join(lines)
    assert max(map(len, lines)) < 1_000


def test_a_stranger_who_breaks_off_writes_no_traceback(wire):
    before = len(wire.served.told().splitlines())
    head = b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"
    with ExitStack() as stack:
        for path in (b"/readyz", b"/login", b"/v1/openapi.json"):
            for second in (head, b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n"):
                for _ in range(5):
                    connection = stack.enter_context(wire.connect())
                    connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" + second)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.close()
    with wire.client() as known:
        wait_for(lambda: 'evenmatch_connections{which="open"} 1.0' in known.get("/metrics").text)
    lines = wire.served.told().splitlines()[before:]
    assert [line for line in lines if "Traceback" in line or "Exception in ASGI" in line or '"bug"' in line] == []
