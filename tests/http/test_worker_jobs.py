"""Corrections of large ladders: a worker process does them, the request waits a moment, then its job is followed.

Here every task counts as large.
"""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Void
from evenmatch.errors import JobCancelledError
from evenmatch.jobs.jobs import Jobs
from evenmatch.jobs.tasks import CorrectionTask, PreviewTask, RebuildTask
from evenmatch.jobs.worker_process import LadderWork, WorkerLostError, run_in_process
from evenmatch.ledger import rating_rows
from ledger.sample_matches import duel, ratings

pytestmark = pytest.mark.slow

LADDER = "/v1/ladders/duel"
SLOWEST = 120.0  # a worker loads the whole package, and other tests have the processors, too


@pytest.fixture
def played(admin, service, site):
    """Ann beat Bob, then Eve beat Ann."""
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    service.record_many("duel", [duel(1, "ann", "bob", "duel"), duel(2, "eve", "ann", "duel")])
    site.ladder_work.small = -1


def ended(admin, answer):
    """The job of an answer once it has ended."""
    assert answer.status_code == 202, answer.text
    job, deadline = {"state": "running"}, time.monotonic() + SLOWEST
    while job["state"] == "running" and time.monotonic() < deadline:
        job = admin.get(answer.headers["location"], params={"wait": 10}).json()
    return job


def result(admin, answer):
    """What a request was answered, at once or by its job."""
    return answer.json() if answer.status_code == 200 else ended(admin, answer)["result"]


