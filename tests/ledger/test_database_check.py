"""The database's own check finds damaged pages, and indexes that do not have all rows."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evenmatch.durations import DAY
from evenmatch.errors import DamageError
from evenmatch.ledger.database_check import NO_AMCHECK, check_database
from evenmatch.operations.open_database import DailyCheck
from evenmatch.operations.service import Service
from evenmatch.queues.leases import Leases
from ledger.sample_matches import duel

pytestmark = pytest.mark.both_databases


@pytest.fixture
def filled(service, ladder):
    for number in range(1, 6):
        service.record(duel(number, "a", "b"))
    return service


def damage(url):
    """Overwrite the beginning of the page on which SQLite keeps the index of names by player."""
    with closing(sqlite3.connect(url)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'ix_name_player'"
        page = connection.execute(sql).fetchone()[0]
    with Path(url).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 64)


def test_a_whole_database_has_no_findings(filled):
    is_sqlite = filled.database.url.get_backend_name() == "sqlite"
    assert check_database(filled.database) == ((), () if is_sqlite else (NO_AMCHECK,))
    assert check_database(filled.database, quick=True).damage == ()


def test_a_damaged_page_of_sqlite_is_found_by_both_checks(store_file):
    damage(store_file)
    with Service.open(store_file) as service:
        for quick in (True, False):
            assert check_database(service.database, quick=quick).damage


def test_a_ladder_without_its_live_generation_is_not_unknown(filled):
    with filled.database.write() as store:
        store.run("DELETE FROM generation")
    with pytest.raises(DamageError, match="the live generation of ladder 'default' is missing"):
        filled.ladder("default")
    (finding,) = filled.verify("default").damage
    assert finding.startswith("the live generation of ladder 'default' is missing")


CHANGES = {
    "DELETE FROM ladder": "ladder default has events but is not in the table of ladders",
    "UPDATE ladder SET name = 'other'": "ladder other was created as default; the name of a ladder cannot change",
    "UPDATE ladder SET generation = 99": "generation 99 of ladder default, which is the live one, is missing",
    "DELETE FROM generation": "generation 1 of ladder default, which is the live one, is missing",
    "DROP TABLE webhook": "table webhook is missing",
    "DROP INDEX ix_player_folded": "index ix_player_folded of table player is missing",
    "ALTER TABLE player DROP COLUMN erased_at": "column erased_at of table player is missing",
    "ALTER TABLE player ADD COLUMN more INTEGER": "table player has a column more that evenmatch did not create",
}


@pytest.mark.parametrize("statement", CHANGES)
def test_a_changed_schema_and_a_lost_or_renamed_ladder_are_found(filled, statement):
    with filled.database.write() as store:
        store.run(statement)
    assert check_database(filled.database).damage == (f"{filled.database.shown}: {CHANGES[statement]}",)


def test_a_trigger_that_evenmatch_did_not_make_is_found(filled):
    with filled.database.write() as store:
        if filled.database.url.get_backend_name() == "sqlite":
            store.run("CREATE TRIGGER evil AFTER INSERT ON event BEGIN UPDATE state SET rating = 9999; END")
        else:
            store.run("CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
            store.run("CREATE TRIGGER evil BEFORE INSERT ON player FOR EACH ROW EXECUTE FUNCTION evil()")
    (line,) = check_database(filled.database).damage
    assert ": trigger evil of table " in line


@pytest.fixture
def store_file(tmp_path):
    path = str(tmp_path / "evenmatch.db")
    Service.open(path).close()
    return path


def test_postgresql_names_an_index_that_lacks_a_row(postgres):
    url = postgres.fresh_database()
    with Service.open(url) as service:
        with service.database.write() as store:
            known = store.all("SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'")
            if not known:
                pytest.skip("this server comes without amcheck")
            store.connection.exec_driver_sql("CREATE EXTENSION amcheck")
        assert check_database(service.database) == ((), ())
        switch = "UPDATE pg_index SET indisready = {} WHERE indexrelid = 'ix_name_player'::regclass"
        for statement in (
            switch.format("false"),
            "INSERT INTO name (name, player) VALUES ('a', 1)",
            switch.format("true"),
        ):
            with service.database.write() as store:
                store.connection.exec_driver_sql(statement)
        (line,) = check_database(service.database).damage
        assert line.startswith("index ix_name_player of table name: ")


def test_a_schema_that_is_no_utf_8_is_an_error_that_says_so(store_file):
    path = Path(store_file)
    pages = path.read_bytes()
    path.write_bytes(pages.replace(b"CREATE TABLE final", b"CREATE \xff\xfeBLE final", 1))
    with pytest.raises(DamageError, match="malformed database schema"):
        Service.open(store_file)


def test_a_served_file_is_checked_once_a_day_by_one_process(store_file, clock, caplog):
    with Service.open(store_file, clock) as service:
        leases = [Leases(service.database, owner, wall=clock) for owner in ("one", "two")]
        one, two = (DailyCheck(service.database, lease) for lease in leases)
        assert one.step(clock.now) == ((), ())
        assert two.step(clock.now) is None
        assert one.step(clock.now + DAY - 1) is None
        assert (one.findings, two.findings) == (0, None)
    damage(store_file)
    with Service.open(store_file, clock) as service, caplog.at_level(logging.ERROR):
        later = DailyCheck(service.database, Leases(service.database, "one", wall=clock))
        assert later.step(clock.now + DAY).damage
        assert later.findings > 0
    assert "the database is damaged; restore a backup" in caplog.text


def test_a_served_postgresql_is_left_to_its_own_tools(postgres, clock):
    with Service.open(postgres.fresh_database(), clock) as service:
        assert DailyCheck(service.database, Leases(service.database, "one", wall=clock)).step(clock.now) is None
