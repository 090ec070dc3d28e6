"""What a ladder's queues offered of late, as charts and pages read it."""

import pytest

from evenmatch.errors import UnknownNameError
from evenmatch.ledger.postgres_store import PostgresStore
from evenmatch.ledger.sqlite_store import SqliteStore
from evenmatch.queues import queue_sql
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.queue_sql import OfferRow
from service.sample_queues import DUEL, PAIRS, Decline, accept_all, hold_lease, join_one, join_queue, party

SECOND = 1_000_000


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", PAIRS, QueueRules(accept_within=20))
    made.set_queue(ladder, "duels", DUEL, QueueRules(accept_within=20))
    return made


def test_offers_are_told_with_the_waits_of_their_tickets_the_latest_first(queue_service, ladder, clock):
    maker = Matchmaker(queue_service)
    hold_lease(queue_service, ladder)
    began = clock()
    pair = join_queue(queue_service, ladder, party("cat", "dan"))
    clock.move(seconds=3)
    queue_service.heartbeats.note(
        ladder, queue_service.status(ladder, pair[0])
    )  # a sign of life does not shorten a wait
    queue_service.heartbeats.write()
    clock.move(seconds=4)
    solos = join_queue(queue_service, ladder, party("ann"), party("bob"))
    maker.step(ladder)
    accept_all(queue_service, ladder, [*pair, *solos])
    clock.move(seconds=60)
    join_queue(queue_service, ladder, party("eve", queues=("duels",)), party("fay", queues=("duels",)))
    maker.step(ladder)
    last, first = queue_service.recent(ladder, 10)
    assert (first.queue, first.state, first.made_at, first.players) == ("ranked", "made", began + 7 * SECOND, 4)
    assert sorted(first.waits) == [0.0, 0.0, 7.0]
    assert first.percentiles == (50.0, 50.0, 50.0)  # nobody has played: all are in the middle of nobody
    assert (first.odds, first.spread, first.region) == ((0.5, 0.5), 0.0, None)
    assert (last.queue, last.state, last.players, last.waits) == ("duels", "open", 2, (0.0, 0.0))
    assert queue_service.recent(ladder, 1) == [last]


def test_who_is_offered_a_match_again_has_waited_from_the_start(queue_service, ladder, clock):
    maker = Matchmaker(queue_service)
    bob = join_queue(queue_service, ladder, party("ann", queues=("duels",)), party("bob", queues=("duels",)))[1]
    maker.step(ladder)
    join_one(queue_service, ladder, Decline(bob))
    clock.move(seconds=30)
    join_queue(queue_service, ladder, party("cat", queues=("duels",)))
    maker.step(ladder)
    again, off = queue_service.recent(ladder, 10)
    assert (off.state, off.waits) == ("off", (0.0, 0.0))
    assert (again.state, sorted(again.waits)) == ("open", [0.0, 30.0])


def test_a_ladder_without_queues_has_offered_nothing(service, ladders):
    queue_service = QueueService(service)
    assert queue_service.recent(ladders[1], 5) == []
    with pytest.raises(UnknownNameError):
        queue_service.recent("nowhere", 5)


STORED = {  # change, state and time by number
    1: (5, queue_sql.MADE, 10),
    2: (5, queue_sql.MADE, 20),
    3: (5, queue_sql.MADE, 30),
    4: (6, queue_sql.OFF, 30),
    5: (4, queue_sql.OFFERS_OPEN, 1),
    6: (7, queue_sql.MADE, 19),
    7: (5, queue_sql.OFFERS_OPEN, 30),
    8: (9, queue_sql.MADE, 40),
}


def test_a_process_that_takes_a_queue_over_reads_few_offers_at_a_time(service, queue_service, ladder, monkeypatch):
    body, counts = {"teams": [], "match": None, "map": None}, []
    listed = [OfferRow(n, change, "duels", state, at, 0, f"m{n}", body) for n, (change, state, at) in STORED.items()]
    with service.database.write() as store:
        number = store.head(ladder).ladder
        queue_sql.insert_offers(store, number, listed)
    monkeypatch.setattr(queue_sql, "AT_ONCE", 2)
    for kind in (SqliteStore, PostgresStore):
        monkeypatch.setattr(kind, "all", lambda *asked, read=kind.all: counts.append(rows := read(*asked)) or rows)
    with service.database.read() as store:
        assert [row.offer for row in queue_sql.read_recent_offers(store, number, 20)] == [5, 2, 3, 7, 8]
    assert max(map(len, counts)) == 2
