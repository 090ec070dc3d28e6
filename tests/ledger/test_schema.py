"""The tables: as the migrations make them, strict, with names; and databases that are not ours."""

import re
import sqlite3

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from evenmatch import rules
from evenmatch.errors import StoreError, UsageError
from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.database import Database
from evenmatch.ledger.database_url import parse_url
from evenmatch.ledger.schema import METADATA
from evenmatch.operations.service import Service
from ledger.sample_matches import duel, ratings

pytestmark = pytest.mark.both_databases


@pytest.fixture
def engine(service):
    made = sa.create_engine(service.database.url)
    yield made
    made.dispose()


PARTITION = re.compile(r"(event|appearance|state|player_offset|journal|checkpoint)_[0-7]")  # see test_partitions.py
ACROSS = {"audit", "seat", "webhook"}  # of all ladders: a player has one seat, whatever the ladder


def test_the_migrations_make_exactly_the_schema(engine):
    with engine.connect() as connection:
        opts = {"compare_type": True, "include_name": lambda name, *_: PARTITION.fullmatch(name or "") is None}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, METADATA) == []


def test_every_key_and_index_has_the_name_of_the_schema(engine):
    found = sa.inspect(engine)
    for name, table in METADATA.tables.items():
        assert found.get_pk_constraint(name)["name"] == f"pk_{name}"
        assert found.get_pk_constraint(name)["constrained_columns"] == [one.name for one in table.primary_key]
        wanted = {one.name for one in table.constraints if isinstance(one, sa.UniqueConstraint)}
        assert {one["name"] for one in found.get_unique_constraints(name)} == wanted
        listed = {one["name"] for one in found.get_indexes(name) if not one.get("duplicates_constraint")}
        assert listed == {one.name for one in table.indexes}
        if "ladder" in table.columns and name not in {"ladder", *ACROSS}:
            assert next(iter(table.primary_key)).name == "ladder"


def test_the_tables_of_sqlite_are_strict(tmp_path):
    Service.open(str(tmp_path / "a.db")).close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        listed = dict(connection.execute("SELECT name, strict FROM pragma_table_list WHERE type = 'table'"))
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert {name for name in METADATA.tables if not listed[name]} == set()
    connection.close()


def test_text_sorts_by_its_letters_numbers_on_both(service, ladder):
    names = ["B", "a", "Z", "é", "_", "b"]
    for at, name in enumerate(names):
        service.record(duel(at, name, "x"))
    with service.database.read() as store:
        told = store.connection.exec_driver_sql("SELECT name FROM name ORDER BY name").scalars().all()
    assert told == sorted([*names, "x"])


def test_a_database_is_found_as_it_was_left(store_url, clock):
    with Service.open(store_url, clock) as first:
        first.create_ladder("default", "elo", rules("elo"))
        first.record(duel(1, "ann", "bob"))
    with Service.open(store_url, clock) as again:
        assert ratings(again) == {"ann": 1516.0, "bob": 1484.0}
        assert again.record(duel(1, "ann", "bob")).position == 2


def test_a_database_of_a_newer_version_is_refused_and_left_alone(store_url):
    run_sql(store_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"newer evenmatch \(schema 9999\)"):
        Service.open(store_url)


def test_a_database_of_something_else_is_refused_and_left_alone(store_url):
    engine = sa.create_engine(parse_url(store_url))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE recipes (cake TEXT)")
    with pytest.raises(StoreError, match="recipes"):
        Service.open(store_url)
    assert sa.inspect(engine).get_table_names() == ["recipes"]
    engine.dispose()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "matches.csv"
    file.write_text("match_id,played_at\n" * 500)
    with pytest.raises(StoreError, match=r"matches\.csv.*not a database"):
        Service.open(str(file))
    assert file.read_text() == "match_id,played_at\n" * 500


# what was given, what the message says
NAMES = {
    "": "empty",
    "no/such/folder/a.db": "folder",
    "mysql://u:secret@h/d": "is not a supported database",
    "sqlite://": "is not a file",
    "sqlite:///:memory:": "is not a file",
    "http://[": "is not a database|is not a supported database",
}


@pytest.mark.parametrize(("name", "said"), NAMES.items(), ids=NAMES)
def test_an_invalid_database_url_is_reported_without_its_password(name, said):
    with pytest.raises(UsageError, match=said) as told:
        Database.open(name)
    assert "secret" not in str(told.value)


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path):
    with pytest.raises(StoreError) as told:
        Database.open(f"postgresql://me:secret@/d?host={tmp_path}")
    assert "secret" not in str(told.value)


def run_sql(url, statement):
    Service.open(url).close()
    engine = sa.create_engine(parse_url(url))
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
