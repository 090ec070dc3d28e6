"""A process that is frozen inside a transaction does not stop the others for longer than the server's time limits."""

import os
import signal
import threading
import time

import pytest

from crash.child_tasks import record_around_a_freeze
from crash.children import Child
from crash.numbered_matches import LADDER, numbered_match
from crash.plain_sql import check_events
from databases import copy_on_server
from evenmatch import rules
from evenmatch.errors import StoreError, TransactionTimeoutError
from evenmatch.ledger import ladder_rows
from evenmatch.ledger.database import IDLE_LIMIT, Database
from evenmatch.operations.service import Service
from evenmatch.recording import recorder
from evenmatch.recording.report_batch import ReportBatch
from postgres import Postgres

# Seconds within which the others go on: a game server that has waited for 3 s asks another process, which may be the
# frozen one, and waits there for 3 s more.
RECOVERY = 2.75


@pytest.fixture
def url(request: pytest.FixtureRequest, postgres: Postgres) -> str:
    """SQLite has no server that could end a frozen writer's transaction; its time limits are tested over HTTP."""
    return copy_on_server(request.config.stash, postgres)


@pytest.mark.parametrize("writes", [False, True], ids=["locked", "written"])
def test_others_record_before_game_servers_lose_patience_while_a_writer_is_frozen(url: str, writes: bool):
    with Service.open(url) as service:
        service.create_ladder(LADDER, "elo", rules("elo"))
        service.record(numbered_match(3))  # with kernels loaded and connections open
        with Child(record_around_a_freeze, url, writes) as child:
            assert child.next() == "locked"
            os.kill(child.process.pid, signal.SIGSTOP)
            try:
                begin = time.monotonic()
                service.record(numbered_match(2))
                took = time.monotonic() - begin
            finally:
                os.kill(child.process.pid, signal.SIGCONT)
            assert IDLE_LIMIT - 0.5 < took < RECOVERY  # it did wait for the frozen one, and was let through
            child.pipe.send("go on")
            assert "sent again" in str(child.next())  # the one that wakes up notices
            assert child.next() == "recorded"
        assert check_events(url, {"m0", "m1", "m2", "m3"}).count("match-recorded") == 4
        assert service.verify(LADDER).is_equal


@pytest.mark.parametrize(
    "take",
    [lambda store: store.lock(LADDER), lambda store: ladder_rows.lock_changes(store, 1)],
    ids=["ladder", "changes"],
)
def test_transactions_of_a_frozen_process_that_wait_for_one_lock_do_not_add_up(url, take):
    """Each gets the lock when the server ends the one before, and does no more than that: its process is frozen."""
    with Service.open(url) as service:
        service.create_ladder(LADDER, "elo", rules("elo"))
        assert service.record(numbered_match(3)).rated
        with service.database.write() as store:
            ladder_rows.lock_changes(store, 1)  # its row is there from now on
        over, ended = threading.Event(), []

        def wait_for_the_lock(begun):
            try:
                with service.database.write() as store:
                    begun.set()
                    take(store)
                    over.wait(60)
                    store.heads()
            except StoreError as error:
                ended.append(str(error))

        threads = []
        begin = time.monotonic()
        for _ in range(3):
            begun = threading.Event()
            threads.append(threading.Thread(target=wait_for_the_lock, args=(begun,), daemon=True))
            threads[-1].start()
            assert begun.wait(10)
            time.sleep(0.2)  # until it has the lock, or waits for it
        with service.database.write() as store:
            take(store)
            took = time.monotonic() - begin
        time.sleep(IDLE_LIMIT)  # until those that got the lock after this one, in any order, are ended, too
        over.set()
        for thread in threads:
            thread.join(30)
        assert IDLE_LIMIT - 0.5 < took < RECOVERY
        assert len(ended) == 3
        assert all("sent again" in text for text in ended), ended


def test_a_match_is_recorded_although_its_process_stood_still_once(url: str, monkeypatch):
    """As on a machine that is too busy: the server ends the transaction, in which nothing was saved."""
    stalls, look_up = [], recorder.look_up

    def look_up_late(*arguments):
        if stalls:
            time.sleep(stalls.pop())
        return look_up(*arguments)

    monkeypatch.setattr(recorder, "look_up", look_up_late)
    with Service.open(url) as service:
        service.create_ladder(LADDER, "elo", rules("elo"))
        stalls[:] = [IDLE_LIMIT + 0.5]
        assert service.record(numbered_match(0)).rated
        stalls[:] = [IDLE_LIMIT + 0.5] * 2
        with pytest.raises(TransactionTimeoutError, match="kept it waiting for too long; nothing in it was saved"):
            service.record(numbered_match(1))
        assert service.record(numbered_match(2)).rated
        assert check_events(url, {"m0", "m2"}).count("match-recorded") == 2
        assert service.record(numbered_match(1)).rated
        assert service.verify(LADDER).is_equal


def test_matches_that_joined_others_under_the_lock_are_recorded_once_when_the_process_stood_still(
    url: str, monkeypatch
):
    look_up, stalls = recorder.look_up, [IDLE_LIMIT + 0.5]

    def look_up_late(*arguments):
        if stalls:
            time.sleep(stalls.pop())
        return look_up(*arguments)

    monkeypatch.setattr(recorder, "look_up", look_up_late)
    late = [ReportBatch.of([numbered_match(1)], [True])]
    with Service.open(url) as service:
        service.create_ladder(LADDER, "elo", rules("elo"))
        prepared = service.recorder.prepare(LADDER, ReportBatch.of([numbered_match(0)], [True]))
        recorded = service.recorder.write(prepared, gather=lambda _: late)
        assert [outcome.match_id for outcome in recorded.outcomes] == ["m0", "m1"]
        assert stalls == []
        assert check_events(url, {"m0", "m1"}).count("match-recorded") == 2


def stand_still(database: Database) -> None:
    with database.write() as store:
        store.heads()
        time.sleep(IDLE_LIMIT + 0.5)
        store.heads()


def fail(database: Database) -> None:
    with database.write() as store:
        store.run("UPDATE nothing SET a = 1")


def test_an_error_after_a_timed_out_transaction_keeps_its_own_kind(url: str):
    """Also if the caller is still handling the first one, from which the second then seems to come."""
    with Service.open(url) as service:
        try:
            stand_still(service.database)
        except TransactionTimeoutError:
            with pytest.raises(StoreError, match="does not exist") as caught:
                fail(service.database)
    assert not isinstance(caught.value, TransactionTimeoutError)


@pytest.mark.parametrize(("yielding", "players", "seconds"), [(False, 2, 1.5), (False, 100_000, 6.5), (True, 2, 3.0)])
def test_a_large_batch_and_a_process_of_lower_priority_may_compute_for_longer(
    url: str, yielding: bool, players: int, seconds: float
):
    with Service(Database.open(url, yielding=yielding), time.time_ns) as service:
        service.create_ladder(LADDER, "elo", rules("elo"))
        with service.database.write_ladder(LADDER, players) as (store, _):
            rows = store.all("SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'")
        assert 0.001 * int(str(rows[0][0])) == pytest.approx(seconds, abs=0.2)  # less the time it waited for the lock
