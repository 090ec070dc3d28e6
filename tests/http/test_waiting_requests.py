"""Long polls and streams end with their client and after a while, and no caller has many of them."""

import asyncio
import socket
import time
from contextlib import ExitStack, contextmanager

import pytest

from databases import KINDS, made_database
from evenmatch import rules
from evenmatch.accounts.keys import Keys
from evenmatch.http.waiting_requests import EACH_PLAYER
from evenmatch.operations.service import Service
from evenmatch.web.page_request import STREAMS_OF_CLIENT
from protocol_server import wait_for
from server_process import Served

pytestmark = pytest.mark.slow

SLACK = 2.0  # seconds, on a busy machine
TICKETS = "/v1/ladders/duel/tickets"


@pytest.fixture(scope="module", params=KINDS)
def served(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("waiting")
    url = made_database(request, request.param, folder)
    with Service.open(url) as service:
        service.create_ladder("duel", "elo", rules("elo"))
        key = Keys(service.database, service.clock).create("operator", ["admin"])[1]
    with Served(url, folder, EVENMATCH_MATCHMAKER="false") as process, process.client(key) as admin:
        assert admin.put("/v1/ladders/duel/queues/main", json={"policy": {"team_size": 1}}).status_code == 200
        process.url = url
        yield process, admin


@pytest.fixture
def queued(served):
    """A function that queues a player and returns their ticket."""
    _, admin = served
    tickets = []

    def join(player):
        told = admin.post(TICKETS, json={"queues": ["main"], "members": [{"player": player}]})
        assert told.status_code == 201, told.text
        tickets.append(told.json()["ticket"])
        return told.json()

    yield join
    for ticket in tickets:
        admin.delete(f"{TICKETS}/{ticket}")


def new_key(admin, scope="queue"):
    return admin.post("/v1/keys", json={"name": "for a moment", "scopes": [scope]}).json()


def waiting(admin):
    """How many requests wait, by the metrics of the process."""
    lines = admin.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith("evenmatch_waiting_requests ")).split()[1])


@contextmanager
def hung_up(process, requests):
    """Connections that have sent these requests; they are closed at the end."""
    host, port = process.address.removeprefix("http://").split(":")
    with ExitStack() as stack:
        for request in requests:
            connection = stack.enter_context(socket.create_connection((host, int(port)), 30))
            connection.sendall(request)
        yield


def test_a_long_poll_whose_client_hangs_up_ends_at_once(served, queued):
    process, admin = served
    joined = queued("ann")
    head = f" HTTP/1.1\r\nHost: x\r\nAuthorization: {admin.headers['authorization']}\r\n\r\n"
    paths = [
        f"{TICKETS}/{joined['ticket']}?after={joined['change']}&wait=60",
        f"{TICKETS}/{joined['ticket']}/events",
    ] * 50
    with hung_up(process, [f"GET {path}{head}".encode() for path in paths]):
        wait_for(lambda: waiting(admin) == 100)
    closed_at = time.monotonic()
    wait_for(lambda: waiting(admin) == 0)
    assert time.monotonic() - closed_at < SLACK
    assert '"bug"' not in process.told()


def test_a_player_waits_with_few_requests_at_once(served, queued):
    process, admin = served
    joined = queued("ann")
    token = admin.post("/v1/tokens", json={"player": "ann"}).json()["token"]
    path = f"{TICKETS}/{joined['ticket']}?after={joined['change']}&wait=60"
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with hung_up(process, [head] * EACH_PLAYER), process.client(token) as player:
        wait_for(lambda: waiting(admin) == EACH_PLAYER)
        told = player.get(path)
        assert (told.status_code, told.headers["retry-after"]) == (429, "1")
        assert player.get(f"{TICKETS}/{joined['ticket']}").status_code == 200
        assert player.get(f"{TICKETS}/{joined['ticket']}/events").status_code == 429


def statuses(process, requests):
    """The status of each of these requests, which are all sent before any is read; streams stay open meanwhile."""
    host, port = process.address.removeprefix("http://").split(":")
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection((host, int(port)), 30)) for _ in requests]
        for connection, request in zip(connections, requests, strict=True):
            connection.sendall(request)
        return [int(connection.recv(1 << 16).split()[1]) for connection in connections]


