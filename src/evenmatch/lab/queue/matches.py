"""Matches of a run as columns, and measures of their quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.odds import LineUps, Logistic, predicted_odds
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import Tickets, Whole, rows_of, starts
from evenmatch.policy import Policy

TRUE_ODDS = Logistic(400.0)  # chance to win by the difference of true skill
# Scale of a team's Gumbel noise: the difference of two has the logistic distribution of TRUE_ODDS.
NOISE = 400.0 / np.log(10.0)


@dataclass(frozen=True, eq=False)
class RunMatches:
    """M matches of K tickets with S players, in the order of the decisions.

    time    int64 (M,)    time of the deciding tick, microseconds
    start   int64 (M+1,)  first ticket of each match
    ticket  int64 (K,)    row in the run's tickets
    team    int64 (K,)    0, 1 …
    region  int64 (M,)    index into region_names; -1: any
    role    int64 (S,)    index into role_names for each player; -1: free choice
    odds    float64 (M,)  as reported by the matchmaker
    """

    time: Whole
    start: Whole
    ticket: Whole
    team: Whole
    region: Whole
    role: Whole
    odds: Floats
    region_names: tuple[str, ...] = ()
    role_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def match(self) -> Whole:
        """Match of each ticket, int64 (K,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @cached_property
    def team_start(self) -> Whole:
        """First team of each match, int64 (M+1,)."""
        most = np.maximum.reduceat(self.team, self.start[:-1]) if len(self) else np.empty(0, np.int64)
        return starts(most + 1)


def collect_matches(times: Sequence[int], rows: Sequence[Whole], proposals: Sequence[Proposals]) -> RunMatches:
    """Concatenate the matches of several ticks; `rows` are the rows of their tickets in the run."""
    counts = np.array([len(tick) for tick in proposals], np.int64)
    regions = list(dict.fromkeys(name for tick in proposals for name in tick.region_names))
    roles = list(dict.fromkeys(name for tick in proposals for name in tick.role_names))
    none = np.empty(0, np.int64)
    sizes = np.concatenate([none, *(np.diff(tick.start) for tick in proposals)])
    return RunMatches(
        time=np.repeat(np.array(times, np.int64), counts),
        start=starts(sizes),
        ticket=np.concatenate([none, *rows]),
        team=np.concatenate([none, *(tick.team for tick in proposals)]),
        region=np.concatenate([none, *(_renamed(tick.region, tick.region_names, regions) for tick in proposals)]),
        role=np.concatenate([none, *(_renamed(tick.role, tick.role_names, roles) for tick in proposals)]),
        odds=np.concatenate([np.empty(0), *(tick.odds for tick in proposals)]),
        region_names=tuple(regions),
        role_names=tuple(roles),
    )


def _renamed(numbers: Whole, names: tuple[str, ...], known: list[str]) -> Whole:
    """Map indices into `names` to indices into `known`; -1 stays."""
    return np.array([*(known.index(name) for name in names), -1], np.int64)[numbers]


@dataclass(frozen=True, eq=False)
class MatchQuality:
    """Quality of M matches; each column float64 (M,).

    spread, rating_spread  difference of the highest and the lowest player, percentiles and points
    odds        chance of the first team by the known ratings, as predicted by the policy; with more than two teams
                that of the strongest against the weakest
    true_odds   chance of the same pair by true skill; NaN if unknown
    first_won   1 if the first of that pair won, else 0; NaN if the true skill is unknown
    wait, longest_wait  mean and longest wait of the players, seconds
    percentile  mean percentile of the players
    """

    spread: Floats
    rating_spread: Floats
    odds: Floats
    true_odds: Floats
    first_won: Floats
    wait: Floats
    longest_wait: Floats
    percentile: Floats


def weigh(
    matches: RunMatches, tickets: Tickets, skill: Floats, policy: Policy, luck: np.random.Generator
) -> MatchQuality:
    """Measure matches; `skill` float64 (S,): true skill of the tickets' members, `luck`: generator of team noise."""
    if not len(matches):
        return MatchQuality(*(np.empty(0) for _ in range(8)))
    sizes = np.diff(tickets.start)[matches.ticket]
    member = rows_of(tickets.start[matches.ticket], sizes)
    first = starts(sizes)[matches.start[:-1]]  # first member of each match
    count = np.diff(starts(sizes)[matches.start])
    team = np.repeat(matches.team_start[matches.match] + matches.team, sizes)
    teams = int(matches.team_start[-1])
    players = np.bincount(team, minlength=teams)
    order = np.argsort(team, kind="stable")
    by_team = tickets.player[member][order], tickets.rating[member][order]
    rating = np.bincount(team, tickets.rating[member], teams) / players
    true = np.bincount(team, skill[member], teams) / players
    first_team, second_team = _pairs(matches, rating)
    performance = true + luck.gumbel(scale=NOISE, size=teams)
    waited = np.repeat((matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND, sizes)
    return MatchQuality(
        spread=_width(tickets.percentile[member], first),
        rating_spread=_width(tickets.rating[member], first),
        odds=predicted_odds(policy, LineUps(policy.teams, starts(players), *by_team)),
        true_odds=TRUE_ODDS.chance(true[first_team], true[second_team]),
        first_won=np.where(
            np.isnan(performance[first_team] - performance[second_team]),
            np.nan,
            performance[first_team] > performance[second_team],
        ),
        wait=np.add.reduceat(waited, first) / count,
        longest_wait=np.maximum.reduceat(waited, first),
        percentile=np.add.reduceat(tickets.percentile[member], first) / count,
    )


def _pairs(matches: RunMatches, rating: Floats) -> tuple[Whole, Whole]:
    """The two teams of each match to compare: both, or of more than two the strongest and the weakest."""
    first, count = matches.team_start[:-1], np.diff(matches.team_start)
    match = np.repeat(np.arange(len(matches)), count)
    order = np.lexsort((rating, match))
    two: Flags = count == 2
    return np.where(two, first, order[first + count - 1]), np.where(two, first + 1, order[first])


def _width(values: Floats, first: Whole) -> Floats:
    width: Floats = np.maximum.reduceat(values, first) - np.minimum.reduceat(values, first)
    return width
