"""A worker process ends with the service that started it, also when that is killed."""

import os
import time
from pathlib import Path

import pytest

from elo_matches import duels_table
from evenmatch import rules
from evenmatch.accounts.keys import Keys
from evenmatch.jobs.worker import SMALL
from evenmatch.operations.service import Service
from server_process import Served, request_json

SLOWEST = 60.0


def children_of(process: int) -> set[int]:
    """The ids of the processes that a process has started."""
    tasks = Path(f"/proc/{process}/task")
    return {int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()}


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and waits to be noticed does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path(f"/proc/{os.getpid()}/task").exists(), reason="processes are found in /proc")
def test_a_worker_ends_when_the_service_is_killed_and_the_ledger_is_whole(tmp_path: Path) -> None:
    url = str(tmp_path / "evenmatch.db")
    with Service.open(url) as service:
        service.create_ladder("duel", "elo", rules("elo"))
        service.import_matches("duel", duels_table(1, SMALL + 1, hours=0.5))
        key = Keys(service.database, service.clock).create("test", ["admin"], None, None)[1]
    with Served(url, tmp_path, EVENMATCH_MATCHMAKER="false") as served, served.client(key) as admin:
        job = request_json(admin, "POST", "/v1/ladders/duel/verify", status=202)
        deadline, process = time.monotonic() + SLOWEST, served.process_id
        while not (workers := {child for child in children_of(process) if _is_worker(child)}):
            assert time.monotonic() < deadline, "no worker was started"
            time.sleep(0.01)
        served.kill()
        while any(map(is_alive, workers)):
            assert time.monotonic() < deadline, f"workers {workers} of job {job['job']} outlive the service"
            time.sleep(0.01)
    with Service.open(url) as service:
        assert service.verify("duel").is_equal


def _is_worker(process: int) -> bool:
    try:
        return b"multiprocessing.spawn" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
