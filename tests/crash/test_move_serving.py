"""A database is moved while its service is under load: a short pause, nothing acknowledged is lost or doubled."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest

from crash.clients import ON, Clients
from crash.plain_sql import check_events, select_rows
from crash.test_service_killed import QUEUE, check_nobody_twice
from evenmatch.accounts.keys import Keys
from evenmatch.ledger.database_url import parse_url, shown_url
from evenmatch.operations.service import Service
from postgres import Postgres
from protocol_server import wait_for
from server_process import SLOWEST, Served, request_json

LONGEST_PAUSE = 20.0  # seconds; a quiet machine needs about one, but other tests have the processors, too
AROUND = 1.5  # seconds of load before and after a move
DEADLINE = 120  # seconds


class Reporter:
    """A game server that reports match after match, each until it is acknowledged. reported: the ids of these

    pause  the longest time in seconds between two acknowledgements, from one after `begin_pause` on
    """

    def __init__(self, address: str, key: str, name: str) -> None:
        self.reported: list[str] = []
        self.pause, self.refusals = 0.0, 0
        self._address, self._key, self._name = address, key, name
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        last = time.monotonic()
        with httpx.Client(headers={"Authorization": f"Bearer {self._key}"}, timeout=DEADLINE) as client:
            while not self._stop.is_set():
                self._report(client, f"{self._name}-{len(self.reported)}")
                now = time.monotonic()
                self.pause, last = max(self.pause, now - last), now
                time.sleep(0.005)

    def _report(self, client: httpx.Client, match_id: str) -> None:
        teams = [{"place": place, "players": [{"player": f"x{place}"}]} for place in (1, 2)]
        match = {"id": match_id, "played_at": "2026-01-01T12:00:00Z", "teams": teams}
        while True:
            try:
                status = client.post(f"{self._address}{ON}/matches", json=match).status_code
            except httpx.TransportError:
                status = 503
            if status == 503:
                self.refusals += 1
                time.sleep(0.01)
                continue
            assert status in (200, 201), status
            self.reported.append(match_id)
            return


def move(source: str, target: str) -> dict[str, object]:
    """The result of the command, in a process of its own."""
    command = [sys.executable, "-m", "evenmatch", "move", "--from", source, "--to", target, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert isinstance(told, dict)
    return told


@pytest.mark.slow
def test_a_service_under_load_goes_on_with_the_database_to_which_it_is_moved_and_back(
    postgres: Postgres, tmp_path: Path
):
    first, between, last = str(tmp_path / "old.db"), postgres.fresh_database(), str(tmp_path / "back.db")
    with Service.open(first) as service:
        key = Keys(service.database, service.clock).create("all", ["admin"], None, None)[1]
    acknowledged: set[str] = set()
    for number, (source, target) in enumerate(((first, between), (between, last))):
        with Served(source, tmp_path, EVENMATCH_NEXT_DB=target, EVENMATCH_LOG_LEVEL="warning") as served:
            with served.client(key) as admin:
                if number == 0:
                    request_json(admin, "POST", "/v1/ladders", {"name": "arena", "system": "elo"}, status=201)
                    request_json(admin, "PUT", f"{ON}/queues/main", QUEUE)
            clients = Clients([served], key, number)
            clients.begin(servers=2, players=6, readers=1, first=100 * number)
            reporter = Reporter(served.address, key, f"move{number}")
            time.sleep(AROUND)
            moved = move(source, target)
            seen, offers = len(reporter.reported), len(select_rows(target, "SELECT 1 FROM offer"))
            time.sleep(AROUND)
            deadline = time.monotonic() + DEADLINE
            while len(reporter.reported) < seen + 10 or len(select_rows(target, "SELECT 1 FROM offer")) <= offers:
                clients.check()
                assert time.monotonic() < deadline, served.told()
                time.sleep(0.05)
            reporter.end()
            clients.end()
            acknowledged |= {*clients.reports, *reporter.reported}
            assert "Traceback" not in served.told()
            assert served.stop() == 0
        print(f"pause by the command {moved['pause']} s, for a client {reporter.pause:.2f} s", moved["changed"])
        assert reporter.pause < LONGEST_PAUSE
        check_nobody_twice(target)
        check_events(target, acknowledged, "arena")
        tickets = {int(str(row[0])) for row in select_rows(target, "SELECT ticket FROM ticket")}
        assert clients.tickets <= tickets
        with Service.open(target) as service:
            assert service.verify("arena").is_equal


def lines_of(served: Served, event: str) -> list[dict[str, object]]:
    """The lines of the log with this event."""
    lines = [json.loads(line) for line in served.told().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


@pytest.mark.slow
def test_several_serving_processes_go_on_with_the_database_to_which_it_is_moved(postgres: Postgres, tmp_path: Path):
    source, target = postgres.fresh_database(), postgres.fresh_database()
    with Service.open(source) as service:
        key = Keys(service.database, service.clock).create("all", ["admin"], None, None)[1]
    with Served(source, tmp_path, EVENMATCH_NEXT_DB=target, EVENMATCH_WORKERS="2") as served:
        wait_for(lambda: lines_of(served, "all serving processes are ready"), 3 * SLOWEST)
        before = len(lines_of(served, "serving"))
        assert before == 2
        with served.client(key) as admin:
            request_json(admin, "POST", "/v1/ladders", {"name": "arena", "system": "elo"}, status=201)
            request_json(admin, "PUT", f"{ON}/queues/main", QUEUE)
        clients = Clients([served], key, 7)
        clients.begin(servers=2, players=6, readers=1)
        reporter = Reporter(served.address, key, "move")
        time.sleep(AROUND)
        move(source, target)

        def workers() -> list[object]:
            """The numbers of the processes that began to serve after the move, all of them on the target."""
            lines = lines_of(served, "serving")[before:]
            assert {str(line["database"]) for line in lines} <= {shown_url(parse_url(target))}
            return [line["worker"] for line in lines]

        wait_for(lambda: sorted(map(str, workers())) == ["1", "2"], SLOWEST)
        os.kill(served.process_id, signal.SIGHUP)  # successors begin with the database that was moved
        wait_for(lambda: lines_of(served, "reloaded"), 3 * SLOWEST)
        assert sorted(map(str, workers())) == ["1", "1", "2", "2"]
        psutil.Process(served.process_id).children()[0].kill()
        wait_for(lambda: len(workers()) == 5, SLOWEST)
        seen = len(reporter.reported)
        wait_for(lambda: len(reporter.reported) > seen + 10, SLOWEST)
        reporter.end()
        clients.end()
        assert "Traceback" not in served.told()
        assert served.stop() == 0
    print(f"longest wait of a client {reporter.pause:.2f} s")
    assert reporter.pause < LONGEST_PAUSE
    check_nobody_twice(target)
    check_events(target, {*clients.reports, *reporter.reported}, "arena")
    assert clients.tickets <= {int(str(row[0])) for row in select_rows(target, "SELECT ticket FROM ticket")}
    with Service.open(target) as service:
        assert service.verify("arena").is_equal