def test_forty_streams_that_a_player_opens_at_once_are_no_more_than_others(served, queued):
    process, admin = served
    ticket = queued("ann")["ticket"]
    token = admin.post("/v1/tokens", json={"player": "ann"}).json()["token"]
    head = f" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    got = statuses(process, [f"GET {TICKETS}/{ticket}/events{head}".encode()] * 40)
    assert (got.count(200), got.count(429)) == (EACH_PLAYER, 40 - EACH_PLAYER)
    wait_for(lambda: waiting(admin) == 0)
    with process.client(token) as player:  # refused streams and ended ones hold no place
        wait_for(lambda: player.get(f"{TICKETS}/{10**9}/events").status_code == 404)
        time.sleep(1)  # the allowance of the player
        missing = [player.get(f"{TICKETS}/{10**9}/events").status_code for _ in range(2 * EACH_PLAYER)]
    assert missing == [404] * len(missing)


@pytest.mark.parametrize("body", [b"Content-Length: 200000\r\n\r\n", b"Content-Length: 3\r\n\r\n{}\n"])
@pytest.mark.parametrize("what", ["poll", "events", "page"])
def test_a_request_that_waits_and_has_a_body_makes_no_error(served, queued, what, body):
    """Nothing reads the body, but what listens for the end of the connection receives it."""
    process, admin = served
    joined, before = queued("ann"), len(process.told())
    path = {
        "poll": f"{TICKETS}/{joined['ticket']}?after={joined['change']}&wait=1",
        "events": f"{TICKETS}/{joined['ticket']}/events",
        "page": "/ladders/duel/pulse",
    }[what]
    authorization = admin.headers["authorization"]
    if what == "page":
        with process.client("none") as visitor:
            del visitor.headers["Authorization"]
            assert visitor.post("/login", data={"key": authorization.split()[1]}).status_code == 303
            authorization = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    name = "Cookie" if what == "page" else "Authorization"
    head = f"GET {path} HTTP/1.1\r\nHost: {process.address[7:]}\r\n{name}: {authorization}\r\n".encode()
    (status,) = statuses(process, [head + body])
    assert status in (200, 413)
    wait_for(lambda: waiting(admin) == 0)
    assert "Traceback" not in process.told()[before:]
    assert "without starting response" not in process.told()[before:]


def test_pages_that_an_address_opens_at_once_are_no_more_than_others(served):
    process, admin = served
    page = f"GET /ladders/duel/pulse HTTP/1.1\r\nHost: {process.address[7:]}\r\nCookie: {{}}\r\n\r\n"
    with process.client("none") as visitor:
        del visitor.headers["Authorization"]
        assert visitor.post("/login", data={"key": new_key(admin, "read")["text"]}).status_code == 303
        cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    got = statuses(process, [page.format(cookies).encode()] * (STREAMS_OF_CLIENT + 20))
    assert (got.count(200), got.count(503)) == (STREAMS_OF_CLIENT, 20)
    wait_for(lambda: waiting(admin) == 0)


def test_open_pages_of_a_player_take_no_place_of_their_requests_that_wait(served, queued):
    process, admin = served
    joined = queued("ann")
    token = admin.post("/v1/tokens", json={"player": "ann"}).json()["token"]
    with process.client("none") as visitor:
        del visitor.headers["Authorization"]
        link = admin.post("/v1/login-links", json={"player": "ann"}).json()["path"]
        assert visitor.post("/login/link", data={"token": link.partition("=")[2]}).status_code == 303
        cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    head = f"GET /ladders/duel/pulse HTTP/1.1\r\nHost: {process.address[7:]}\r\nCookie: {cookies}\r\n\r\n"
    with hung_up(process, [head.encode()] * EACH_PLAYER), process.client(token) as player:
        wait_for(lambda: waiting(admin) == EACH_PLAYER)
        path = f"{TICKETS}/{joined['ticket']}?after={joined['change']}&wait=0.1"
        assert player.get(path).status_code == 200
    wait_for(lambda: waiting(admin) == 0)


def test_a_stream_ends_after_its_time(site):
    async def read():
        async with site.waiting.stream(0.2) as waiter:
            begun = time.monotonic()
            while not waiter.is_over:
                await waiter.news(0.05)
            return time.monotonic() - begun

    assert 0.2 <= asyncio.run(read()) < 2


def test_waiting_requests_end_when_the_process_is_asked_to_stop(site):
    async def wait():
        async with site.waiting.stream(60) as waiter:
            asyncio.get_running_loop().call_later(0.05, site.stopping.set)
            assert await waiter.news(30)
            return waiter.is_over, len(site.waiting)

    assert asyncio.run(wait()) == (True, 1)
    assert len(site.waiting) == 0
