"""nginx and Caddy from deploy/ in front of a real service, attacked from many addresses while a game server reports."""

import shutil
import socket
import statistics
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

import proxies
from evenmatch.accounts.keys import Keys
from evenmatch.operations.service import Service
from protocol_server import wait_for
from server_process import SLOWEST, Served

pytestmark = pytest.mark.slow

MATCHES = "/v1/ladders/duel/matches"
REPORTS = 60  # of the game server, during each attack
SLOWEST_REPORT = 5.0  # seconds, on a busy machine
KINDS = [
    pytest.param(proxy, marks=pytest.mark.skipif(binary is None, reason=f"{proxy.__name__} is not installed"))
    for proxy, binary in ((proxies.nginx, proxies.NGINX), (proxies.caddy, proxies.CADDY))
]


class Place:
    """A service behind a proxy."""

    def __init__(self, served, url, key):
        self.served, self.url, self.key = served, url, key
        host, port = url.removeprefix("http://").split(":")
        self.address = host, int(port)
        self.reported = 0

    def connect(self, number):
        """A connection from one of 50 addresses of strangers."""
        return socket.create_connection(self.address, 30, source_address=(f"127.0.1.{number % 50 + 1}", 0))

    def report(self):
        """Report as a game server does; returns the seconds of each report, the worst last."""
        taken = []
        with httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.key}"}, timeout=30) as client:
            for _ in range(REPORTS):
                self.reported += 1
                teams = [{"place": place, "players": [{"player": name}]} for place, name in ((1, "ann"), (2, "bob"))]
                body = {"id": f"m-{self.reported}", "played_at": "2026-01-01T12:00:00Z", "teams": teams}
                begun = time.monotonic()
                client.post(MATCHES, json=body).raise_for_status()
                taken.append(time.monotonic() - begun)
                assert client.get("/v1/ladders/duel/standings").status_code == 200
        return sorted(taken)

    def figure(self, name):
        """A figure of the service, asked without the proxy."""
        with self.served.client(self.key) as client:
            lines = client.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


@pytest.fixture(scope="module", params=KINDS)
def place(request, empty_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    path = str(shutil.copy(empty_file, folder / "evenmatch.db"))
    with Service.open(path) as service:
        key = Keys(service.database, service.clock).create("game server", ["admin"])[1]
    with Served(path, folder, EVENMATCH_TRUSTED_PROXIES='["127.0.0.1"]') as served:
        with served.client(key) as client:
            assert client.post("/v1/ladders", json={"name": "duel", "system": "elo"}).status_code == 201
            wait_for(lambda: client.get("/readyz").is_success, SLOWEST)
        with request.param(folder, served.address.removeprefix("http://")) as url:
            made = Place(served, url, key)
            made.report()
            yield made


@contextmanager
def dripping(place, count, head):
    """Connections that send this and then a byte every half second; yields those that are still open."""
    stop = threading.Event()
    with ExitStack() as stack:
        opened = [stack.enter_context(place.connect(number)) for number in range(count)]
        for connection in opened:
            connection.sendall(head)

        def drip():
            while not stop.wait(0.5):
                for connection in list(opened):
                    with suppress(OSError):
                        connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield opened
        finally:
            stop.set()
            thread.join(SLOWEST)


def is_closed(connection):
    """Whether the other end has answered or closed the connection."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def check_unaffected(place):
    taken = place.report()
    assert taken[-1] < SLOWEST_REPORT
    return statistics.median(taken)


def test_a_thousand_idle_connections_do_not_reach_the_service(place):
    with ExitStack() as stack:
        for number in range(1000):
            stack.enter_context(place.connect(number))
        check_unaffected(place)
        assert place.figure("process_open_fds") < 400


def test_slow_heads_are_cut_off_and_other_callers_are_unaffected(place):
    with dripping(place, 300, b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ") as opened:
        check_unaffected(place)
        wait_for(lambda: all(map(is_closed, opened)), 40)


def test_slow_bodies_are_waited_for_in_the_proxy_or_cut_off(place):
    head = b"POST /v1/ladders/duel/odds HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n{"
    with dripping(place, 300, head):
        check_unaffected(place)


def test_huge_bodies_are_refused_and_take_no_memory_of_the_service(place):
    before = place.served.memory

    def send(number):
        with place.connect(number) as connection, suppress(OSError):
            head = f"POST {MATCHES} HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n"
            connection.sendall(head.encode())
            for _ in range(500):
                connection.sendall(b" " * 100_000)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    check_unaffected(place)
    for thread in threads:
        thread.join(SLOWEST)
    assert place.served.memory < before + 50
    refused = httpx.post(f"{place.url}{MATCHES}", content=b" " * 200_000)
    assert refused.status_code == 401
    headers = {"Authorization": f"Bearer {place.key}"}
    assert httpx.post(f"{place.url}{MATCHES}", content=b" " * 12_000_000, headers=headers).status_code == 413


def test_huge_heads_are_refused(place):
    answer = httpx.get(f"{place.url}/healthz", headers={f"X-Many-{number}": "y" * 8000 for number in range(20)})
    assert answer.status_code in (400, 431, 494)


def test_figures_are_not_shown(place):
    assert httpx.get(f"{place.url}/metrics", headers={"Authorization": f"Bearer {place.key}"}).status_code == 404


def test_the_service_knows_the_addresses_behind_the_proxy(place):
    """A stranger's requests count for their own address, whatever address they claim."""

    def ask(number):
        with place.connect(number) as connection:
            connection.sendall(
                b"GET /v1/keys HTTP/1.1\r\nX-Forwarded-For: 9.9.9.9\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
            return int(connection.recv(1 << 16).split()[1])

    statuses = [ask(7) for _ in range(250)]
    assert 429 in statuses
    assert ask(8) == 401
