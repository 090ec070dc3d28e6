"""How gaps in skill become results in recorded matches.

Skill is measured with errors, so it is measured twice: `even` learns once from one random half of the matches and once
from the other. What the two ratings share is skill, and what they do not share is error. This gives the spread of
skills, and how much of a gap between two ratings is real, without trusting any system's own deviations.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats, History
from evenmatch.lab.seasons.games import Whole
from evenmatch.rating import rules_of
from evenmatch.systems import loop

EXPERIENCE = 3  # matches in each half before a rating is used
SEED = 41
_GRID = np.linspace(-6.0, 6.0, 12001)
_CDF = np.array([NormalDist().cdf(x) for x in _GRID.tolist()])


def normal_share(x: Floats) -> Floats:
    """Share of a standard normal distribution below x."""
    return np.asarray(np.interp(x, _GRID, _CDF), np.float64)


def normal_quantile(share: Floats) -> Floats:
    """The value that this share of a standard normal distribution is below."""
    return np.asarray(np.interp(share, _CDF, _GRID), np.float64)


def heats(history: History, teams: int) -> History:
    """The same history with larger contests of single players split at random into heats of this many."""
    c, size = history.columns, np.diff(history.columns.team_start)
    if teams == 2 or len(c.place) != len(c.player) or size.max() < 2 * teams:
        return history
    rng, order, heat_size = np.random.default_rng(SEED), [], []
    for first, count in zip(c.team_start[:-1].tolist(), size.tolist(), strict=True):
        kept = count if count < 2 * teams else count - count % teams
        order.append(first + rng.permutation(count)[:kept])
        heat_size.append([kept] if count < 2 * teams else [teams] * (kept // teams))
    slots, match = np.concatenate(order), np.repeat(np.arange(len(size)), [len(part) for part in heat_size])
    start = np.concatenate(([0], np.cumsum(np.concatenate(heat_size)))).astype(np.int32)
    by_slot = ("place", "team_score", "player", "score", "seconds", "performance", "quit", "keep")
    by_match = ("time", "duration", "pool", "ladder")
    return History(
        c._replace(
            team_start=start,
            slot_start=np.arange(len(slots) + 1, dtype=np.int32),
            **{name: getattr(c, name)[slots] for name in by_slot},
            **{name: getattr(c, name)[match] for name in by_match},
        )
    )


class Contests(NamedTuple):
    """Comparisons of two teams, float64 (N,).

    first, second  index of the team, int64
    outcome  1: the first one won, 0.5: draw, 0: it lost
    gaps     (2, N)  gap between the mean ratings of the two, by each of the two ratings
    missing  share of the first team that was missing, minus that of the second
    """

    first: Whole
    second: Whole
    outcome: Floats
    gaps: Floats
    missing: Floats


class Race(NamedTuple):
    """How gaps become results, in probits of a match between teams of known strength.

    unit   rating points of one standard deviation of skill
    slope  gap for a rating gap of 1;  error  standard deviation of the true gap around it
    home, absence, width, steepness  as in Game, for teams of the recorded size
    """

    unit: float
    slope: float
    error: float
    home: float
    absence: float
    width: float
    steepness: float


def measured(history: History) -> tuple[Floats, Floats]:
    """Each slot's rating before the match, by either half of the matches, (2, S); and the earlier matches in it."""
    c, rules = history.columns, rules_of("even")
    half = np.random.default_rng(SEED).integers(0, 2, len(history))[history.slot_match]
    ratings, earlier = np.empty((2, len(half))), np.empty((2, len(half)))
    order = np.argsort(c.player, kind="stable")
    starts = np.searchsorted(c.player[order], c.player)
    for part in (0, 1):
        taught = History(c._replace(keep=half == part))
        result = loop.replay(rules, taught, rules.newcomers(history.players), journal=True)
        assert result.journal is not None
        ratings[part] = result.journal.before
        before = np.cumsum(half[order] == part) - (half[order] == part)
        ranks = np.empty(len(order))
        ranks[order] = before
        earlier[part] = ranks - before[starts]
    return ratings, earlier


