"""Ties of `trueskill` in matches of three or more teams, against the exact posterior of its model by integration."""

from itertools import groupby, pairwise
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import truncnorm

from reference.model import SlowMatch, SlowPlayer, SlowTeam

NAMES = ("trueskill",)
trueskill = None  # each test is given both implementations in turn
BETA, TAU = 25 / 6, 25 / 300
NEWCOMER = (25.0, 25 / 3)
LENGTH = 600.0  # of a match, in seconds
STEP = 0.05  # points between two levels of the grid

pytestmark = pytest.mark.usefixtures("implementation")


def means(places, teams, played=None, **parameters):
    """The mean of every player after a match, team by team.

    teams   for each its players, as (mean, deviation);  played: the part of the match that each team was in it
    """
    sides, state = [], {}
    for number, (place, team) in enumerate(zip(places, teams, strict=True)):
        seconds = None if played is None else LENGTH * played[number]
        names = [f"{number}.{seat}" for seat in range(len(team))]
        state |= {name: {"mean": mean, "deviation": spread} for name, (mean, spread) in zip(names, team, strict=True)}
        sides.append(SlowTeam(place, None, [SlowPlayer(name, seconds=seconds) for name in names]))
    match = SlowMatch("1", 0.0, None if played is None else LENGTH, sides)
    changes = trueskill.replay([match], state=state, display=0.0, **parameters)
    return [[change.after for change in changes if change.team == number] for number in range(len(teams))]


def exact_means(places, teams, played=None, draw=0.1):
    """The same from the exact posterior: levels on a grid, best place first."""
    part = np.ones(len(teams)) if played is None else np.maximum(played, 1e-4)
    mean = part * [sum(mean for mean, _ in team) for team in teams]
    deviation = part * np.sqrt([sum(spread**2 + TAU**2 + BETA**2 for _, spread in team) for team in teams])
    margin = NormalDist().inv_cdf((draw + 1) / 2) * BETA
    slack = margin * np.sqrt([len(team) / 2 for team in teams])
    grid = np.arange(mean.min() - 70, mean.max() + 70, STEP)
    order = sorted(range(len(teams)), key=lambda team: places[team])
    levels = [list(level) for _, level in groupby(order, key=lambda team: places[team])]

    def bounds(team):
        """The lowest and the highest performance at each level, in deviations from the team's mean."""
        return ((grid + sign * slack[team] - mean[team]) / deviation[team] for sign in (-1, 1))

    alone, spread, size = [], [], []
    for level in levels:
        tied = len(level) > 1
        low, high = zip(*(bounds(team) for team in level), strict=True)
        centre = (grid - mean[level[0]]) / deviation[level[0]]
        alone.append(np.prod(ndtr(high) - ndtr(low), axis=0) if tied else np.exp(-(centre**2) / 2))
        spread.append(sum(slack[level] ** 2) / 3 / len(level) ** 2 if tied else 0.0)
        size.append(np.mean([len(teams[team]) for team in level]))

    def ahead(upper, lower):
        """The probability that a level's mean performance is more than a draw ahead of the next, by both levels."""
        lead = grid[:, None] - grid - margin * np.sqrt(size[upper] + size[lower])
        wide = np.sqrt(spread[upper] + spread[lower])
        return ndtr(lead / wide) if wide else np.heaviside(lead, 0.5)

    apart = [ahead(*pair) for pair in pairwise(range(len(levels)))]
    after = [None] * len(teams)
    for at, level in enumerate(levels):
        above, below = np.ones(len(grid)), np.ones(len(grid))
        for upper in range(at):
            above = (above * alone[upper]) @ apart[upper]
        for lower in range(len(levels) - 1, at, -1):
            below = apart[lower - 1] @ (below * alone[lower])
        weight = alone[at] * above * below
        counts = weight > 1e-12 * weight.max()
        for team in level:
            performed = grid[counts]
            if len(level) > 1:
                low, high = (bound[counts] for bound in bounds(team))
                performed = truncnorm.mean(low, high, mean[team], deviation[team])
            surprise = (np.average(performed, weights=weight[counts]) - mean[team]) / deviation[team] ** 2
            after[team] = [mean + part[team] * (spread**2 + TAU**2) * surprise for mean, spread in teams[team]]
    return after


TIES = [
    ((1, 1, 3, 3), [[NEWCOMER]] * 4),
    ((1, 2, 2, 4), [[(30.0, 3.0)], [(20.0, 8.0)], [(27.0, 2.0)], [(25.0, 5.0)]]),
    ((1, 1, 1), [[(30.0, 3.0)], [(20.0, 8.0)], [(27.0, 2.0)]]),
    ((2, 1, 2), [[(30.0, 3.0)], [(22.0, 8.0)], [(27.0, 2.0)]]),
    ((1, 1, 3), [[(30.0, 3.0), (21.0, 4.0)], [(44.0, 6.0)], [(15.0, 6.0), (24.0, 1.0), (13.0, 8.0)]]),
    ((2, 1, 2, 2, 1), [[(22.0, 3.0)], [(31.0, 5.0)], [(26.0, 8.0)], [(24.0, 2.0)], [(25.0, 7.0)]]),
]


@pytest.mark.parametrize("draw", [0.1, 0.5])
@pytest.mark.parametrize(("places", "teams"), TIES)
def test_means_after_ties_are_those_of_the_exact_posterior(places, teams, draw):
    told, known = means(places, teams, draw=draw), exact_means(places, teams, draw=draw)
    for one, other in zip(told, known, strict=True):
        assert one == pytest.approx(other, abs=0.002)


@pytest.mark.parametrize("places", [(1, 1, 3, 3), (1, 3, 1, 3), (3, 1, 1, 3)])
@pytest.mark.parametrize("sweeps", [1, 1000])
def test_newcomers_who_tie_have_the_same_mean_whatever_the_order(places, sweeps):
    ((first,), (second,), (third,), (fourth,)) = sorted(means(places, [[NEWCOMER]] * 4, sweeps=sweeps))
    assert first == second < third == fourth


def test_a_winner_gains_from_rivals_who_left_at_once_and_tie():
    places, teams, played = (1, *[2] * 12), [[NEWCOMER]] * 13, (1.0, *[0.0] * 12)
    (winner,), *others = means(places, teams, played)
    (known,), *_ = exact_means(places, teams, played)
    assert winner == pytest.approx(known, abs=0.002)
    assert others == [pytest.approx([25.0], abs=1e-5)] * 12


# Teams that left at once perform 0, almost for certain; their messages to their level would swing without end.
@pytest.mark.parametrize(("stayed", "left"), [(6, 6), (0, 12), (0, 40)])
def test_messages_of_many_tied_teams_settle(stayed, left):
    places = (1, *[2] * (stayed + left))
    teams = [[NEWCOMER], *([(25.0 + number, 3.0)] for number in range(stayed + left))]
    played = (1.0, *[0.0] * left, *[1.0] * stayed)
    even, odd = (means(places, teams, played, sweeps=sweeps) for sweeps in (300, 301))
    assert np.isfinite(even).all()
    assert np.ravel(even) == pytest.approx(np.ravel(odd), abs=1e-6)
