"""PostgreSQL is killed, or cuts connections, in the middle: a clear error, and the same service goes on by itself."""

import threading
import time
from collections.abc import Iterator

import pytest

from crash.child_tasks import SYSTEM, correct_match
from crash.numbered_matches import LADDER, numbered_match, numbered_matches
from crash.plain_sql import check_events, connect, select_rows
from evenmatch import rules
from evenmatch.errors import StoreError
from evenmatch.operations.service import Service
from evenmatch.recording.receipts import MatchReceipt
from postgres import Postgres

PATIENCE = 60.0


@pytest.fixture(scope="module")
def durable() -> Iterator[Postgres]:
    """A server of these tests' own, that flushes to the disk."""
    with Postgres(durable=True) as server:
        yield server


@pytest.fixture
def service(durable: Postgres) -> Iterator[Service]:
    with Service.open(durable.fresh_database()) as opened:
        opened.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        yield opened


def url_with_password(service: Service) -> str:
    return service.database.url.render_as_string(hide_password=False)


class Senders:
    """Threads that report matches one after the other, each again until it is acknowledged."""

    def __init__(self, service: Service, count: int = 3) -> None:
        self.receipts: dict[int, MatchReceipt] = {}
        self.refusals: list[str] = []
        self.faults: list[BaseException] = []
        self._service, self._stop = service, threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(at * 10_000,), daemon=True) for at in range(count)]

    def __enter__(self) -> "Senders":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a sender hangs"

    def _send(self, number: int) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self.receipts[number] = self._service.record(numbered_match(number))
                    number += 1
                except StoreError as error:
                    self.refusals.append(str(error))
                    time.sleep(0.05)
        except BaseException as error:
            self.faults.append(error)

    def check(self) -> None:
        """Nobody failed, and nobody was refused for another reason than the connection."""
        assert not self.faults, self.faults
        strange = [said for said in self.refusals if "the connection was lost or refused" not in said]
        assert not strange, strange[:3]

    def wait_for(self, count: int) -> None:
        """Until so many more matches were acknowledged."""
        enough, deadline = len(self.receipts) + count, time.monotonic() + PATIENCE
        while len(self.receipts) < enough:
            self.check()
            assert time.monotonic() < deadline, f"no match went through: {self.refusals[-3:]}"
            time.sleep(0.002)

    def wait_for_refusals(self, count: int) -> None:
        enough, deadline = len(self.refusals) + count, time.monotonic() + PATIENCE
        while len(self.refusals) < enough:
            self.check()
            assert time.monotonic() < deadline, "nobody was refused while the server was down"
            time.sleep(0.002)


def check_recovered(service: Service, senders: Senders) -> None:
    senders.check()
    check_events(url_with_password(service), {f"m{number}" for number in senders.receipts})
    assert service.verify(LADDER).is_equal
    numbers = sorted(senders.receipts)[::7]
    again = service.record_many(LADDER, [numbered_match(number) for number in numbers])
    assert again == [senders.receipts[number] for number in numbers]


def test_a_killed_server_loses_nothing_and_the_service_goes_on(service: Service, durable: Postgres):
    with Senders(service) as senders:
        for _ in range(2):
            senders.wait_for(20)
            durable.crash()
            senders.wait_for_refusals(5)
            with pytest.raises(StoreError, match="the connection was lost or refused"):
                service.view(LADDER)
            durable.start()
            senders.wait_for(5)
    assert "can be sent again" in senders.refusals[0]
    check_recovered(service, senders)


def cut_connections(service: Service) -> int:
    """End every other connection to the database, and wait until it has ended; how many there were."""
    sql = (
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    return len(select_rows(url_with_password(service), sql))


def test_connections_that_are_cut_lose_nothing(service: Service):
    with Senders(service) as senders:
        cut = 0
        while cut < 30:  # now and then there is none to cut, since the last one has just been given up
            senders.wait_for(1 + cut % 3)
            cut += cut_connections(service)
        senders.wait_for(5)  # so that a sender has met the last cut, and not the check below
    assert senders.refusals
    check_recovered(service, senders)


def test_a_rebuild_whose_connection_is_cut_is_finished_by_the_next(service: Service):
    service.record_many(LADDER, numbered_matches(0, 300))
    before = service.verify(LADDER)
    assert before.is_equal

    def cut(_: int) -> None:
        cut_connections(service)

    with pytest.raises(StoreError, match="the connection was lost or refused"):
        service.rebuild(LADDER, whole=True, progress=cut)
    assert service.verify(LADDER) == before
    with connect(url_with_password(service)) as connection:  # as a kill between a correction and its rebuild leaves it
        connection.exec_driver_sql("UPDATE ladder SET due = 2")
    assert service.verify(LADDER).differences == ()
    made = service.rebuild(LADDER)
    assert made is not None
    assert service.verify(LADDER).is_equal
    assert correct_match(service, "m7") == "match-voided"


def test_a_server_that_is_not_there_is_named(durable: Postgres):
    missing = durable.url("no_such_database")
    with pytest.raises(StoreError, match="no_such_database"):
        Service.open(missing)
