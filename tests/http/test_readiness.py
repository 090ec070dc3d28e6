"""GET /readyz tests a write of the database, now and then, and says why it fails."""

import threading
import time

import pytest
import sqlalchemy as sa

from evenmatch.http.readiness import TEST_EVERY, Readiness
from evenmatch.ledger import database_check, secret_rows

pytestmark = pytest.mark.both_databases


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def seconds(site):
    """The clock of the tests, as a list of one number."""
    now = [100.0]
    site.readiness = Readiness(site.service, lambda: now[0], latest=0.3)
    site.kernels.ready.set()
    return now


def refuse_writes(service):
    """Make the database read-only, as a standby is. Returns what undoes it."""
    database = service.database
    if database.url.get_backend_name() == "sqlite":

        def read_only(connection, *_):
            connection.execute("PRAGMA query_only = 1")

        sa.event.listen(database._engine, "checkout", read_only)

        def undo():
            sa.event.remove(database._engine, "checkout", read_only)
            database._engine.dispose()

        return undo

    engine = sa.create_engine(database.url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:  # the error of a server without a primary
        connection.exec_driver_sql(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
            "'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006'; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION refuse()"
        )

    def undo_trigger():
        with engine.connect() as connection:
            connection.exec_driver_sql("DROP FUNCTION refuse() CASCADE")

    return undo_trigger


def wait_for(client, status):
    """The first answer with this status: a test that takes longer than a second is answered by its former result."""
    deadline = time.monotonic() + 20
    while (told := client.get("/readyz")).status_code != status:
        assert time.monotonic() < deadline, told.text
        time.sleep(0.05)
    return told


def test_a_database_that_takes_no_writes_is_not_ready_and_is_again_when_it_does(client, site, seconds):
    wait_for(client, 200)  # a busy server may answer the first test late
    undo = refuse_writes(site.service)
    assert client.get("/readyz").status_code == 200  # the last test was just now
    seconds[0] += TEST_EVERY
    told = wait_for(client, 503)
    assert told.json()["detail"].startswith("the database accepts no writes: the ")
    assert "evenmatch.db" not in told.text
    assert "postgres" not in told.text
    undo()
    assert client.get("/readyz").status_code == 503
    seconds[0] += TEST_EVERY
    wait_for(client, 200)


def test_a_disk_with_less_than_a_megabyte_is_full(client, site, seconds, monkeypatch):
    if site.service.database.url.get_backend_name() != "sqlite":
        pytest.skip("the disk of a server is not seen from here")
    monkeypatch.setattr(database_check, "LEAST_FREE", 2**62)
    told = client.get("/readyz")
    assert (told.status_code, told.json()["detail"]) == (503, "the database accepts no writes: the disk is full")


def test_many_requests_share_one_write_and_one_look_at_the_secret(client, site, seconds, monkeypatch):
    calls, read = [], secret_rows.read_check
    monkeypatch.setattr("evenmatch.http.readiness.write_test", lambda *_: calls.append("write"))
    monkeypatch.setattr(secret_rows, "read_check", lambda store: calls.append("secret") or read(store))
    for _ in range(20):
        assert client.get("/readyz").status_code == 200
    assert calls == ["write", "secret"]


def test_a_process_with_another_secret_is_not_ready(client, site, seconds, monkeypatch):
    monkeypatch.setattr("evenmatch.http.readiness.is_current", lambda _: False)
    told = client.get("/readyz")
    assert (told.status_code, told.json()["detail"]) == (
        503,
        "this process has another master secret than the database",
    )
    monkeypatch.undo()
    seconds[0] += TEST_EVERY
    wait_for(client, 200)


def test_a_write_that_does_not_end_is_answered_meanwhile_and_fails_later(client, site, seconds, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr("evenmatch.http.readiness.write_test", lambda *_: ended.wait(10))
    told = client.get("/readyz")
    assert (told.status_code, told.json()["detail"]) == (
        503,
        "the database accepts no writes: it has not completed one within 0.3 s",
    )
    ended.set()
    deadline = time.monotonic() + 10
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline
        seconds[0] += TEST_EVERY


def test_the_head_of_a_ladder_is_read_by_who_may_read_it(client, reader, admin):
    assert admin.post("/v1/ladders", json={"name": "arena", "system": "elo"}).status_code == 201
    told = reader.get("/v1/ladders/arena/head").json()
    assert (told["ladder"], told["position"], len(told["seal"])) == ("arena", 1, 32)
    assert told["time"].endswith("Z")
    assert reader.get("/v1/ladders/nowhere/head").status_code == 404
    assert client.get("/v1/ladders/arena/head").status_code == 401
