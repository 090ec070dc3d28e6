"""The matches of a run as columns, and what each of them was worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.policy import Logistic, Policy
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import Tickets, Whole, rows_of, starts

SECOND = 1_000_000
TRUE_ODDS = Logistic(400.0)  # how true skill decides matches
NOISE = 400.0 / np.log(10.0)  # of a team's day: two such Gumbel noises differ by TRUE_ODDS' logistic


@dataclass(frozen=True, eq=False)
class Matches:
    """M matches of K tickets, in the order in which they were decided.

    time    int64 (M,)    microseconds, of the tick that decided it
    start   int64 (M+1,)  first ticket of each match
    ticket  int64 (K,)    row of the run's tickets
    team    int64 (K,)    0, 1 …
    region  int64 (M,)    of region_names; -1: anywhere
    role    int64 (S,)    of role_names, for each player of each ticket; -1: a free choice
    odds    float64 (M,)  as the matchmaker told
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
        """The match of each ticket, int64 (K,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @cached_property
    def team_start(self) -> Whole:
        """First team of each match, int64 (M+1,)."""
        most = np.maximum.reduceat(self.team, self.start[:-1]) if len(self) else np.empty(0, np.int64)
        return starts(most + 1)


def gather(times: Sequence[int], rows: Sequence[Whole], proposals: Sequence[Proposals]) -> Matches:
    """The matches of several ticks; `rows` are where their tickets stand in the run."""
    counts = np.array([len(one) for one in proposals], np.int64)
    regions = list(dict.fromkeys(name for one in proposals for name in one.region_names))
    roles = list(dict.fromkeys(name for one in proposals for name in one.role_names))
    none = np.empty(0, np.int64)
    sizes = np.concatenate([none, *(np.diff(one.start) for one in proposals)])
    return Matches(
        time=np.repeat(np.array(times, np.int64), counts),
        start=starts(sizes),
        ticket=np.concatenate([none, *rows]),
        team=np.concatenate([none, *(one.team for one in proposals)]),
        region=np.concatenate([none, *(_renamed(one.region, one.region_names, regions) for one in proposals)]),
        role=np.concatenate([none, *(_renamed(one.role, one.role_names, roles) for one in proposals)]),
        odds=np.concatenate([np.empty(0), *(one.odds for one in proposals)]),
        region_names=tuple(regions),
        role_names=tuple(roles),
    )


def _renamed(numbers: Whole, names: tuple[str, ...], known: list[str]) -> Whole:
    """Numbers of names as numbers of those known; -1 stays."""
    return np.array([*(known.index(name) for name in names), -1], np.int64)[numbers]


@dataclass(frozen=True, eq=False)
class Worth:
    """What M matches were worth; a float64 (M,) each.

    spread, rating_spread  between the highest and the lowest player, percentiles and points
    odds        the chance of the first team by the known ratings, as the policy foretells it; with more than two
                teams that of the strongest against the weakest
    true_odds   the same pair by true skill; nan where that is not told
    first_won   1 where the first of that pair came out ahead, 0 where not; nan where skill is not told
    wait, longest_wait  mean and longest wait of its players, seconds
    percentile  the mean of its players'
    """

    spread: Floats
    rating_spread: Floats
    odds: Floats
    true_odds: Floats
    first_won: Floats
    wait: Floats
    longest_wait: Floats
    percentile: Floats


def weigh(matches: Matches, tickets: Tickets, skill: Floats, policy: Policy, luck: np.random.Generator) -> Worth:
    """The worth of matches; `skill` float64 (S,) is the true one of the tickets' members, and `luck` draws the days."""
    if not len(matches):
        return Worth(*(np.empty(0) for _ in range(8)))
    sizes = np.diff(tickets.start)[matches.ticket]
    member = rows_of(tickets.start[matches.ticket], sizes)
    first = starts(sizes)[matches.start[:-1]]  # member of each match
    count = np.diff(starts(sizes)[matches.start])
    team = np.repeat(matches.team_start[matches.match] + matches.team, sizes)
    teams = int(matches.team_start[-1])
    players = np.maximum(np.bincount(team, minlength=teams), 1)
    rating = np.bincount(team, tickets.rating[member], teams) / players
    true = np.bincount(team, skill[member], teams) / players
    one, other = _pairs(matches, rating)
    day = true + luck.gumbel(scale=NOISE, size=teams)
    waited = np.repeat((matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND, sizes)
    return Worth(
        spread=_width(tickets.percentile[member], first),
        rating_spread=_width(tickets.rating[member], first),
        odds=np.asarray(policy.foretell(rating[one], rating[other]), np.float64),
        true_odds=TRUE_ODDS(true[one], true[other]),
        first_won=np.where(np.isnan(day[one] - day[other]), np.nan, day[one] > day[other]),
        wait=np.add.reduceat(waited, first) / count,
        longest_wait=np.maximum.reduceat(waited, first),
        percentile=np.add.reduceat(tickets.percentile[member], first) / count,
    )


def _pairs(matches: Matches, rating: Floats) -> tuple[Whole, Whole]:
    """The two teams of each match whose odds are told: both, or of more the strongest and the weakest."""
    first, count = matches.team_start[:-1], np.diff(matches.team_start)
    match = np.repeat(np.arange(len(matches)), count)
    order = np.lexsort((rating, match))
    two: Flags = count == 2
    return np.where(two, first, order[first + count - 1]), np.where(two, first + 1, order[first])


def _width(values: Floats, first: Whole) -> Floats:
    width: Floats = np.maximum.reduceat(values, first) - np.minimum.reduceat(values, first)
    return width
