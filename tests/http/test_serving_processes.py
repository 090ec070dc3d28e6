"""Several serving processes at one port over PostgreSQL: metrics, reload, deaths, the end. uvicorn manages them."""

import json
import os
import re
import signal
import threading
import time

import httpx
import psutil
import pytest

from evenmatch.ledger.secrets import new_secret
from protocol_server import wait_for
from run_command import run_command
from server_process import SLOWEST, Served

pytestmark = pytest.mark.slow

WITHIN = 6  # seconds to stop
METRIC = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


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
    settings = {"EVENMATCH_WORKERS": "2", "EVENMATCH_STOP_WITHIN": str(WITHIN)}
    with Served(database, tmp_path_factory.mktemp("served"), **settings) as process:
        wait_for(lambda: len(log_of(process, "serving")) == 2, SLOWEST)
        yield process


def figures(client):
    """The figures of a scrape by name and labels."""
    text = client.get("/metrics").raise_for_status().text
    return {
        (name, tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels or "")))): float(value)
        for name, labels, value in METRIC.findall(text)
    }


def answered(client):
    """How many reads of the ladders the processes have answered together."""
    labels = {"method": "GET", "route": "/v1/ladders", "status": "200"}
    return figures(client).get(("evenmatch_requests_total", tuple(sorted(labels.items()))), 0)


def log_of(served, event):
    """The lines of the log with this event."""
    lines = [line for line in served.told().splitlines() if line.startswith("{")]
    return [line for line in map(json.loads, lines) if line["event"] == event]


def processes_of(served):
    """The process ids of the serving processes, which the log names."""
    known = {line["process"] for line in log_of(served, "serving")}
    return [child.pid for child in psutil.Process(served.process_id).children() if child.pid in known]


def answering(served, key, reads=40):
    """The processes that answer when each request has a connection of its own."""
    before = len(log_of(served, "request"))
    for _ in range(reads):
        with served.client(key) as client:
            client.get("/v1/ladders").raise_for_status()
    return {line["process"] for line in log_of(served, "request")[before:]}


def test_both_processes_answer_and_a_scrape_of_either_has_the_sums(served, key):
    with served.client(key) as admin:
        before = answered(admin)
        assert answering(served, key) <= set(processes_of(served))
        assert answered(admin) == before + 40
    for _ in range(8):  # each of a process at random
        with served.client(key) as admin:
            found = figures(admin)
            assert answered(admin) == before + 40
            assert found["evenmatch_database_up", ()] == 1
            assert found["evenmatch_requests_running", ()] >= 1


def test_one_process_at_a_time_runs_the_matchmaker(served, key):
    with served.client(key) as admin:
        queue = admin.put("/v1/ladders/duel/queues/ranked", json={"policy": {"team_size": 1}})
        assert queue.is_success, queue.text
        running = "evenmatch_matchmaker_running", (("ladder", "duel"),)
        wait_for(lambda: figures(admin).get(running) == 1, SLOWEST)
        for _ in range(10):
            time.sleep(0.1)
            assert figures(admin)[running] == 1


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
        wait_for(lambda: len(set(processes_of(served)) - before) == 2 and not before & running(served), SLOWEST)
        time.sleep(0.5)
    assert load.failures == []
    assert len(load.acknowledged) > 100
    with served.client(key) as admin:
        assert {admin.get(f"/v1/ladders/duel/matches/{match}").status_code for match in load.acknowledged} == {200}
    assert answering(served, key) <= set(processes_of(served))


def running(served):
    return {child.pid for child in psutil.Process(served.process_id).children()}


def test_a_process_that_is_killed_is_replaced_while_the_other_serves(served, key):
    victim, other = processes_of(served)
    os.kill(victim, signal.SIGKILL)
    with served.client(key) as admin:
        wait_for(lambda: admin.get("/healthz").is_success)
        wait_for(lambda: len({*processes_of(served)} - {victim}) == 2, SLOWEST)
        assert figures(admin)["evenmatch_requests_running", ()] == 1  # that of the dead process does not count
    assert other in processes_of(served)
    wait_for(lambda: victim not in processes_of(served), 2)


def test_a_request_to_stop_ends_all_in_time_also_a_frozen_process(served):
    processes = processes_of(served)
    os.kill(processes[0], signal.SIGSTOP)
    begun = time.monotonic()
    assert served.stop() == 0
    assert time.monotonic() - begun < WITHIN
    wait_for(lambda: not any(map(psutil.pid_exists, processes)), 2)


def test_processes_end_when_the_one_that_manages_them_is_killed(served):
    before = len(log_of(served, "serving"))
    served.launch()
    served.wait_for_address()
    wait_for(lambda: len(log_of(served, "serving")) == before + 2, SLOWEST)
    processes = processes_of(served)
    assert len(processes) == 2
    served.kill()
    wait_for(lambda: not any(map(psutil.pid_exists, processes)), WITHIN + 2)


def test_a_service_that_cannot_start_ends_with_its_error(database, tmp_path):
    other = Served(database, tmp_path, EVENMATCH_WORKERS="2", EVENMATCH_SECRET=new_secret())
    other.launch()
    assert other._ended() == 3
    assert "has another master secret" in other.told()


def test_more_than_one_process_on_sqlite_is_refused(tmp_path):
    told = run_command("serve", "--workers", "2", "--db", str(tmp_path / "evenmatch.db"))
    assert told.code == 2
    assert "--workers is 2, and the database is an SQLite file; expected 1" in told.err
    assert "evenmatch copy" in told.err
