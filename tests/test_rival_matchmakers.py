"""The comparison matchmakers on small queues, worked by hand."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from benchmarks.rivals import line_up, others, split

from evenmatch.lab.queue.runs import broken
from evenmatch.lab.queue.scenario import PARTY_MIXES, REGION_MIXES, Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Member, Ticket
from evenmatch.policy import Policy

SECOND = 1_000_000
DUEL = Policy(team_size=1, max_odds=None)


def queue_of(*tickets):
    """Tickets 1, 2 … of (seconds of queueing, (percentile, …) or percentile, more of each member)."""
    queue = Queue()
    for number, (queued, where, *more) in enumerate(tickets, 1):
        told = more[0] if more else {}
        percentiles = where if isinstance(where, tuple) else (where,)
        members = tuple(
            Member(**{"player": 10 * number + at, "percentile": p, "rating": 1000.0 + 10 * p, **told})
            for at, p in enumerate(percentiles)
        )
        queue.join(Ticket(id=number, queued=queued * SECOND, members=members))
    return queue


def made(name, queue, policy, now=0):
    return [
        {frozenset(team) for team in proposal.teams} for proposal in others()[name].propose(queue, now * SECOND, policy)
    ]


def sides(*matches):
    return [{frozenset(team) for team in match} for match in matches]


def test_fifo_takes_the_oldest_whoever_they_are():
    queue = queue_of((3, 5.0), (1, 95.0), (2, 6.0), (4, 94.0), (5, 50.0))
    assert made("fifo", queue, DUEL, now=9) == sides(([2], [3]), ([1], [4]))


def test_bins_never_cross_their_bounds():
    queue = queue_of((1, 9.9), (2, 10.0), (3, 0.0), (4, 19.9), (5, 100.0), (6, 90.0))
    assert made("bins", queue, DUEL, now=9) == sides(([1], [3]), ([2], [4]), ([5], [6]))


def test_greedy_takes_the_tightest_and_so_leaves_its_neighbours_alone():
    strict = {"within": 3.5, "loose": False}
    queue = queue_of((0, 10.0, strict), (0, 13.0, strict), (0, 14.0, strict), (0, 17.0, strict))
    assert made("greedy", queue, DUEL) == sides(([2], [3]))  # (10, 13) and (14, 17) would have served all four
    queue = queue_of((0, 10.0, strict), (0, 11.0, strict), (0, 13.0, strict), (0, 13.5, strict))
    assert made("greedy", queue, DUEL) == sides(([3], [4]), ([1], [2]))


def test_greedy_keeps_both_filters_and_widens_the_loose_one():
    policy = replace(DUEL, steps=((0, 2), (10, 8)))
    for within, waited, found in [(5.0, 0, 0), (5.0, 10, 1), (4.9, 10, 0)]:
        queue = queue_of((0, 40.0), (0, 45.0, {"within": within, "loose": False}))
        assert len(made("greedy", queue, policy, now=waited)) == found


@pytest.mark.parametrize("name", ["greedy", "exact-dp", "playfab", "flexmatch"])
def test_rivals_keep_the_caps_of_the_policy_and_avoid_lists(name):
    queue = queue_of((0, 40.0), (0, 41.0))  # ten points apart: odds of 0.4856
    assert made(name, queue, replace(DUEL, max_odds=0.515)) == sides(([1], [2]))
    assert made(name, queue, replace(DUEL, max_odds=0.514)) == []
    assert made(name, queue, replace(DUEL, max_rating_spread=10.0)) == sides(([1], [2]))
    assert made(name, queue, replace(DUEL, max_rating_spread=9.9)) == []
    assert made(name, queue_of((0, 40.0), (0, 41.0, {"avoid": (10,)})), DUEL) == []


def test_exact_dp_makes_the_most_matches_and_then_the_tightest():
    strict = {"within": 3.5, "loose": False}
    queue = queue_of((0, 10.0, strict), (0, 13.0, strict), (0, 14.0, strict), (0, 17.0, strict))
    assert made("exact-dp", queue, DUEL) == sides(([1], [2]), ([3], [4]))  # spreads 3 and 3; greedy takes the 1 alone
    queue = queue_of((0, 10.0, strict), (0, 13.0, strict), (0, 14.0, strict))
    assert made("exact-dp", queue, DUEL) == sides(([2], [3]))  # one match either way: 1 is less than 3


def test_playfab_widens_with_the_age_of_the_oldest_and_takes_the_nearest():
    policy, strict = replace(DUEL, steps=((0, 2), (10, 8))), {"within": 5.0, "loose": False}
    queue = queue_of((0, 50.0, strict), (5, 47.5, strict), (6, 53.5, strict))
    assert made("playfab", queue, policy, now=9) == []  # at first a match spans 2 percentiles, and they are 2.5 apart
    assert made("playfab", queue, policy, now=10) == sides(([1], [2]))
    queue = queue_of((6, 50.0, strict), (6, 47.5, strict), (0, 80.0, strict))  # an old ticket elsewhere widens nothing
    assert made("playfab", queue, policy, now=10) == []


def test_flexmatch_begins_with_the_oldest_and_its_neighbours():
    policy, strict = replace(DUEL, steps=((0, 2), (10, 8))), {"within": 5.0, "loose": False}
    queue = queue_of((0, 49.0, strict), (5, 50.5, strict), (6, 51.0, strict), (5, 53.5, strict))
    # 49 gets its neighbour, though 50.5 and 51 are closer; 51 and 53.5 are more than 2 apart until one is 10 s old
    assert made("flexmatch", queue, policy, now=9) == sides(([1], [2]))
    assert made("flexmatch", queue, policy, now=15) == sides(([1], [2]), ([3], [4]))
    queue = queue_of((0, 49.0, strict), (0, 53.0, {"within": 3.9, "loose": False}))
    assert made("flexmatch", queue, policy, now=15) == []


def test_pivot_serves_the_oldest_with_the_nearest_whatever_their_filters():
    policy = replace(DUEL, steps=((0, 2), (10, 8)))
    strict = {"within": 0.0, "loose": False}
    queue = queue_of((5, 40.0), (0, 50.0), (6, 43.0, strict), (5, 57.0, strict), (5, 60.0))
    # at 12 s ticket 2 reaches from 42 to 58; 43 and 57 are as near, and the lower goes first; then 57 and 60 remain,
    # of whom one is strict, and the other reaches from 58 after 7 s
    assert made("pivot", queue, policy, now=12) == sides(([2], [3]))
    # at 15 s ticket 5 reaches from 52
    assert made("pivot", queue, policy, now=15) == sides(([2], [3]), ([4], [5]))


def test_waves_fire_when_a_wave_is_due_and_once():
    queue = queue_of((0, 40.0), (0, 90.0), (0, 41.0), (0, 50.0), (0, 99.0))
    waves = others()["waves"].propose
    told = [len(waves(queue, now * SECOND, DUEL)) for now in (14, 15, 16, 29, 31, 32, 60)]
    assert told == [0, 2, 0, 0, 2, 0, 2]
    assert len(waves(queue, 1, DUEL)) == 0  # another run, from the beginning
    assert len(waves(queue, 15 * SECOND, DUEL)) == 2
    waves = others()["waves"].propose
    waves(queue, 14 * SECOND, DUEL)
    found = [set(match.tickets) for match in waves(queue, 15 * SECOND, DUEL)]
    assert found == [{1, 3}, {4, 2}]


def test_parties_stay_together_and_who_does_not_fit_waits_for_the_next_match():
    threes = Policy(team_size=3, max_odds=None)
    # 2 and 2 sit on different teams; the third pair has no room, the solo players do
    queue = queue_of(
        (0, (50.0, 51.0)), (1, (50.0, 51.0)), (2, (50.0, 51.0)), (3, 50.0), (4, 52.0), (5, 51.0), (6, 50.0)
    )
    (match,) = others()["fifo"].propose(queue, 9 * SECOND, threes)
    assert set(match.tickets) == {1, 2, 4, 5}
    assert [len(team) for team in match.players] == [3, 3]
    assert made("greedy", queue_of((0, (50.0, 50.0)), (0, (50.0, 50.0)), (0, (50.0, 50.0))), threes) == []


def test_the_split_is_the_evenest_there_is():
    rng = np.random.default_rng(5)
    for sizes in ([1] * 12, [3, 2, 2, 1, 1, 1, 1, 1], [6, 3, 2, 1]):
        queue = Queue()
        for at, size in enumerate(sizes):
            members = tuple(
                Member(player=10 * at + one, percentile=50.0, rating=float(rng.normal(1500, 300)))
                for one in range(size)
            )
            queue.join(Ticket(id=at, queued=0, members=members))
        line = line_up(queue)
        group = split(line, np.arange(len(line)), Policy())
        sums = dict(zip(line.number.tolist(), line.rating_sum.tolist(), strict=True))
        size = dict(enumerate(sizes))
        best = min(
            abs(2 * sum(sums[one] for one in side) - sum(sums.values()))
            for count in range(1, len(sizes))
            for side in combinations(range(len(sizes)), count)
            if sum(size[one] for one in side) == 6
        )
        mine = {int(number): int(team) for number, team in zip(line.number[group.rows], group.team, strict=True)}
        assert [sum(size[one] for one in mine if mine[one] == team) for team in (0, 1)] == [6, 6]
        gap = abs(sum(sums[one] * (1 if mine[one] else -1) for one in mine))
        assert gap == pytest.approx(best)


def test_each_plays_in_the_region_of_its_best_ping_and_the_undecided_go_with_most():
    east, west = {"ping": {"east": 20.0, "west": 80.0}}, {"ping": {"east": 90.0, "west": 30.0}}
    queue = queue_of((0, 10.0, east), (1, 11.0, west), (2, 12.0, west), (3, 13.0, east), (4, 14.0, west), (5, 15.0))
    told = list(others()["fifo"].propose(queue, 9 * SECOND, DUEL))
    assert {(match.region, frozenset(match.tickets), match.ping) for match in told} == {
        ("east", frozenset({1, 4}), 20.0),
        ("west", frozenset({2, 3}), 30.0),
        ("west", frozenset({5, 6}), 30.0),
    }


@pytest.mark.parametrize("name", others())
def test_teams_are_full_and_regions_kept_with_parties_of_all_sizes(name):
    scenario = Scenario(
        minutes=3,
        parties=PARTY_MIXES["many"],
        regions=REGION_MIXES["four"],
        arrivals=12,
        players=4000,
        share_avoiding=0.2,
    )
    run = simulate(scenario, others()[name].propose, Policy(), name=name)
    found = broken(run.matches, run.tickets, run.policy)
    assert len(run.matches) > 3
    assert (found.count(found.size), found.count(found.region)) == (0, 0)
    assert (found.players == 0) == others()[name].keeps_filters
    assert run.worth.odds == pytest.approx(run.matches.odds)
