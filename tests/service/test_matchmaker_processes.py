"""Several processes share the ladders' matchmakers evenly; what one leaves or holds too much, another takes."""

import math

import pytest

from evenmatch import rules
from evenmatch.queues import queue_sql as stored_leases
from evenmatch.queues.leases import Leases
from evenmatch.queues.matchmaker import DELETE_AFTER, MATCHMAKER, PROCESS, Matchmaker, MatchmakerProcesses
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService, lease_of
from service.sample_queues import DUEL, check_everything, join_queue, solos

LADDERS = 7


class Seconds:
    """The own clock of a process."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


class Process:
    """The matchmaker of a process, which looks at its ladders when it is told to."""

    def __init__(self, service, ladders, owner, now):
        self.clock = Seconds(now)
        self.leases = Leases(service.database, owner, clock=self.clock)
        self.maker = Matchmaker(QueueService(service), self.leases)
        self.maker._processes = MatchmakerProcesses(self.leases, clock=self.clock)
        self._ticks = dict.fromkeys(ladders, 1.0)

    def look(self):
        """One pass over all ladders; those whose matchmaker runs here."""
        self.maker._keep_to_share(self._ticks)
        return {ladder for ladder in self._ticks if self.maker.step(ladder) is not None}

    def end(self):
        self.maker._release()


@pytest.fixture
def ladders(service):
    names = [f"ladder {number}" for number in range(LADDERS)]
    for name in names:
        service.create_ladder(name, "elo", rules("elo"))
        QueueService(service).set_queue(name, "ranked", DUEL, QueueRules(heartbeat=None))
    return names


@pytest.fixture
def begin(service, ladders):
    return lambda owner, now: Process(service, ladders, owner, now)


def pass_time(processes, seconds):
    """All look every 0.3 s; the ladders of each at the end."""
    for _ in range(math.ceil(seconds / 0.3)):
        held = [process.look() for process in processes]
        for process in processes:
            process.clock.now += 0.3
        assert sum(map(len, held)) == len(set().union(*held))  # no ladder of two
    return held


def test_a_process_alone_has_all_ladders_and_gives_the_half_to_one_that_starts(begin, ladders):
    one = begin("one", 1000.0)
    assert one.look() == set(ladders)
    two = begin("two", -5.0)
    held = pass_time([one, two], 1.5)
    assert sorted(map(len, held)) == [3, 4]
    assert set().union(*held) == set(ladders)
    assert pass_time([one, two], 6.0) == held  # nothing moves without a reason


def test_a_third_takes_its_share_and_what_it_leaves_goes_to_the_others_at_once(begin, ladders):
    processes = [begin("one", 0.0), begin("two", 50.0), begin("three", -50.0)]
    held = pass_time(processes, 4.5)
    assert max(map(len, held)) == 3  # of seven
    assert set().union(*held) == set(ladders)
    processes[1].end()
    held = pass_time([processes[0], processes[2]], 1.2)
    assert sorted(map(len, held)) == [3, 4]
    assert set().union(*held) == set(ladders)


def test_who_dies_is_followed_on_all_its_ladders_within_five_seconds(begin, ladders):
    one, two = begin("one", 0.0), begin("two", 50.0)
    assert all(pass_time([one, two], 3.0))
    (held,) = pass_time([two], 2.4)
    assert len(held) < LADDERS  # not before its patience ends
    assert pass_time([two], 2.1) == [set(ladders)]


def test_who_was_suspended_comes_back_to_its_share_and_not_to_more(begin, ladders):
    one, two = begin("one", 0.0), begin("two", 50.0)
    pass_time([one, two], 3.0)
    one.clock.now += 5.0
    assert pass_time([two], 5.1) == [set(ladders)]
    held = pass_time([one, two], 3.0)
    assert sorted(map(len, held)) == [3, 4]
    assert set().union(*held) == set(ladders)


def test_a_ladder_whose_queues_are_gone_is_released(begin, ladders):
    one = begin("one", 0.0)
    one.look()
    del one._ticks[ladders[0]]
    assert one.look() == set(ladders[1:])
    number = one.maker.queue_service.queue_state(ladders[0]).ladder
    assert not one.leases.is_held(lease_of(number))


def test_the_lease_of_a_process_that_is_long_gone_is_deleted(begin, service, ladders):
    begin("gone", 0.0).look()
    two = begin("two", 0.0)
    pass_time([two], DELETE_AFTER + 1.0)
    with service.database.read() as store:
        assert [*stored_leases.read_leases_named(store, PROCESS)] == [f"{PROCESS}two"]
        assert len(stored_leases.read_leases_named(store, MATCHMAKER)) == LADDERS + 1


def test_all_players_get_their_match_whoever_matches_their_ladder(begin, service, ladders):
    one, two = begin("one", 0.0), begin("two", 0.0)
    pass_time([one, two], 2.0)
    for number, ladder in enumerate(ladders):
        tickets = join_queue(one.maker.queue_service, ladder, *solos(f"a{number}", f"b{number}"))
        pass_time([one, two], 0.6)
        states = two.maker.queue_service.statuses(ladder, tickets)
        assert {states[ticket].state for ticket in tickets} == {"offered"}
    check_everything(service)
