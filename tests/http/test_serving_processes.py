"""Several serving processes at one port, of real processes over PostgreSQL: spread, limits, reload, deaths, the end."""

import json
import os
import re
import signal
import socket
import threading
import time
from collections import Counter

import httpx
import psutil
import pytest

from evenmatch.ledger.secrets import new_secret
from protocol_server import wait_for
from run_command import run_command
from server_process import SLOWEST, Served

pytestmark = pytest.mark.slow

WITHIN = 6  # seconds to stop
CONNECTIONS = 12  # of an address
BURST = 40  # requests without a key


@pytest.fixture(scope="module")
def database(postgres):
    return postgres.fresh_database()


@pytest.fixture(scope="module")
def key(database):
    run_command("ladder", "create", "duel", "--system", "elo", "--db", database)
    return run_command("key", "create", "operator", "--scope", "admin", "--db", database).out.strip()


@pytest.fixture(scope="module")
def served(database, key, tmp_path_factory):
    """Two serving processes, for all tests of this file."""
    settings = {
        "EVENMATCH_WORKERS": "2",
        "EVENMATCH_STOP_WITHIN": str(WITHIN),
        "EVENMATCH_ADDRESS_CONNECTIONS": str(CONNECTIONS),
        "EVENMATCH_TRUSTED_PROXIES": '["127.0.0.1"]',  # other addresses of the loopback network are strangers
        "EVENMATCH_OPEN_READS": "true",
        "EVENMATCH_OPEN_RATE": "0.01",
        "EVENMATCH_OPEN_BURST": str(BURST),
    }
    with Served(database, tmp_path_factory.mktemp("served"), **settings) as process:
        wait_for(lambda: log_of(process, "all serving processes are ready"), 3 * SLOWEST)  # a first run compiles
        yield process


def figures(client):
    """The figures of a scrape by name and labels."""
    text = client.get("/metrics").raise_for_status().text
    return {
        (name, tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels or "")))): float(value)
        for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE)
    }


def by_worker(found, name, **labels):
    """A figure of each process, by its number."""
    wanted = set(labels.items())
    return {
        dict(having)["worker"]: value for (of, having), value in found.items() if of == name and wanted <= set(having)
    }


def ready(client):
    return {number for number, is_up in by_worker(figures(client), "evenmatch_worker_up").items() if is_up}


def log_of(served, event):
    """The lines of the log with this event."""
    lines = [line for line in served.told().splitlines() if line.startswith("{")]
    return [line for line in map(json.loads, lines) if line["event"] == event]


def processes_of(served):
    """The process ids of the serving processes."""
    return [child.pid for child in psutil.Process(served.process_id).children()]


def address(served):
    host, port = served.address.removeprefix("http://").split(":")
    return host, int(port)


def test_connections_spread_evenly_however_they_arrive(served, key):
    with served.client(key) as admin:
        opened = [socket.create_connection(address(served)) for _ in range(30)]  # at once
        for _ in range(10):
            time.sleep(0.01)  # and one by one
            opened.append(socket.create_connection(address(served)))
        wait_for(lambda: sum(by_worker(figures(admin), "evenmatch_connections", which="open").values()) >= 41)
        counts = by_worker(figures(admin), "evenmatch_connections", which="open")
        for connection in opened:
            connection.close()
        assert set(counts) == {"1", "2"}
        assert abs(counts["1"] - counts["2"]) <= 3, counts


def test_connections_of_an_address_are_limited_for_all_processes_together(served, key):
    with served.client(key) as admin:  # until those of the test before are closed: new ones go where fewest are
        wait_for(lambda: sum(by_worker(figures(admin), "evenmatch_connections", which="open").values()) <= 2)
    opened = []
    for _ in range(3 * CONNECTIONS):  # one by one, so that both processes get as many
        opened.append(socket.create_connection(address(served), 5, ("127.0.0.2", 0)))
        time.sleep(0.02)
    time.sleep(0.5)

    def is_open(connection):
        connection.setblocking(False)
        try:
            return connection.recv(1) != b""
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False

    left = sum(map(is_open, opened))
    for connection in opened:
        connection.close()
    assert CONNECTIONS - 2 <= left <= CONNECTIONS