def contests_of(history: History, ratings: Floats, earlier: Floats) -> Contests:
    """Matches of two teams that nobody left, and of larger matches random pairs of teams that nobody left."""
    c, teams = history.columns, len(history.columns.place)
    sizes = np.diff(c.slot_start)
    match = np.repeat(np.arange(len(history)), np.diff(c.team_start))
    two = np.diff(c.team_start)[match] == 2
    shuffled = np.where(two, np.arange(teams), np.random.default_rng(SEED).permutation(teams))
    played = np.bincount(history.slot_team, c.quit, teams) == 0
    order = np.lexsort((shuffled, match))
    order = order[played[order]]
    place = np.arange(len(order)) - np.searchsorted(match[order], match[order])
    paired = np.flatnonzero((place[1:] % 2 == 1) & (match[order][1:] == match[order][:-1]))
    first, second = order[paired], order[paired + 1]
    known = np.bincount(history.slot_team, earlier.min(0), teams) / sizes >= EXPERIENCE
    kept = known[first] & known[second]
    first, second = first[kept], second[kept]
    mean = np.stack([np.bincount(history.slot_team, rating, teams) / sizes for rating in ratings])
    place_gap = c.place[second].astype(np.int64) - c.place[first]
    missing = (sizes[second] - sizes[first]) / np.maximum(sizes[first], sizes[second])
    return Contests(first, second, 0.5 + 0.5 * np.sign(place_gap), mean[:, first] - mean[:, second], missing)


def ordered_probit(columns: Floats, outcome: Floats) -> tuple[Floats, Floats]:
    """Maximum likelihood of an ordered probit, by Fisher scoring: coefficients and their errors.

    columns  float64 (N, K);  outcome  1, 0.5 or 0. The last coefficient is half the width of the draws.
    """
    count = columns.shape[1]
    drawn = outcome == 0.5
    beta = np.zeros(count + 1)
    beta[-1] = normal_quantile(np.array(0.5 + 0.5 * drawn.mean()))
    for _ in range(50):
        x, width = columns @ beta[:-1], beta[-1]
        density = [np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) for z in (x - width, x + width)]
        win, lose = normal_share(x - width), 1.0 - normal_share(x + width)
        chance = np.maximum(np.where(drawn, 1.0 - win - lose, np.where(outcome == 1.0, win, lose)), 1e-9)
        by_x = np.where(drawn, density[1] - density[0], np.where(outcome == 1.0, density[0], -density[1])) / chance
        by_width = np.where(drawn, sum(density), -np.where(outcome == 1.0, density[0], density[1])) / chance
        slopes = np.concatenate((columns * by_x[:, None], by_width[:, None]), 1)
        if not drawn.any():
            slopes[:, -1] = 0.0
        information = slopes.T @ slopes + 1e-9 * np.eye(count + 1)
        step = np.linalg.solve(information, slopes.sum(0))
        beta = beta + np.clip(step, -0.5, 0.5)
        beta[-1] = max(beta[-1], 0.0)
        if np.abs(step).max() < 1e-7:
            break
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


def race_of(ratings: Floats, earlier: Floats, contests: Contests, size: float) -> Race:
    """How the gaps between teams of this size become results.

    Matchmaking narrows the gaps but not what a rating says about skill, so reliability is measured among all players.
    """
    known = earlier.min(0) >= EXPERIENCE
    shared = np.cov(ratings[:, known])
    unit = float(np.sqrt(max(shared[0, 1], 1e-9)))
    reliable = min(shared[0, 1] / shared.mean(), 1.0)
    gap = contests.gaps.mean(0) / unit
    beta, error = ordered_probit(np.stack((gap, np.ones(len(gap)), contests.missing), 1), contests.outcome)
    beta[1] *= abs(beta[1]) > 3.0 * error[1]
    # beta = slope / √(1 + e²), where e² = (slope / reliable)² · (1 - reliable) · 2 / size is the variance of the error
    excess = float((beta[0] / reliable) ** 2 * (1.0 - reliable) * 2.0 / size)
    stretch = 1.0 / np.sqrt(max(1.0 - excess, 0.1))
    slope, home, absence, width = (float(b) * float(stretch) for b in beta)
    return Race(unit, slope / unit, float(np.sqrt(stretch**2 - 1.0)), home, -absence, width, slope / reliable)
