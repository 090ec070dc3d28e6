"""Jobs over HTTP: joined, followed, cancelled, waiting, lost, and limited to the ladders of a key."""

import threading

import pytest

from evenmatch import rules
from evenmatch.errors import ConflictError
from evenmatch.jobs import job_sql
from evenmatch.jobs.job_sql import JobRow
from evenmatch.jobs.jobs import LADDER_WAITING_LIMIT, Jobs
from ledger.sample_matches import duel

pytestmark = pytest.mark.slow


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def played_ladder(admin, service):
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    service.record_many("duel", [duel(1, "ann", "bob", "duel"), duel(2, "eve", "ann", "duel")])


def ended(admin, begun):
    assert begun.status_code == 202
    return admin.get(begun.headers["location"], params={"wait": 30}).json()


def test_a_rebuild_repairs_ratings_and_a_verification_confirms_it(admin, service, played_ladder):
    with service.database.write() as store:
        store.run("UPDATE state SET rating = ?", 1.0)
    bad = ended(admin, admin.post("/v1/ladders/duel/verify"))
    assert (bad["state"], bad["result"]["equal"]) == ("done", False)
    rebuilt = ended(admin, admin.post("/v1/ladders/duel/rebuild"))
    assert (rebuilt["state"], rebuilt["done"], rebuilt["total"]) == ("done", 3, 3)
    assert rebuilt["result"] == {"since": 1, "matches": 2, "changed": 0}
    good = ended(admin, admin.post("/v1/ladders/duel/verify"))
    assert (good["result"]["equal"], good["result"]["matches"], good["result"]["players"]) == (True, 2, 3)
    kinds = [one["kind"] for one in admin.get("/v1/jobs", params={"ladder": "duel"}).json()["items"]]
    assert sorted(kinds) == ["rebuild", "verify", "verify"]


def test_an_equal_request_joins_the_running_job(admin, site, played_ladder):
    go = threading.Event()
    first, begun = site.jobs.begin("rebuild", "duel", lambda _: go.wait(20) and {})
    assert begun
    assert admin.post("/v1/ladders/duel/rebuild").json()["job"] == first.job
    go.set()
    assert admin.get(f"/v1/jobs/{first.job}", params={"wait": 30}).json()["state"] == "done"
    assert admin.post("/v1/ladders/duel/rebuild").json()["job"] != first.job


def test_a_change_of_rules_is_refused_while_another_one_runs(admin, site, played_ladder):
    go = threading.Event()
    first, _ = site.jobs.begin("correction", "duel", lambda _: go.wait(20) and {})
    refused = admin.put("/v1/ladders/duel/rules", json={"parameters": {"k": 1}})
    go.set()
    assert refused.status_code == 409
    assert first.job in refused.json()["detail"]


def test_rules_that_are_sent_again_with_their_id_join_their_job(admin, site, service, played_ladder):
    go, site.ladder_work.small = threading.Event(), -1
    site.jobs.begin("rebuild", "duel", lambda _: go.wait(20) and {})
    sent = {"parameters": {"k": 20}, "id": "calmer"}
    first = admin.put("/v1/ladders/duel/rules", json=sent)
    admin.patch("/v1/ladders/duel", json={"title": "Duels"})
    again = admin.put("/v1/ladders/duel/rules", json=sent)
    other = admin.put("/v1/ladders/duel/rules", json={"parameters": {"k": 20}, "id": "other"})
    admin.delete(first.headers["location"])
    go.set()
    assert (first.status_code, again.status_code, other.status_code) == (202, 202, 409)
    assert again.json()["job"] == first.json()["job"]
    assert first.json()["job"] in other.json()["detail"]


def test_seasons_of_the_same_id_share_a_job_only_if_they_are_equal(admin, site, service, played_ladder):
    go, site.ladder_work.small = threading.Event(), -1
    site.jobs.begin("rebuild", "duel", lambda _: go.wait(20) and {})
    sent = [{"title": title, "id": "s2"} for title in ("Winter", "Winter", "Spring")]
    first, again, other = (admin.post("/v1/ladders/duel/seasons", json=one) for one in sent)
    for answer in (first, other):
        admin.delete(answer.headers["location"])
    go.set()
    assert again.json()["job"] == first.json()["job"] != other.json()["job"]