def test_requests_of_an_address_are_limited_for_all_processes_together(served):
    def ask():
        with socket.create_connection(address(served), 5, ("127.0.0.3", 0)) as connection:
            connection.sendall(b"GET /v1/ladders HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(12)[9:].decode()

    answers = Counter(ask() for _ in range(2 * BURST))
    assert answers == {"200": BURST, "429": BURST}


def test_a_scrape_has_the_figures_of_each_process_and_those_of_the_service_once(served, key):
    for _ in range(8):  # a new connection each
        with served.client(key) as admin:
            admin.get("/v1/ladders").raise_for_status()
    with served.client(key) as admin:
        found = figures(admin)
        text = admin.get("/metrics").text
    counts = by_worker(found, "evenmatch_requests_total", route="/v1/ladders", status="200", method="GET")
    assert set(counts) == {"1", "2"}
    assert sum(counts.values()) >= 8
    assert set(by_worker(found, "process_resident_memory_bytes")) == {"1", "2"}
    assert found["evenmatch_database_up", ()] == 1
    assert text.count("# TYPE evenmatch_requests_total") == 1


def test_lines_of_the_log_name_the_process(served, key):
    assert {line["worker"] for line in log_of(served, "serving")} == {1, 2}
    for _ in range(8):  # a new connection each
        with served.client(key) as admin:
            admin.get("/v1/ladders").raise_for_status()
    assert {line["worker"] for line in log_of(served, "request")} == {1, 2}


class Load:
    """Threads that report matches and read standings over connections that last, and over new ones."""

    def __init__(self, served, key, prefix):
        self._served, self._key, self._prefix, self._stop = served, key, prefix, threading.Event()
        self.failures, self.acknowledged = [], []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(4)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(SLOWEST)

    def _run(self, number):
        count = 0
        while not self._stop.is_set():
            with self._served.client(self._key) as client:
                for _ in range(1000 if number % 2 else 1):
                    if self._stop.is_set():
                        return
                    count += 1
                    self._report(client, f"{self._prefix}-{number}-{count}")
                    time.sleep(0.005)

    def _report(self, client, match):
        teams = [{"place": place, "players": [{"player": name}]} for place, name in ((1, "ann"), (2, "bob"))]
        try:
            body = {"id": match, "played_at": "2026-01-01T12:00:00Z", "teams": teams}
            client.post("/v1/ladders/duel/matches", json=body).raise_for_status()
            self.acknowledged.append(match)
            client.get("/v1/ladders/duel/standings").raise_for_status()
        except httpx.HTTPError as error:
            self.failures.append(repr(error))


def test_a_reload_replaces_each_process_and_fails_no_request(served, key):
    before = set(processes_of(served))
    with Load(served, key, "reload") as load:
        time.sleep(1)
        os.kill(served.process_id, signal.SIGHUP)
        most = 0
        while not log_of(served, "reloaded"):
            most = max(most, len(processes_of(served)))
            time.sleep(0.1)
        time.sleep(0.5)
    assert load.failures == []
    assert len(load.acknowledged) > 100
    after = set(processes_of(served))
    assert len(after) == 2
    assert not before & after
    assert most <= 3
    with served.client(key) as admin:
        assert ready(admin) == {"1", "2"}


def test_a_process_that_is_killed_is_started_again_while_the_other_serves(served, key):
    victim, other = processes_of(served)
    os.kill(victim, signal.SIGKILL)
    with served.client(key) as admin:
        wait_for(lambda: admin.get("/healthz").is_success)
        wait_for(lambda: len(ready(admin)) == 2, SLOWEST)
    assert other in processes_of(served)
    assert victim not in processes_of(served)
    (told,) = log_of(served, "serving process ended")
    assert (told["status"], told["again"]) == (-signal.SIGKILL, "in 0.5 s")


def test_a_request_to_stop_ends_all_in_time_also_a_frozen_process(served):
    processes = processes_of(served)
    os.kill(processes[0], signal.SIGSTOP)
    begun = time.monotonic()
    assert served.stop() == 0
    assert time.monotonic() - begun < WITHIN
    assert not any(map(psutil.pid_exists, processes))


def test_a_killed_supervisor_leaves_no_process(served):
    served.launch()
    served.wait_for_address()
    processes = processes_of(served)
    assert processes
    served.kill()
    wait_for(lambda: not any(map(psutil.pid_exists, processes)), WITHIN + 2)


def test_a_process_that_cannot_start_ends_the_service_with_its_error(database, tmp_path):
    other = Served(database, tmp_path, EVENMATCH_WORKERS="2", EVENMATCH_SECRET=new_secret())
    other.launch()
    assert other._ended() == 3
    assert "has another master secret" in other.told()


def test_more_than_one_process_on_sqlite_is_refused(tmp_path):
    told = run_command("serve", "--workers", "2", "--db", str(tmp_path / "evenmatch.db"))
    assert told.code == 2
    assert "--workers is 2, and the database is an SQLite file; expected 1" in told.err
    assert "evenmatch copy" in told.err
