"""The memory of estimated and realised waits, against distributions that are known."""

import math

import numpy as np
import pytest

from evenmatch.durations import SECOND
from evenmatch.matchmaking import Policy, Queue, propose
from evenmatch.matchmaking.queue import REMEMBERED_PER_SECOND, ExpectedWait, WaitKind, WaitRecord, quantiles
from evenmatch.matchmaking.waiting import remember
from matchmaking.sample_tickets import NOW, queue_of, solo

SINGLE, STRICT = WaitKind(1, False, False), WaitKind(1, True, False)
# Number of gaps, and the median and 0.9 quantile of a sum of as many exponential gaps of mean 1 (half of the chi-square
# quantiles with twice as many degrees of freedom: Abramowitz and Stegun 1964, table 26.8)
SUMS = [(1, 0.6931, 2.3026), (2, 1.6783, 3.8897), (5, 4.6709, 7.9936), (11, 10.6685, 15.4066)]


def expected(seconds, kind=SINGLE):
    return ExpectedWait(kind, seconds, 0.9, 2.4)


def filled(waits, kind=SINGLE, seconds=10.0):
    """A record of tickets that joined one by one, were expected to wait 10 s and found a match after these waits."""
    record = WaitRecord()
    for ticket, waited in enumerate(waits):
        record.add(ticket, expected(seconds, kind), 0)
        record.end([ticket], round(waited * SECOND), is_matched=True)
    return record


@pytest.mark.parametrize(("gaps", "median", "upper"), SUMS)
def test_the_quantiles_of_sums_of_exponential_gaps_are_learnt(gaps, median, upper):
    """The mean of many records of 100 waits each, whose 90th is somewhat below the quantile: 0.891 of the waits."""
    draw = np.random.default_rng(gaps)
    told = [
        filled(draw.exponential(3.0, (100, gaps)).sum(axis=1)).calibrated(expected(20.0), 10**12) for _ in range(100)
    ]
    ratio = 20.0 / 10.0  # for twice the time expected, twice the wait is told
    assert np.mean([one.estimate for one in told]) == pytest.approx(ratio * 3 * median, rel=0.03)
    assert np.mean([one.upper for one in told]) == pytest.approx(ratio * 3 * upper, rel=0.05)


def test_without_waits_of_the_kind_the_assumed_factors_are_told():
    assert WaitRecord().calibrated(expected(10.0), NOW) == (9.0, 24.0)
    assert filled([1.0] * 50, STRICT).calibrated(expected(10.0), NOW) == (9.0, 24.0)


def test_waits_that_go_on_count_as_longer():
    """By hand: of ten, four ended after 1 to 4 s, and six still wait after 100 s: no median is known yet."""
    waits, ended = np.array([1.0, 2, 3, 4] + [100.0] * 6), np.array([True] * 4 + [False] * 6)
    assert quantiles(waits, ended, (0.3, 0.4, 0.5)) == [3.0, 4.0, None]


def test_a_ticket_that_left_counts_until_it_left():
    """Freireich et al. 1963, the standard example: with 6-MP, remissions last 23 weeks at the median."""
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    going_on = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    waits = np.array(ended + going_on, float)
    flags = np.array([True] * len(ended) + [False] * len(going_on))
    assert quantiles(waits, flags, (0.5, 0.9)) == [23.0, None]


def test_the_first_matches_of_a_new_queue_are_not_taken_as_typical():
    record = WaitRecord()
    for ticket in range(100):
        record.add(ticket, expected(10.0), 0)
    record.end(range(10), SECOND, is_matched=True)
    told = record.calibrated(expected(10.0), 60 * SECOND)
    assert told.estimate >= 60
    assert math.isfinite(told.upper)


def test_only_some_of_many_that_join_are_remembered():
    queue, ids = Queue(), range(1000)
    for ticket in ids:
        queue.join(solo(ticket, ticket / 10))
    assert len(remember(queue, list(ids), NOW, Policy())) == REMEMBERED_PER_SECOND
    assert remember(queue, list(ids), NOW, Policy()) == {}
    assert len(remember(queue, list(ids), NOW + SECOND, Policy())) == REMEMBERED_PER_SECOND


def test_the_memory_changes_no_proposal():
    tickets = [solo(number, 50 + number / 10, waited=number) for number in range(12)]
    plain, told = queue_of(*tickets), queue_of(*tickets)
    told.waits = filled([500.0] * 100)
    remember(told, told.ids, NOW, Policy())
    first, second = (propose(queue, NOW, Policy()) for queue in (plain, told))
    assert [match.teams for match in first] == [match.teams for match in second]
    assert len(first) == 1
