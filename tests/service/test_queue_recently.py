"""What a ladder's queues offered of late, as charts and pages read it."""

import pytest

from evenmatch.errors import UnknownNameError
from evenmatch.service.queueing.desk import Desk
from evenmatch.service.queueing.matchmaker import Matchmaker
from evenmatch.service.queueing.queue_rules import QueueRules
from service.queued import DUEL, PAIRS, Decline, accept_all, hold_lease, join, one, party

SECOND = 1_000_000


@pytest.fixture
def desk(service, ladder):
    made = Desk(service)
    made.set_queue(ladder, "ranked", PAIRS, QueueRules(accept_within=20))
    made.set_queue(ladder, "duels", DUEL, QueueRules(accept_within=20))
    return made


def test_offers_are_told_with_the_waits_of_their_tickets_the_latest_first(desk, ladder, clock):
    maker = Matchmaker(desk)
    hold_lease(desk, ladder)
    began = clock()
    pair = join(desk, ladder, party("cat", "dan"))
    clock.move(seconds=3)
    desk.seen(ladder, pair[0])  # a sign of life does not shorten a wait
    desk.flush_seen()
    clock.move(seconds=4)
    solos = join(desk, ladder, party("ann"), party("bob"))
    maker.step(ladder)
    accept_all(desk, ladder, [*pair, *solos])
    clock.move(seconds=60)
    join(desk, ladder, party("eve", queues=("duels",)), party("fay", queues=("duels",)))
    maker.step(ladder)
    last, first = desk.recent(ladder, 10)
    assert (first.queue, first.state, first.made_at, first.players) == ("ranked", "made", began + 7 * SECOND, 4)
    assert sorted(first.waits) == [0.0, 0.0, 7.0]
    assert first.percentiles == (50.0, 50.0, 50.0)  # nobody has played: all are in the middle of nobody
    assert (first.odds, first.spread, first.region) == (0.5, 0.0, None)
    assert (last.queue, last.state, last.players, last.waits) == ("duels", "open", 2, (0.0, 0.0))
    assert desk.recent(ladder, 1) == [last]


def test_who_is_offered_a_match_again_has_waited_from_the_start(desk, ladder, clock):
    maker = Matchmaker(desk)
    bob = join(desk, ladder, party("ann", queues=("duels",)), party("bob", queues=("duels",)))[1]
    maker.step(ladder)
    one(desk, ladder, Decline(bob))
    clock.move(seconds=30)
    join(desk, ladder, party("cat", queues=("duels",)))
    maker.step(ladder)
    again, off = desk.recent(ladder, 10)
    assert (off.state, off.waits) == ("off", (0.0, 0.0))
    assert (again.state, sorted(again.waits)) == ("open", [0.0, 30.0])


def test_a_ladder_without_queues_has_offered_nothing(service, ladders):
    desk = Desk(service)
    assert desk.recent(ladders[1], 5) == []
    with pytest.raises(UnknownNameError):
        desk.recent("nowhere", 5)
