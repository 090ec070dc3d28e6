"""The skills behind recorded matches, and how gaps between them become results.

A regression of results on ratings understates skill: ratings have errors, and a matchmaker makes teams equal partly by
those errors. Here skills are unknowns. They are drawn again and again from their distribution given all results, and
each draw refits the numbers of the game. The matchmaker knew only earlier results, so its choices need no correction.
Data augmentation: Albert and Chib (1993); the scale of skill is a free parameter between draws: Liu and Wu (1999);
the mean of the last fits: stochastic EM, Celeux and Diebolt (1985).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats, History, Integers, rows_of
from evenmatch.lab.seasons.games import Whole

SEED = 41
PERIOD = 20  # matches of a player during which skill is constant
SWEEPS, DRAWS = 60, 30  # draws of all skills, and the last ones of them that count
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
            context=rows_of(c.context, history.contexts, match),
            offset=rows_of(c.offset, history.contexts, slots),
            entry=rows_of(c.entry, int(len(c.entry) > 0), slots),
            **{name: getattr(c, name)[slots] for name in by_slot},
            **{name: getattr(c, name)[match] for name in by_match},
        )
    )


class Skills(NamedTuple):
    """D draws of what is not recorded, from its distribution given the results, and the numbers of the game.

    skill        float64 (D, S)  of each slot's player at the time of the match, standard normal among players
    performance  float64 (D, T)  of each team at the end of the match; NaN if the whole team had left
    steepness, home, absence, width  as in Game, for teams of one
    """

    skill: Floats
    performance: Floats
    steepness: float
    home: float
    absence: float
    width: float


class _Careers:
    """Skill of each player in periods of equally many matches: an autoregressive process of variance 1.

    period  int64 (S,)  period of each slot, of the P periods in order of player and time
    later   int64       the periods that are not the first of their player
    """

    def __init__(self, player: Integers) -> None:
        order = np.argsort(player, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.searchsorted(player[order], player[order])
        periods, self.period = np.unique(player.astype(np.int64) << 32 | rank // PERIOD, return_inverse=True)
        self.later = 1 + np.flatnonzero(np.diff(periods >> 32) == 0)
        self.skill, self.persistence = np.zeros(len(periods)), 0.99

    def innovations(self, skill: Floats) -> Floats:
        """What is new in each period, standard normal."""
        new: Floats = skill.copy()
        new[self.later] -= self.persistence * skill[self.later - 1]
        new[self.later] /= (1.0 - self.persistence**2) ** 0.5
        return new

    def transposed(self, new: Floats) -> Floats:
        """The transpose of `innovations`."""
        skill: Floats = new.copy()
        skill[self.later] /= (1.0 - self.persistence**2) ** 0.5
        skill[self.later - 1] -= self.persistence * skill[self.later]
        return skill

    def redraw(self, ranking: _Ranking, steepness: float, gaps: Floats, rng: np.random.Generator) -> None:
        """Another draw of all skills, given what they added to each performance, with luck.

        The least squares solution is a draw if noise is added to everything that was observed (Papandreou and Yuille
        2010). Conjugate gradients start from the last draw.
        """
        scale = 2.0**0.5 * steepness  # the variance of luck is 0.5

        def apply(skill: Floats) -> Floats:
            told: Floats = scale**2 * ranking.gathered(ranking.strength(skill))
            return told + self.transposed(self.innovations(skill))

        noisy = 2.0**0.5 * gaps + rng.standard_normal(len(gaps))
        target = scale * ranking.gathered(noisy) + self.transposed(rng.standard_normal(len(self.skill)))
        rest = direction = target - apply(self.skill)
        size = float(rest @ rest)
        while size > 1e-6 * float(target @ target):
            image = apply(direction)
            step = size / float(direction @ image)
            self.skill, rest = self.skill + step * direction, rest - step * image
            size, before = float(rest @ rest), size
            direction = rest + size / before * direction

    def refit(self) -> float:
        """Set the persistence to that of the present draw, scale the draw to variance 1, and return the scale."""
        now, before = self.skill[self.later], self.skill[self.later - 1]
        if len(now):
            self.persistence = float(np.clip(2.0 * now @ before / (now @ now + before @ before), 0.0, 0.9999))
        scale = float(np.mean(self.skill**2) ** 0.5)
        self.skill = self.skill / scale
        return scale


class _Ranking:
    """The R teams of which somebody stayed, in order of match and place.

    teams       int64 (R,)      index of each in the history
    conditions  float64 (R, 3)  1 at home; players missing from the start, and lost to quits, negative
    turns       the second, fourth, … teams of every match, and the others
    """

    def __init__(self, history: History, period: Whole) -> None:
        c, sizes = history.columns, np.diff(history.columns.slot_start)
        count = np.diff(c.team_start)
        match = np.repeat(np.arange(len(history)), count)
        largest = np.maximum.reduceat(sizes, c.team_start[:-1])[match]
        played = np.where(c.quit, np.nan_to_num(c.seconds / c.duration[history.slot_match], nan=0.5), 1.0)
        left = sizes - np.bincount(history.slot_team, played, len(sizes))
        home = (np.arange(len(sizes)) == c.team_start[match]) & (count[match] == 2)
        stayed = np.bincount(history.slot_team, ~c.quit, len(sizes)) > 0
        order = np.lexsort((c.place, match))
        self.teams = teams = order[stayed[order]]
        self.conditions = np.stack((home, (sizes - largest) / largest**0.5, -left / largest**0.5), 1)[teams]
        row = np.full(len(sizes), -1)
        row[teams] = np.arange(len(teams))
        slots = np.flatnonzero(stayed[history.slot_team])
        self.row, self.period = row[history.slot_team[slots]], period[slots]
        self.weight = (played / largest[history.slot_team] ** 0.5)[slots]
        self.periods, self.place = int(period.max()) + 1, c.place[teams].astype(np.int64)
        begins = np.diff(match[teams], prepend=-1) > 0
        self.match, self.size = np.cumsum(begins) - 1, np.bincount(np.cumsum(begins) - 1)
        self.follows, self.tied = ~begins, ~begins & (np.diff(self.place, prepend=0) == 0)
        odd = (np.arange(len(teams)) - np.flatnonzero(begins)[self.match]) % 2 == 1
        self.turns = np.flatnonzero(odd), np.flatnonzero(~odd)

    def pairs(self, rng: np.random.Generator) -> tuple[Whole, Whole]:
        """Disjoint random pairs of teams of the same match."""
        order = np.lexsort((rng.random(len(self.match)), self.match))
        return order[self.turns[0] - 1], order[self.turns[0]]

    def strength(self, skill: Floats) -> Floats:
        """What skills, (P,), add to the performance of a team with a steepness of 1, (R,)."""
        return np.bincount(self.row, self.weight * skill[self.period], len(self.teams)).astype(np.float64)

    def gathered(self, performance: Floats) -> Floats:
        """The transpose of `strength`, (P,), of performances minus the mean of their match."""
        parts = self.weight * self.centred(performance)[self.row]
        return np.bincount(self.period, parts, self.periods).astype(np.float64)

    def centred(self, performance: Floats) -> Floats:
        """Performances minus the mean of their match, (R,)."""
        return np.asarray(performance - (np.bincount(self.match, performance) / self.size)[self.match])

    def redraw(self, performance: Floats, expected: Floats, width: float, rng: np.random.Generator) -> Floats:
        """Another draw of performances that rank the teams as recorded, by Gibbs sampling from the present one."""
        shift = rng.standard_normal(len(self.size)) * (0.5 / self.size) ** 0.5
        drawn: Floats = expected + self.centred(performance - expected) + shift[self.match]
        for turn in self.turns:
            after = (turn + 1) % len(drawn)
            above, below = drawn[turn - 1], drawn[after]
            high = np.where(self.follows[turn], above + np.where(self.tied[turn], width, -width), np.inf)
            high = np.minimum(high, np.where(self.tied[after], below + width, np.inf))
            low = np.where(self.follows[after], below + np.where(self.tied[after], -width, width), -np.inf)
            low = np.maximum(low, np.where(self.tied[turn], above - width, -np.inf))
            low, high = (normal_share(2.0**0.5 * (bound - expected[turn])) for bound in (low, high))
            share = low + (high - low) * rng.random(len(turn))
            drawn[turn] = expected[turn] + 0.5**0.5 * normal_quantile(share)
        return drawn


def learn(history: History) -> Skills:
    """Skills of all players, and the numbers of a game, from the results of its matches."""
    rng = np.random.default_rng(SEED)
    careers = _Careers(history.columns.player)
    ranking = _Ranking(history, careers.period)
    first, second = ranking.pairs(rng)
    outcome = 0.5 + 0.5 * np.sign(ranking.place[second] - ranking.place[first])
    width = float(normal_quantile(0.5 + 0.5 * np.mean(outcome == 0.5)))
    performance = np.multiply(-0.5, ranking.place, dtype=np.float64)
    columns = np.zeros((len(ranking.teams), 4))
    numbers, draws = np.array((1.0, 0.0, 0.0, 0.0, width)), []
    for _ in range(SWEEPS):
        performance = ranking.redraw(performance, columns @ numbers[:-1], numbers[-1], rng)
        careers.redraw(ranking, numbers[0], performance - columns[:, 1:] @ numbers[1:-1], rng)
        numbers = numbers * np.array((careers.refit(), 1.0, 1.0, 1.0, 1.0))
        columns = np.column_stack((ranking.strength(careers.skill), ranking.conditions))
        numbers, error = probit_step(columns[first] - columns[second], outcome, numbers)
        draws.append((careers.skill, performance, numbers))
    skill, performances, fitted = map(np.array, zip(*draws[-DRAWS:], strict=True))
    every = np.full((DRAWS, len(history.columns.place)), np.nan)
    every[:, ranking.teams] = performances
    steepness, home, absence, _, width = fitted.mean(0).tolist()
    home *= abs(home) > 3.0 * error[1]
    return Skills(skill[:, careers.period], every, steepness, home, absence, width)


def probit_step(columns: Floats, outcome: Floats, numbers: Floats) -> tuple[Floats, Floats]:
    """One step of Fisher scoring towards the maximum likelihood of an ordered probit: coefficients and their errors.

    columns  float64 (N, K);  outcome  1, 0.5 or 0;  numbers  K coefficients and half the width of the draws
    """
    drawn, won = outcome == 0.5, outcome == 1.0
    x, width = columns @ numbers[:-1], numbers[-1]
    density = [np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) for z in (x - width, x + width)]
    win, lose = normal_share(x - width), 1.0 - normal_share(x + width)
    chance = np.maximum(np.where(drawn, 1.0 - win - lose, np.where(won, win, lose)), 1e-9)
    by_x = np.where(drawn, density[1] - density[0], np.where(won, density[0], -density[1])) / chance
    by_width = np.where(drawn, sum(density), -np.where(won, density[0], density[1])) / chance
    slopes = np.column_stack((columns * by_x[:, None], by_width * drawn.any()))
    information = slopes.T @ slopes + 1e-9 * np.eye(len(numbers))
    changed = numbers + np.clip(np.linalg.solve(information, slopes.sum(0)), -0.5, 0.5)
    changed[-1] = max(changed[-1], 0.0)
    return changed, np.sqrt(np.diag(np.linalg.inv(information)))
