"""Requests that wait for the database are answered in time, whatever holds it, and can be sent again."""

import asyncio
import threading
import time

import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from evenmatch import rules
from evenmatch.errors import StoreError
from evenmatch.http import site as site_module
from evenmatch.operations.kernels import load_system

pytestmark = pytest.mark.both_databases

MATCH = {
    "id": "m1",
    "played_at": "2025-11-21T18:30:00Z",
    "teams": [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}],
}
LIMIT = 1.0


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch):
    monkeypatch.setattr(site_module, "REPORT_LIMIT", LIMIT)
    monkeypatch.setattr(site_module, "IDENTITY_LIMIT", LIMIT)
    load_system(rules("elo"))


@pytest.fixture
def locked(database_url):
    """Another process holds the lock of the ladder: the whole file of SQLite, the ladder's row of PostgreSQL."""
    text = str(database_url)
    engine = sa.create_engine(text if "://" in text else f"sqlite:///{text}", poolclass=NullPool)
    with engine.connect() as connection:
        yield connection
        connection.rollback()


def test_a_report_that_waits_for_a_lock_is_answered_in_time_and_counted_once(admin, locked, site):
    assert admin.post("/v1/ladders", json={"name": "duel", "system": "elo"}).status_code == 201
    assert admin.post("/v1/ladders/duel/matches", json={**MATCH, "id": "m0"}).status_code == 200
    locked.exec_driver_sql("UPDATE ladder SET divided_at = divided_at")
    begin = time.monotonic()
    answer = admin.post("/v1/ladders/duel/matches", json=MATCH)
    took = time.monotonic() - begin
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert LIMIT <= took < LIMIT + 5
    locked.rollback()
    again = admin.post("/v1/ladders/duel/matches", json=MATCH)
    assert again.status_code == 200
    assert again.json()["position"] == 3  # the ladder, the first match, this one once
    assert site.service.verify("duel").is_equal


def test_a_request_whose_key_cannot_be_looked_up_is_answered_in_time(admin, asking, site, database_url, locked):
    if "://" not in str(database_url):
        pytest.skip("SQLite reads while others write")
    assert admin.post("/v1/ladders", json={"name": "duel", "system": "elo"}).status_code == 201
    key = admin.post("/v1/keys", json={"name": "new", "scopes": ["report"]}).json()["text"]
    locked.exec_driver_sql("LOCK TABLE api_key IN ACCESS EXCLUSIVE MODE")
    for body in (MATCH, {**MATCH, "labels": "x" * 100_000}):  # a large one is identified by its head
        begin = time.monotonic()
        answer = asking.post("/v1/ladders/duel/matches", json=body, headers={"Authorization": f"Bearer {key}"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert LIMIT <= time.monotonic() - begin < LIMIT + 5
    locked.rollback()
    assert site.service.ladder("duel").matches == 0


def test_a_read_that_waits_for_too_long_raises_an_error_and_one_that_may_take_long_does_not(site, monkeypatch):
    monkeypatch.setattr(site_module, "CALL_LIMIT", 0.2)
    going = threading.Event()
    with pytest.raises(StoreError, match=r"not answered within 0\.2 s"):
        asyncio.run(site.work(going.wait, 60))
    going.set()
    assert asyncio.run(site.work(lambda: time.sleep(0.3) or "done", is_limited=False)) == "done"
