"""A whole database moves into another one: every table arrives, and processes that use the old one refuse writes."""

import json
from contextlib import contextmanager

import pytest

from asgi_client import Asking
from evenmatch import rules
from evenmatch.errors import MoveError
from evenmatch.http.app import application
from evenmatch.ledger.schema import METADATA
from evenmatch.operations import move
from evenmatch.operations.service import Service
from full_database import empty_tables, fill
from ledger.sample_matches import duel
from run_command import run_command

pytestmark = pytest.mark.slow

NUMBERED = ("player", "ladder", "audit", "webhook", "delivery")  # tables whose rows the database numbers
HOOK = {"url": "https://93.184.216.34/hook", "events": ["match.rated"]}


@pytest.fixture
def database_url(either_database):
    """The source, of each kind."""
    return either_database


@pytest.fixture(params=["sqlite", "postgresql"])
def target_url(request, tmp_path):
    """A database with nothing in it, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "moved.db")
    return request.getfixturevalue("postgres").fresh_database()


@pytest.fixture
def asking(site):
    """Asks the application. Its event loop is not watched: what fills the database, and the move, run beside it."""
    site.kernels.ready.set()
    made = Asking(application(site))
    yield made
    made.close()


@pytest.fixture
def key(site, asking, monkeypatch):
    """The text of a key of the source, in which every table has rows then."""
    return fill(site, asking, monkeypatch)


def test_a_full_database_arrives_whole_and_the_old_one_refuses_writes(key, database_url, target_url, service, asking):
    assert empty_tables(service.database) == set()
    with service.database.write() as store:  # SQLite stores no sign of a zero
        store.run("UPDATE penalty SET strikes = CAST('-0' AS DOUBLE PRECISION)")
        store.run("DELETE FROM delivery WHERE delivery > 1")
    kept = rows_of(service.database)
    ended = run_command("move", "--from", database_url, "--to", target_url, "--json")
    assert ended.code == 0, ended.err
    moved = json.loads(ended.out)
    assert {table["table"]: table["rows"] for table in moved["tables"]} == {
        table: len(rows) for table, rows in kept.items()
    }
    assert {ladder["ladder"] for ladder in moved["ladders"]} == {"alpha", "zeta-hidden"}
    check_refusals(service, asking, {"Authorization": f"Bearer {key}"})
    assert rows_of(service.database) == kept
    with Service.open(target_url) as there:
        assert rows_of(there.database) == kept
        assert all(there.verify(ladder.name).is_equal for ladder in there.ladders())
        there.record(duel(200, "ann", "newcomer", "alpha"))
        there.create_ladder("later", "elo", rules("elo"))
        later = rows_of(there.database)
        numbers = {name: [row[0] for row in later[name]][: len(kept[name])] for name in NUMBERED}
        assert numbers == {name: [row[0] for row in kept[name]] for name in NUMBERED}


def test_everything_that_is_written_while_a_database_is_moved_arrives(
    site, asking, monkeypatch, database_url, target_url
):
    """Every table is filled after the last row was copied, while the rows are compared."""

    @contextmanager
    def reporting(title, _):
        if title.startswith("comparing"):
            fill(site, asking, monkeypatch)
            with site.service.database.write() as store:
                store.run("DELETE FROM delivery WHERE delivery > 1")
                store.run("DELETE FROM counter WHERE name = 'deleted'")
                store.run("UPDATE counter SET name = 'after' WHERE name = 'before'")  # a key, which no use case does
        yield lambda _: None

    with site.service.database.write() as store:
        store.run("INSERT INTO counter (name, value) VALUES ('before', 1), ('deleted', 1)")
    moved = move.move(database_url, target_url, reporting)
    assert empty_tables(site.service.database) == set()
    assert moved.changed > 100
    kept = rows_of(site.service.database)
    with Service.open(target_url) as there:
        assert rows_of(there.database) == kept
        assert all(there.verify(ladder.name).is_equal for ladder in there.ladders())


def check_refusals(service, asking, headers):
    """What a process does that still has the old database open: it reads, and refuses each write."""
    with pytest.raises(MoveError, match="the database was moved; serve the new one"):
        service.record(duel(200, "ann", "newcomer", "alpha"))
    refused = asking.post("/v1/ladders", json={"name": "another", "system": "elo"}, headers=headers)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert refused.json()["type"] == "urn:evenmatch:problem:moving"
    assert "moved.db" not in refused.text
    assert asking.get("/v1/ladders", headers=headers).status_code == 200
    ready = asking.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["detail"] == "the database takes no writes: the database was moved"


def rows_of(database):
    """Every row of every table, in the order of the primary key."""
    rows = {}
    with database.read() as store:
        for name, table in METADATA.tables.items():
            keys = ", ".join(column.name for column in table.primary_key)
            columns = ", ".join(column.name for column in table.columns)
            rows[name] = store.all(f"SELECT {columns} FROM {name} ORDER BY {keys}")
    return rows
