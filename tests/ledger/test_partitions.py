"""Tables partitioned by ladder: each ladder in its own partition, all else as in whole tables."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.ledger import event_rows
from evenmatch.ledger.database_check import NO_AMCHECK, check_database
from evenmatch.operations.copy import copy_database
from evenmatch.operations.service import Service
from evenmatch.recording.recording_sql import look_up
from ledger.sample_matches import duel, team_match

PARTITIONED = ("event", "appearance", "state", "player_offset", "journal", "checkpoint")
NAMES = [f"ladder {number}" for number in range(6)]
COUNT = 8


@pytest.fixture
def url(postgres):
    """A new database."""
    return postgres.fresh_database()


@pytest.fixture
def whole_url(tmp_path):
    """A new SQLite file, which has no partitions."""
    return str(tmp_path / "whole.db")


@contextmanager
def without_progress(*_):
    yield lambda _: None


def execute(url, *statements):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def partitions(service):
    """The number of partitions of each large table."""
    sql = "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = ?::text::regclass"
    with service.database.read() as store:
        return {name: store.all(sql, name)[0][0] for name in PARTITIONED}


def on(ladder, match):
    return replace(match, ladder=ladder)


def fill(service):
    """Matches, corrections and a rebuild on each ladder."""
    for number, name in enumerate(NAMES):
        service.create_ladder(name, "elo", rules("elo"))
        service.record_many(name, [on(name, duel(n, "ann", f"p{n % 5}")) for n in range(1, 20 + number)])
        service.record(on(name, team_match(100, (1, "ann", "bob"), (2, "eve", "joe"))))
        service.correct(name, Void("m3"))
        service.correct(name, Ban("p2"))
        service.rebuild(name, whole=True)


def rows(service, sql):
    with service.database.read() as store:
        return store.all(sql)


def told(service):
    """Everything about ratings that is stored, without what a clock says."""
    states = "SELECT ladder, player, rating, matches, record FROM state JOIN ladder USING (ladder, generation) "
    lines = "SELECT ladder, j.position, LENGTH(lines) FROM journal j JOIN ladder USING (ladder, generation) "
    appearances = "SELECT ladder, player, position FROM appearance "
    return [rows(service, f"{sql}ORDER BY 1, 2, 3") for sql in (states, lines, appearances)]


def test_all_is_rated_as_in_whole_tables_and_each_ladder_is_in_one_partition(url, whole_url, clock):
    with Service.open(url, clock) as parts, Service.open(whole_url, clock) as whole:
        for service in (parts, whole):
            fill(service)
        assert told(parts) == told(whole)
        for table in PARTITIONED:
            places = rows(parts, f"SELECT DISTINCT ladder, tableoid::regclass::text FROM {table}")
            assert len(places) == len({ladder for ladder, _ in places})
            assert places == [] or len({place for _, place in places}) > 1
        assert all(parts.verify(name).is_equal for name in NAMES)


def test_ids_of_a_batch_are_looked_up_without_reading_the_matches_of_a_ladder(url, clock):
    read = "SELECT SUM(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname LIKE 'event%'"
    with Service.open(url, clock) as service:
        service.create_ladder("elo", "elo", rules("elo"))
        matches = [team_match(n, (1, "ann"), (2, f"p{n % 5}"), ladder="elo", at=1) for n in range(1, 2001)]
        service.record_many("elo", matches)
        with service.database.write_ladder("elo", 0) as (store, head):  # the server has not counted its rows yet
            before = store.all(read)[0][0]
            unknown = [f"new{n}" for n in range(500)]
            assert set(event_rows.find_events(store, head, [*unknown, "m7", "m1999"])) == {"m7", "m1999"}
            lookup = look_up(store, head, [*unknown, "m8"], head.position - 3)
            assert (set(lookup.known), len(lookup.later)) == ({"m8"}, 3)
            assert store.all(read)[0][0] - before <= 20


def test_every_large_table_has_eight_partitions_with_room_for_updates_of_states(url):
    with Service.open(url) as service:
        assert partitions(service) == dict.fromkeys(PARTITIONED, COUNT)
        options = rows(service, "SELECT DISTINCT reloptions[1] FROM pg_class WHERE relname ~ '^state_[0-9]+$'")
        assert options == [("fillfactor=70",)]


def test_a_database_is_copied_into_partitions_and_out_of_them(url, whole_url, tmp_path, clock):
    with Service.open(whole_url, clock) as service:
        fill(service)
        before = told(service)
    copy_database(whole_url, url, without_progress)
    back = str(tmp_path / "back.db")
    with Service.open(url, clock) as service:
        assert told(service) == before
        service.record(on(NAMES[5], duel(99, "ann", "new")))
        after = told(service)
    copy_database(url, back, without_progress)
    with Service.open(back, clock) as service:
        assert told(service) == after


def test_the_check_of_the_database_looks_at_the_indexes_of_partitions(url):
    with Service.open(url) as service:
        fill(service)
        if not rows(service, "SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'"):
            assert check_database(service.database) == ((), (NO_AMCHECK,))
            pytest.skip("this server comes without amcheck")
        with service.database.write() as store:
            store.connection.exec_driver_sql("CREATE EXTENSION amcheck")
        assert check_database(service.database) == ((), ())
        index = "(SELECT indexrelid FROM pg_index WHERE indrelid = 'appearance_1'::regclass)"
        switch = f"UPDATE pg_index SET indisready = {{}} WHERE indexrelid = {index}"
        with service.database.write() as store:
            store.connection.exec_driver_sql(switch.format("false"))
        with service.database.write() as store:
            ladder = store.all("SELECT ladder FROM appearance_1 LIMIT 1")[0][0]
            store.connection.exec_driver_sql(f"INSERT INTO appearance_1 VALUES ({ladder}, 999999, 999999)")
        with service.database.write() as store:
            store.connection.exec_driver_sql(switch.format("true"))
        (line,) = check_database(service.database).damage
        assert "of table appearance_1: " in line