def test_a_running_job_shows_its_progress(admin, site, played_ladder):
    go = threading.Event()

    def work(progress):
        progress(2)
        go.wait(20)
        return {"well": True}

    job, _ = site.jobs.begin("rebuild", "duel", work)
    found = admin.get(f"/v1/jobs/{job.job}").json()
    for _ in range(100):
        if found["done"]:
            break
        go.wait(0.1)
        found = admin.get(f"/v1/jobs/{job.job}").json()
    assert (found["state"], found["done"], found["total"]) == ("running", 2, 3)
    go.set()
    assert admin.get(f"/v1/jobs/{job.job}", params={"wait": 30}).json()["result"] == {"well": True}


def test_a_job_whose_process_was_killed_is_reported_as_failed_and_can_be_requested_again(
    admin, service, clock, played_ladder
):
    lost = JobRow("job_lost", "duel", "rebuild", "", None, "running", 1, 3, "{}", clock(), clock())
    with service.database.write() as store:
        job_sql.insert(store, lost)
    clock.move(seconds=15)
    assert admin.post("/v1/ladders/duel/rebuild").json()["job"] == "job_lost"
    assert admin.get("/v1/jobs/job_lost").json()["state"] == "running"
    clock.move(seconds=1)
    found = admin.get("/v1/jobs/job_lost").json()
    assert (found["state"], found["told"]) == ("failed", "the process that ran this job has ended; request it again")
    assert ended(admin, admin.post("/v1/ladders/duel/rebuild"))["state"] == "done"
    with service.database.read() as store:
        assert store.all("SELECT state FROM job WHERE job = 'job_lost'") == [("failed",)]


def test_a_process_that_stops_ends_its_jobs_and_says_so(site, service, played_ladder):
    jobs, reached = Jobs(service.database, service.clock), threading.Event()

    def work(progress):
        while True:
            progress(1)
            reached.set()

    job, _ = jobs.begin("rebuild", "duel", work)
    assert reached.wait(10)
    jobs.stop(10)
    found = site.jobs.find(job.job)
    assert (found.state, found.told) == ("failed", "the process that ran this job was stopped; request the job again")


def test_a_job_is_cancelled_by_whichever_process_is_asked(admin, site, service, played_ladder):
    elsewhere, begun = Jobs(service.database, service.clock), threading.Event()

    def work(progress):
        while True:
            progress(1)
            begun.wait(0.01)

    for jobs in (site.jobs, elsewhere):
        job, _ = jobs.begin("rebuild", "duel", work)
        asked = admin.delete(f"/v1/jobs/{job.job}")
        assert (asked.status_code, asked.json()["told"]) == (202, "is being cancelled")
        found = admin.get(f"/v1/jobs/{job.job}", params={"wait": 30}).json()
        assert (found["state"], found["told"]) == ("cancelled", "cancelled; nothing was changed")
    assert admin.delete(f"/v1/jobs/{job.job}").json()["state"] == "cancelled"
    noted = [entry for entry in admin.get("/v1/audit").json()["items"] if entry["action"] == "job.cancelled"]
    assert len(noted) == 2


def test_a_job_that_is_done_before_it_notices_is_done(admin, site, played_ladder):
    held, go = threading.Event(), threading.Event()
    job, _ = site.jobs.begin("rebuild", "duel", lambda _: held.set() or (go.wait(20) and {"well": True}))
    assert held.wait(20)  # cancelled earlier, it would not begin
    admin.delete(f"/v1/jobs/{job.job}")
    go.set()
    found = admin.get(f"/v1/jobs/{job.job}", params={"wait": 30}).json()
    assert (found["state"], found["result"]) == ("done", {"well": True})


