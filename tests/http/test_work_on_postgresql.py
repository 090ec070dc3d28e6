"""Ladders on PostgreSQL that others work on: a worker process, or one that has locked a ladder and stands still."""

import threading
import time

import pytest

from databases import made_database
from evenmatch.ledger.database import Database
from ledger.sample_matches import duel, ratings

CALLS = 60  # more than the process has threads
SLOWEST = 30.0


@pytest.fixture
def database_url(request, tmp_path):
    """PostgreSQL alone: SQLite has one lock for all ladders."""
    return made_database(request, "postgresql", tmp_path)


def test_voids_on_a_locked_ladder_do_not_hold_up_the_reports_of_another(admin, service, database_url):
    for name in ("locked", "open"):
        admin.post("/v1/ladders", json={"name": name, "system": "elo"})
        service.record(duel(1, "ann", "bob", name))
    report = {
        "id": "m2",
        "played_at": "2026-01-01T02:00:00Z",
        "teams": [{"place": place, "players": [{"player": name}]} for place, name in ((1, "eve"), (2, "joe"))],
    }
    answers = []

    def void():
        answers.append(admin.post("/v1/ladders/locked/voids", json={"match_id": "m1"}).status_code)

    threads = [threading.Thread(target=void, daemon=True) for _ in range(CALLS)]
    other = Database.open(database_url)
    with other.write() as store:
        store.lock("locked")
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + SLOWEST
        while 503 not in answers:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        begun = time.monotonic()
        assert admin.post("/v1/ladders/open/matches", json=report).status_code in (200, 201)
        assert admin.get("/v1/ladders/open/standings").status_code == 200
        assert admin.post("/v1/ladders/open/voids", json={"match_id": "m1"}).status_code == 200
        took = time.monotonic() - begun
        assert time.monotonic() < deadline, took
    other.close()
    for thread in threads:
        thread.join(60)
    assert answers.count(200) == 1  # all others were refused: voided already, or too many at once
    assert set(answers) == {200, 409, 503}


def test_a_worker_voids_a_match_while_reports_arrive(admin, service, site):
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    service.record_many("duel", [duel(1, "ann", "bob", "duel"), duel(2, "eve", "ann", "duel")])
    site.ladder_work.small = -1
    begun = admin.post("/v1/ladders/duel/voids", json={"match_id": "m1", "id": "v1"})
    service.record(duel(3, "joe", "bob", "duel"))
    deadline = time.monotonic() + 120
    while begun.status_code == 202 and (job := admin.get(begun.headers["location"]).json())["state"] == "running":
        assert time.monotonic() < deadline, job
        time.sleep(0.1)
    assert ratings(service, "duel") == {"eve": 1516.0, "ann": 1484.0, "joe": 1516.0, "bob": 1484.0}
    assert service.verify("duel").is_equal