def workers():
    """The ids of the worker processes of this process."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    children = {child for task in tasks.iterdir() for child in (task / "children").read_text().split()}
    return [int(child) for child in children if b"jobs.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def wait_until(holds):
    deadline = time.monotonic() + SLOWEST
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_void_by_a_worker_is_that_of_a_request_and_noted_once(admin, service, played):
    sent = {"match_id": "m1", "id": "v1"}
    done = result(admin, admin.post(f"{LADDER}/voids", json=sent))
    assert (done["told"], done["there_already"], done["preview"]) == ("match 'm1' is void", False, False)
    moves = {move["player"]: (move["before"], move["after"]) for move in done["effect"]["moves"]}
    assert (moves["bob"], moves["eve"][1], moves["ann"][1]) == ((1484.0, None), 1516.0, 1484.0)
    assert ratings(service, "duel") == {"eve": 1516.0, "ann": 1484.0}
    assert service.verify("duel").is_equal
    noted = [entry["action"] for entry in admin.get("/v1/audit").json()["items"]]
    assert noted.count("match.voided") == 1
    assert admin.post(f"{LADDER}/voids", json={"match_id": "m1", "id": "v2"}).status_code == 409
    assert admin.post(f"{LADDER}/voids", json={"match_id": "m9"}).status_code == 404


def test_equal_previews_share_a_job_and_its_result_until_the_ladder_changes(admin, service, site, played):
    held, go = threading.Event(), threading.Event()

    def hold(_):
        held.set()
        go.wait(SLOWEST)
        return {}

    site.jobs.begin("rebuild", "duel", hold)
    assert held.wait(SLOWEST)
    sent = {"match_id": "m1"}
    first, second = (admin.post(f"{LADDER}/voids", json=sent, params={"preview": "true"}) for _ in range(2))
    other = admin.post(f"{LADDER}/voids", json={"match_id": "m2"}, params={"preview": "true"})
    assert first.json()["job"] == second.json()["job"] != other.json()["job"]
    assert (first.json()["ahead"], other.json()["ahead"]) == (1, 2)
    admin.delete(other.headers["location"])
    go.set()
    seen = ended(admin, first)["result"]
    assert {move["player"]: move["after"] for move in seen["effect"]["moves"]}["eve"] == 1516.0
    again = admin.post(f"{LADDER}/voids", json=sent, params={"preview": "true"})
    assert (again.status_code, again.json()) == (200, seen)
    service.record(duel(3, "bob", "eve", "duel"))
    fresh = result(admin, admin.post(f"{LADDER}/voids", json=sent, params={"preview": "true"}))
    assert (fresh["effect"]["matches"], seen["effect"]["matches"]) == (2, 1)


class StoppedJobs(Jobs):
    """The jobs of a process that dies, or freezes, when it has stored that one runs."""

    def _start(self, *_):
        pass


@pytest.fixture
def flowing(clock):
    """Time passes as it does."""
    ended = threading.Event()

    def flow():
        while not ended.wait(0.1):
            clock.move(seconds=0.1)

    thread = threading.Thread(target=flow, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join()


PREVIEW = PreviewTask("duel", Void("m1", None), None)
# The requests that find a job of another process, and the task of that job
JOINING = [
    (lambda admin: admin.post(f"{LADDER}/voids", json={"match_id": "m1"}, params={"preview": "true"}), PREVIEW),
    (lambda admin: admin.post(f"{LADDER}/rebuild"), RebuildTask("duel")),
]


@pytest.mark.parametrize(("ask", "task"), JOINING, ids=["preview", "rebuild"])
def test_a_request_that_joins_the_job_of_a_dead_process_gets_one_of_its_own(
    admin, service, clock, flowing, played, ask, task
):
    dead, _ = LadderWork(service, StoppedJobs(service.database, clock), -1).begin(task)
    answer = ask(admin)
    if answer.status_code == 202:
        assert answer.json()["job"] != dead.job
        assert ended(admin, answer)["state"] == "done"
    assert answer.status_code in (200, 202)


@pytest.mark.parametrize(("ask", "task"), JOINING, ids=["preview", "rebuild"])
def test_a_request_that_joins_the_job_of_a_live_process_gets_that(
    admin, service, clock, flowing, played, monkeypatch, ask, task
):
    go, work = threading.Event(), LadderWork(service, Jobs(service.database, clock), -1)
    monkeypatch.setattr(work, "_work", lambda *_: lambda _: go.wait(SLOWEST) and {"effect": None})
    live, _ = work.begin(task)
    answer = ask(admin)
    go.set()
    assert (answer.status_code, answer.json()["job"]) == (202, live.job)
    assert ended(admin, answer)["state"] == "done"


def test_a_job_that_is_cancelled_while_its_worker_waits_changes_nothing(admin, service, site, played):
    before = ratings(service, "duel")
    waiting = admin.post(f"{LADDER}/voids", json={"match_id": "m1"})
    if waiting.status_code == 202:  # else the worker was faster than the request waits, which is rare
        cancelled = admin.delete(waiting.headers["location"])
        assert cancelled.status_code == 202
        job = ended(admin, waiting)
        assert job["state"] in ("cancelled", "done")
        assert (ratings(service, "duel") == before) == (job["state"] == "cancelled")
    assert workers() == []
    assert service.verify("duel").is_equal


def test_a_job_whose_worker_is_killed_fails_and_can_be_asked_for_again(admin, service, played):
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(admin.post(f"{LADDER}/bans", json={"player": "ann"})), daemon=True
    )
    thread.start()
    wait_until(workers)
    for worker in workers():
        os.kill(worker, signal.SIGKILL)
    thread.join(SLOWEST)
    if answers[0].status_code == 202:
        assert ended(admin, answers[0])["state"] == "failed"
    else:
        assert answers[0].status_code == 503
    assert service.verify("duel").is_equal
    assert result(admin, admin.post(f"{LADDER}/bans", json={"player": "ann"}))["told"].startswith("player 'ann'")


def test_a_job_whose_worker_is_frozen_ends_soon_after_it_is_cancelled_and_changes_nothing(admin, service, played):
    before = ratings(service, "duel")
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(admin.post(f"{LADDER}/voids", json={"match_id": "m1"})), daemon=True
    )
    thread.start()
    wait_until(workers)
    for worker in workers():
        os.kill(worker, signal.SIGSTOP)
    thread.join(SLOWEST)
    begun = time.monotonic()
    assert admin.delete(answers[0].headers["location"]).status_code == 202
    assert ended(admin, answers[0])["state"] == "cancelled"
    assert time.monotonic() - begun < 20
    assert workers() == []
    assert ratings(service, "duel") == before


def test_a_frozen_worker_is_killed_and_its_job_fails(admin, service, monkeypatch, played):
    monkeypatch.setattr("evenmatch.jobs.worker_process.SILENT", 3.0)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(admin.post(f"{LADDER}/verify")), daemon=True)
    thread.start()
    wait_until(workers)
    for worker in workers():
        os.kill(worker, signal.SIGSTOP)
    thread.join(SLOWEST)
    job = ended(admin, answers[0])
    assert job["state"] == "failed"
    assert "did not answer for 3 seconds and was killed" in job["told"]
    assert workers() == []


def test_a_correction_whose_worker_is_lost_after_it_was_stored_is_done(admin, service, monkeypatch, played):
    def lost(_, task, progress):
        task.run(service, progress)
        raise WorkerLostError("did not answer for 5 seconds and was killed") from JobCancelledError("cancelled")

    monkeypatch.setattr("evenmatch.jobs.worker_process.run_in_process", lost)
    assert result(admin, admin.post(f"{LADDER}/voids", json={"match_id": "m1"}))["there_already"]
    assert ratings(service, "duel") == {"eve": 1516.0, "ann": 1484.0}


def test_an_error_of_a_worker_is_that_of_the_task(admin, service, site, played):
    site.ladder_work.small = 10
    sent = {"player": "ann", "id": "ban"}
    assert admin.post(f"{LADDER}/bans", json=sent).status_code == 200
    site.ladder_work.small = -1
    assert result(admin, admin.post(f"{LADDER}/bans", json=sent))["there_already"]
    refused = admin.post(f"{LADDER}/bans", json={"player": "bob", "id": "ban"})
    assert refused.status_code == 409


def test_a_small_correction_whose_checkpoint_is_lost_meanwhile_is_left_to_a_worker(
    admin, service, site, played, monkeypatch
):
    service.record_many("duel", [duel(number, "ann", "bob", "duel") for number in range(3, 40)])
    with service.database.write() as store:
        head = store.lock("duel")
        rating_rows.put_checkpoint(
            store, head.ladder, head.generation, rating_rows.read_roster(store, head, rules("elo"))
        )
    service.record(duel(40, "bob", "eve", "duel"))
    site.ladder_work.small, outline, in_worker = 10, CorrectionTask.outline, []

    def outlined(task, store, head):
        """The outline of a task; right after it another operator voids the first match: a new generation begins."""
        told = outline(task, store, head)
        assert told.size <= 10
        service.correct("duel", Void("m1"))
        return told

    def run(*arguments):
        in_worker.append(arguments)
        return run_in_process(*arguments)

    monkeypatch.setattr(CorrectionTask, "outline", outlined)
    monkeypatch.setattr("evenmatch.jobs.worker_process.run_in_process", run)
    result(admin, admin.post(f"{LADDER}/voids", json={"match_id": "m40"}))
    assert len(in_worker) == 1
    assert service.verify("duel").is_equal
    assert service.ladder("duel").matches == 40