def test_a_waiting_job_says_how_many_are_before_it(admin, site, played_ladder):
    go = threading.Event()
    site.jobs.begin("rebuild", "duel", lambda _: go.wait(20) and {})
    second = admin.post("/v1/ladders/duel/verify").json()
    assert second["ahead"] == 1
    go.set()
    found = admin.get(f"/v1/jobs/{second['job']}", params={"wait": 30}).json()
    assert (found["state"], found["ahead"]) == ("done", 0)


def test_a_waiting_job_is_cancelled_at_once_and_the_others_move_up(admin, site, service, played_ladder):
    service.create_ladder("other", "elo", rules("elo"))
    held, go, begun = threading.Event(), threading.Event(), []
    site.jobs.begin("rebuild", "duel", lambda _: held.set() or (go.wait(20) and {}))
    assert held.wait(20)
    waiting = [
        site.jobs.begin("verify", ladder, lambda _, ladder=ladder: begun.append(ladder) or {})[0].job
        for ladder in ("duel", "other")
    ]
    assert [site.jobs.find(job).ahead for job in waiting] == [1, 2]
    assert site.jobs.cancel(waiting[0]).state == "cancelled"
    assert site.jobs.find(waiting[1]).ahead == 1
    go.set()
    assert admin.get(f"/v1/jobs/{waiting[1]}", params={"wait": 30}).json()["state"] == "done"
    assert begun == ["other"]


def test_too_many_waiting_jobs_are_refused_for_a_while(admin, site, played_ladder):
    go = threading.Event()

    def begin(number):
        return site.jobs.begin("rebuild", "duel", lambda _: go.wait(20) and {}, request=str(number))[0]

    held = threading.Event()
    site.jobs.begin("rebuild", "duel", lambda _: held.set() or (go.wait(20) and {}))
    assert held.wait(20)
    for number in range(LADDER_WAITING_LIMIT):
        begin(number)
    refused = admin.post("/v1/ladders/duel/verify")
    go.set()
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) > 0


def test_a_job_reports_its_error_and_hides_the_details_of_a_bug(admin, site, played_ladder):
    def conflicts(_):
        raise ConflictError("that cannot be")

    def breaks(_):
        raise ZeroDivisionError("secret")

    told = {}
    for kind, work in (("verify", conflicts), ("rebuild", breaks)):
        job, _ = site.jobs.begin(kind, "duel", work)
        told[kind] = admin.get(f"/v1/jobs/{job.job}", params={"wait": 30}).json()
    assert (told["verify"]["state"], told["verify"]["told"]) == ("failed", "that cannot be")
    assert told["rebuild"]["state"] == "failed"
    assert "secret" not in str(told["rebuild"])


def test_jobs_come_in_pages_the_latest_first(admin, site, clock, played_ladder):
    names = []
    for kind in ("rebuild", "verify", "rules"):
        clock.move(seconds=1)
        names.append(site.jobs.begin(kind, "duel", lambda _: {})[0].job)
    first = admin.get("/v1/jobs", params={"limit": 2}).json()
    rest = admin.get("/v1/jobs", params={"limit": 2, "cursor": first["next"]}).json()
    assert [one["job"] for one in first["items"] + rest["items"]] == names[::-1]
    assert rest["next"] is None


def test_an_admin_of_another_ladder_sees_no_job_of_this_one(asking, admin, site, played_ladder):
    admin.post("/v1/ladders", json={"name": "b", "system": "elo"})
    job, _ = site.jobs.begin("verify", "duel", lambda _: {})
    other, own = (
        {"Authorization": f"Bearer {site.keys.create('one', ['admin'], [name])[1]}"} for name in ("b", "duel")
    )
    assert asking.get(f"/v1/jobs/{job.job}", headers=own).status_code == 200
    assert asking.get(f"/v1/jobs/{job.job}", headers=other).status_code == 404  # as if there were none
    assert asking.get("/v1/jobs", headers=own).status_code == 403
    assert len(asking.get("/v1/jobs", params={"ladder": "duel"}, headers=own).json()["items"]) == 1
    assert asking.get("/v1/jobs/none", headers=own).status_code == 404
