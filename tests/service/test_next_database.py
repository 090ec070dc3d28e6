"""A process that is told the next database goes on with it when the move has ended, and with no other one."""

import pytest

from databases import made_url  # noqa: F401
from evenmatch import rules
from evenmatch.cli.shared.output import working
from evenmatch.errors import MoveError, SecretError, StoreError
from evenmatch.ledger.move_marks import MoveMark, MoveState, finish_target, mark_target
from evenmatch.ledger.secrets import VARIABLE
from evenmatch.operations import master_secret
from evenmatch.operations.move import move
from evenmatch.operations.next_database import NextDatabase
from evenmatch.operations.service import Service
from ledger.sample_matches import duel
from postgres import postgres  # noqa: F401


@pytest.fixture
def service(tmp_path):
    """A served database with a match."""
    with Service.open(str(tmp_path / "old.db")) as made:
        made.create_ladder("default", "elo", rules("elo"))
        made.record(duel(1, "ann", "bob"))
        yield made


@pytest.fixture
def next_database(service, made_url):  # noqa: F811
    made = NextDatabase(service.database, made_url)
    yield made
    made.close()


def test_the_next_database_is_opened_when_the_move_has_ended(service, next_database, made_url):  # noqa: F811
    assert next_database.open() is None
    assert not next_database.is_moving
    seen, mark = [], MoveMark("id", MoveState.UNFINISHED, "old.db", "run")

    def reporting(what, total):
        seen.append((next_database.open(), next_database.is_moving))
        return working(what, total)

    move(service.database.address, made_url, reporting)
    assert set(seen) == {(None, True)}
    with next_database.open() as moved:
        moved.record(duel(2, "ann", "bob"))
        assert [head.position for head in moved_heads(moved)] == [3]  # its rules, two matches
        with moved.database.write() as store:  # as between the last two steps of a move
            mark_target(store, mark)
        assert next_database.open() is None
        with moved.database.write() as store:
            finish_target(store, mark)


def moved_heads(service):
    with service.database.read() as store:
        return store.heads()


def test_another_database_is_refused(service, next_database, made_url, tmp_path):  # noqa: F811
    move(service.database.address, str(tmp_path / "elsewhere.db"), working)
    with pytest.raises(MoveError, match=r"is not the database to which .*old.db was moved"):
        next_database.open()
    with Service.open(made_url) as other:
        other.create_ladder("default", "elo", rules("elo"))
        other.record(duel(1, "ann", "carl"))
    with pytest.raises(MoveError, match=r"is not the database to which .*old.db was moved"):
        next_database.open()


def test_a_process_without_the_master_secret_does_not_go_on(service, next_database, made_url, monkeypatch):  # noqa: F811
    master_secret.confirm(service.database)
    move(service.database.address, made_url, working)
    monkeypatch.setenv(VARIABLE, "another master secret than that of the old database")
    with pytest.raises(SecretError):
        next_database.open()


def test_a_server_that_cannot_be_reached_is_named_at_once(service):
    with pytest.raises(StoreError, match="connection"):
        NextDatabase(service.database, "postgresql://nobody@127.0.0.1:1/none")
