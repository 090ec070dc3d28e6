"""Statements about many rows at once, alike on both databases."""

import threading
import time

import pytest

from evenmatch.ledger import live_schema, player_rows
from evenmatch.ledger.postgres_store import AT_ONCE
from evenmatch.ledger.store import NAMES
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import Seat

pytestmark = pytest.mark.both_databases

HERE, ELSEWHERE = 1, 2  # ladders
ODD = "m'7 ? %s {} \\ 試合"  # a text with everything that a statement may trip over


@pytest.fixture
def store(service):
    with service.database.write() as opened:
        yield opened


def all_seats(store):
    return {row[0]: Seat(*row[1:]) for row in store.all("SELECT player, ladder, ticket, match_id FROM seat")}


def test_many_rows_are_updated_by_their_keys(store):
    count = 2 * AT_ONCE + 3
    queue_sql.insert_missing_seats(store, {player: Seat(HERE, player + 7, None) for player in range(1, count + 1)})
    rows = [(player, HERE, f"{ODD}{player}") for player in range(2, count + 1, 2)]
    store.update(live_schema.seat, ("player", "ladder"), ("match_id",), rows)
    assert all_seats(store) == {
        player: Seat(HERE, player + 7, None if player % 2 else f"{ODD}{player}") for player in range(1, count + 1)
    }


def test_an_update_sets_several_columns_also_to_null(store):
    queue_sql.insert_missing_seats(store, {1: Seat(HERE, 5, "m1"), 2: Seat(HERE, 6, None), 3: Seat(HERE, 7, "m3")})
    store.update(live_schema.seat, ("player",), ("ticket", "match_id"), [(1, 8, None), (2, None, ODD)])
    assert all_seats(store) == {1: Seat(HERE, 8, None), 2: Seat(HERE, None, ODD), 3: Seat(HERE, 7, "m3")}


def test_only_rows_that_have_the_whole_key_are_updated(store):
    queue_sql.insert_missing_seats(store, {1: Seat(HERE, 5, None), 2: Seat(ELSEWHERE, 6, None)})
    queue_sql.set_seat_matches(store, HERE, {1: "m1", 2: "m1", 3: "m1"})
    assert all_seats(store) == {1: Seat(HERE, 5, "m1"), 2: Seat(ELSEWHERE, 6, None)}


def test_no_rows_and_no_values_change_nothing(store):
    queue_sql.insert_missing_seats(store, {1: Seat(HERE, 5, None)})
    store.update(live_schema.seat, ("player",), ("match_id",), [])
    store.run_among("DELETE FROM seat WHERE ladder = ? AND player IN ({})", (HERE,), [])
    with store.together(0):
        queue_sql.set_seat_matches(store, HERE, {})
        queue_sql.delete_seats(store, HERE, [])
    assert all_seats(store) == {1: Seat(HERE, 5, None)}


def test_a_statement_for_many_values_leaves_the_others(store):
    queue_sql.insert_missing_seats(store, {player: Seat(HERE, player, f"{ODD}{player}") for player in range(1, 201)})
    store.run_among("DELETE FROM seat WHERE ladder = ? AND player IN ({})", (HERE,), list(range(1, 101)))
    store.run_among("DELETE FROM seat WHERE ladder = ? AND player IN ({})", (ELSEWHERE,), list(range(101, 201)))
    store.run_among("UPDATE seat SET ticket = ? WHERE match_id IN ({})", (9,), [f"{ODD}101", f"{ODD}7", "m"])
    assert all_seats(store) == {
        player: Seat(HERE, 9 if player == 101 else player, f"{ODD}{player}") for player in range(101, 201)
    }


def test_writes_that_are_collected_see_earlier_ones_to_their_table(store):
    queue_sql.insert_missing_seats(store, {player: Seat(HERE, player, None) for player in range(1, 5)})
    with store.together(0):
        queue_sql.delete_seats(store, HERE, {1, 2})
        queue_sql.set_seat_matches(store, HERE, {2: "m2", 3: "m3"})
        queue_sql.move_seats(store, [3, 4], HERE, ELSEWHERE, 11)
        queue_sql.set_seat_matches(store, HERE, {4: "m4"})
    assert all_seats(store) == {3: Seat(ELSEWHERE, 11, "m3"), 4: Seat(ELSEWHERE, 11, None)}


def has_server(service):
    return not service.database.is_sqlite


@pytest.mark.parametrize("share_names", [False, True])
def test_a_transaction_that_shares_names_keeps_them_from_being_changed(service, share_names):
    if not has_server(service):
        pytest.skip("SQLite has one writer at a time")
    with service.database.write(share_names=share_names), service.database.write() as other:
        assert other.all("SELECT pg_try_advisory_xact_lock(?::int8)", NAMES) == [(not share_names,)]


def test_a_plan_made_while_a_table_is_empty_does_not_read_all_of_it_later(service):
    if not has_server(service):
        pytest.skip("SQLite prefers the key also in an empty table")
    with service.database.write() as store:
        store.run("SET LOCAL plan_cache_mode = force_generic_plan")
        store.run(
            "PREPARE moved (int8[], int8[], text[]) AS UPDATE ticket SET state = new.state "
            "FROM unnest($1, $2, $3) AS new (ladder, ticket, state) "
            "WHERE ticket.ladder = new.ladder AND ticket.ticket = new.ticket"
        )
        plan = "\n".join(row[0] for row in store.all("EXPLAIN EXECUTE moved ('{1}', '{1}', '{gone}')"))
        store.run("DEALLOCATE moved")
    assert "Seq Scan" not in plan
    assert "pk_ticket" in plan


def waits_for_a_writer(service):
    """Whether a transaction of the server waits for another one; of SQLite, whose writers take turns, it is assumed."""
    if not has_server(service):
        return True
    with service.database.read() as store:
        return bool(store.all("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' LIMIT 1"))


@pytest.mark.parametrize("present", [False, True])
def test_two_writers_create_one_player_each_of_a_name(service, present):
    found = {}

    def second():
        with service.database.write() as store:
            found["second"] = player_rows.admit(store, ["cid", "bob", "ann", "dan"], present=present)

    with service.database.write() as store:
        found["known"] = player_rows.admit(store, ["dan"], present=present)
    other = threading.Thread(target=second, daemon=True)
    with service.database.write() as store:
        found["first"] = player_rows.admit(store, ["bob", "ann"], present=present)
        other.start()
        until = time.monotonic() + 10
        while not waits_for_a_writer(service):
            assert time.monotonic() < until
            time.sleep(0.01)
    other.join(20)
    assert not other.is_alive()

    ids, names = found["second"]
    assert ids.keys() == {"ann", "bob", "cid", "dan"}
    assert len(set(ids.values())) == 4
    assert ids.items() >= found["first"][0].items() | found["known"][0].items()
    assert names == {player: name for name, player in ids.items()}
    with service.database.read() as store:
        assert dict(store.all("SELECT name, player FROM player")) == dict(store.all("SELECT name, player FROM name"))
        assert dict(store.all("SELECT name, player FROM player")) == ids
