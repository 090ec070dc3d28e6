"""Two processes record one ladder: either is frozen or killed, the database server is killed.

`make soak`, or EVENMATCH_SOAK=1, kills processes twenty times and the server ten times.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from crash.clients import ON, Clients
from crash.plain_sql import check_events
from evenmatch.accounts.keys import Keys
from evenmatch.operations.service import Service
from postgres import Postgres
from server_process import Served, request_json

SOAK = os.environ.get("EVENMATCH_SOAK") == "1"
KILLS, CRASHES, FREEZES = (20, 10, 5) if SOAK else (1, 1, 1)
PATIENCE = 20.0  # seconds that a client waits for an answer; a report has 15
UNTIL = 150.0  # seconds until something must have happened; kernels may have to be compiled first


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server of this test's own, which it kills."""
    with Postgres(durable=SOAK) as running:
        yield running


def wait_for_reports(clients: Clients, count: int) -> None:
    """Until so many more reports were acknowledged."""
    enough, deadline = len(clients.reports) + count, time.monotonic() + UNTIL
    while len(clients.reports) < enough:
        clients.check()
        assert time.monotonic() < deadline, "no report goes through"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(1800 if SOAK else 400)
def test_nothing_is_lost_or_doubled_when_processes_and_the_server_are_killed(server: Postgres, tmp_path: Path):
    url, chance = server.fresh_database(), Random(3)
    with Service.open(url) as service:
        key = Keys(service.database, service.clock).create("all", ["admin"], None, None)[1]
    folders = [tmp_path / "one", tmp_path / "two"]
    with ExitStack() as stack:
        for folder in folders:
            folder.mkdir()
        options = {"EVENMATCH_LOG_LEVEL": "warning"}
        served = [stack.enter_context(Served(url, folder, **options)) for folder in folders]
        with served[0].client(key) as admin:
            request_json(admin, "POST", "/v1/ladders", {"name": "arena", "system": "elo"}, status=201)
        clients = Clients(served, key, 3, patience=PATIENCE)
        stack.callback(clients.end)
        clients.begin(servers=6, players=0)
        wait_for_reports(clients, 10)
        for _ in range(FREEZES):
            for victim in served:
                with victim.frozen():
                    wait_for_reports(clients, 30)
        for _ in range(KILLS):
            victim = chance.choice(served)
            victim.kill()
            wait_for_reports(clients, 10)
            victim.launch()
            victim.wait_for_address()
            wait_for_reports(clients, 10)
        for _ in range(CRASHES):
            server.crash()
            time.sleep(chance.random())
            server.start()
            wait_for_reports(clients, 10)
        clients.end()
        kinds = check_events(url, set(clients.reports), "arena")
        assert kinds.count("match-recorded") >= len(clients.reports)
        with served[0].client(key) as client:
            for match_id, receipt in list(clients.reports.items())[::17]:
                name, _, number = match_id.partition("-")
                assert (receipt["match_id"], receipt["ladder"]) == (match_id, "arena"), (name, number)
                assert client.get(f"{ON}/matches/{match_id}").json()["position"] == receipt["position"]
        print(f"{len(clients.reports)} reports acknowledged, {clients.cut} connections cut")
        bugs = [line for process in served for line in process.told().splitlines() if '"bug"' in line]
        assert not bugs, bugs[0]
    with Service.open(url) as service:
        assert service.verify("arena").is_equal
