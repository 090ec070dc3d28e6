"""Corrections of large ladders by worker processes. In these tests every task counts as large."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from evenmatch.jobs.worker import WorkerLostError
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
    return [process.pid for process in multiprocessing.active_children()]


def wait_until(holds):
    deadline = time.monotonic() + SLOWEST
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_void_by_a_worker_process_has_the_same_result_and_one_audit_entry(admin, service, played):
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


def test_a_job_whose_worker_is_killed_fails_and_can_be_requested_again(admin, service, played):
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


def test_cancelling_a_job_whose_worker_is_frozen_kills_it_and_changes_nothing(admin, service, played):
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


def test_a_correction_whose_worker_is_lost_after_it_was_stored_is_done(admin, service, monkeypatch, played):
    def lost(_, task, progress):
        task.run(service, progress)
        raise WorkerLostError("killed")

    monkeypatch.setattr("evenmatch.jobs.worker.run_in_process", lost)
    assert result(admin, admin.post(f"{LADDER}/voids", json={"match_id": "m1"}))["there_already"]
    assert ratings(service, "duel") == {"eve": 1516.0, "ann": 1484.0}


def test_a_correction_that_was_stored_when_the_process_stops_is_done(admin, service, site, monkeypatch, played):
    def stopped(_, task, progress):
        task.run(service, progress)
        site.jobs.ask_to_stop()
        progress(0)

    monkeypatch.setattr("evenmatch.jobs.worker.run_in_process", stopped)
    assert result(admin, admin.post(f"{LADDER}/voids", json={"match_id": "m1"}))["there_already"]
    assert site.jobs.page("duel")[0].state == "done"


def test_a_small_correction_of_a_ladder_that_becomes_due_meanwhile_is_a_job(admin, service, site, monkeypatch, played):
    service.open_season("duel", reset="none")  # with a checkpoint, so that later corrections replay little
    service.record(duel(3, "dan", "fay", "duel"))
    site.ladder_work.small = 7
    assert admin.post(f"{LADDER}/voids", json={"match_id": "m3"}).status_code == 200
    assert site.jobs.page("duel") == []
    outline_of = site.ladder_work._outline

    def outline(task):
        monkeypatch.undo()
        found = outline_of(task)
        assert found.size <= site.ladder_work.small
        service.merge("bob", "dan", rebuild=False)  # Bob's only match is the ladder's first
        return found

    monkeypatch.setattr(site.ladder_work, "_outline", outline)
    done = result(admin, admin.delete(f"{LADDER}/voids/m3"))
    assert done["told"] == "match 'm3' counts again"
    assert [job.kind for job in site.jobs.page("duel")] == ["correction"]
    assert service.verify("duel").is_equal


def test_an_error_in_a_worker_process_reaches_the_caller(admin, service, site, played):
    site.ladder_work.small = 10
    sent = {"player": "ann", "id": "ban"}
    assert admin.post(f"{LADDER}/bans", json=sent).status_code == 200
    site.ladder_work.small = -1
    assert result(admin, admin.post(f"{LADDER}/bans", json=sent))["there_already"]
    refused = admin.post(f"{LADDER}/bans", json={"player": "bob", "id": "ban"})
    assert refused.status_code == 409
