"""Reports, queues and reads go on while one of two processes is frozen and the other one killed, in turn.

Meanwhile operators race with each other, and strangers hold connections by sending byte by byte.

EVENMATCH_MINUTES says for how long, for each database; `make soak` takes ten minutes.
"""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from crash.clients import ON, Clients
from crash.plain_sql import check_events
from crash.test_service_killed import QUEUE, check_kept, check_nobody_twice
from evenmatch.accounts.keys import Keys
from evenmatch.operations.service import Service
from server_process import Served, request_json

SOAK = os.environ.get("EVENMATCH_SOAK") == "1"
SECONDS = 60.0 * float(os.environ.get("EVENMATCH_MINUTES", "10" if SOAK else "0.4"))
EVERY = 30.0 if SOAK else 12.0  # seconds from one kill or freeze to the next
FROZEN = 20.0 if SOAK else 6.0  # seconds of a freeze; of SQLite, whose file a frozen writer may hold, SHORT
SHORT = 2.0
RECOVERED = 5.0 if SOAK else 15.0  # seconds; in the suite other tests have the processors, too
GROWTH = 1.10  # of the memory of the process that is not killed, from a third of the time on
PATIENCE = 3.0  # seconds that a client waits before it asks the other process


def seconds_until_a_report(clients: Clients) -> float:
    """Seconds from now until reports are acknowledged again: one that was begun before does not count."""
    begin = time.monotonic()
    enough = len(clients.reports) + 8
    while len(clients.reports) < enough:
        clients.check()
        assert time.monotonic() < begin + 60, "no report goes through"
        time.sleep(0.02)
    return time.monotonic() - begin


def freeze(process: Served, seconds: float, clients: Clients, *, is_file: bool) -> float:
    """Freeze a process; seconds until the others go on, for SQLite from the moment on when it wakes up."""
    with process.frozen():
        begin = time.monotonic()
        took = 0.0 if is_file else seconds_until_a_report(clients)
        time.sleep(max(0.0, begin + seconds - time.monotonic()))
    return seconds_until_a_report(clients) if is_file else took


@pytest.mark.slow
@pytest.mark.timeout(max(600, 3 * SECONDS))
def test_mixed_load_goes_on_through_kills_and_freezes(url: str, tmp_path: Path):
    is_file, chance = "://" not in url, Random(7)
    with Service.open(url) as service:
        key = Keys(service.database, service.clock).create("all", ["admin"], None, None)[1]
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    took: dict[str, list[float]] = {"freeze": [], "kill": []}
    memory = []
    with ExitStack() as stack:
        steady, killed = (
            stack.enter_context(Served(url, folder, EVENMATCH_LOG_LEVEL="warning", EVENMATCH_OPEN_READS="true"))
            for folder in folders
        )
        with steady.client(key) as admin:
            request_json(admin, "POST", "/v1/ladders", {"name": "arena", "system": "elo"}, status=201)
            request_json(admin, "PUT", f"{ON}/queues/main", QUEUE)
        clients = Clients([steady, killed], key, 7, patience=PATIENCE)
        stack.callback(clients.end)
        clients.begin(servers=6, players=8, readers=2, operators=2, drips=8)
        seconds_until_a_report(clients)
        begin = time.monotonic()
        while time.monotonic() < begin + SECONDS:
            next_at = time.monotonic() + EVERY
            if len(took["freeze"]) <= len(took["kill"]):
                victim = steady if chance.random() < 0.5 else killed
                took["freeze"].append(freeze(victim, SHORT if is_file else FROZEN, clients, is_file=is_file))
            else:
                killed.kill()
                took["kill"].append(seconds_until_a_report(clients))
                killed.launch()
                killed.wait_for_address()
            check_nobody_twice(url)
            time.sleep(max(0.0, next_at - time.monotonic()))
            memory.append(steady.memory)
        clients.end()
        check_nobody_twice(url)
        check_kept(url, clients, steady, key)
        assert {"match-voided", "player-banned"} <= set(check_events(url, set(clients.reports), "arena"))
        worst = {what: max(seconds, default=0.0) for what, seconds in took.items()}
        print(f"{len(clients.reports)} reports; memory in MB {[round(x) for x in memory]}; recoveries in s:")
        print({what: [round(seconds, 2) for seconds in listed] for what, listed in took.items()})
        assert max(worst.values()) <= RECOVERED
        settled = memory[len(memory) // 3 :]
        assert max(settled) <= GROWTH * settled[0], memory
        for process in (steady, killed):
            assert "Traceback" not in process.told()
