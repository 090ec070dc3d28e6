"""A run of a queue: tickets, their outcomes, its matches as columns, and which rules the matches break.

The checks of rules share no code with the matchmaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenmatch.attributes import MAP
from evenmatch.durations import SECOND
from evenmatch.errors import needing
from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.matchmaking.odds import LineUps, Logistic, predicted_odds
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import FOREVER, TicketChoice, Tickets, Whole, rows_of, starts
from evenmatch.policy import Policy

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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


@dataclass(frozen=True, eq=False)
class BrokenRules:
    """For each of the K tickets in a match, whether a rule was broken for it; bool (K,) unless noted.

    window  a player of another ticket is outside its filter
    region  the region is not accepted by the ticket or exceeds the policy's ping
    avoid   a player whom it avoids is in the match
    attributes  its match has no value in common of an attribute on which it insists, or no map
    size    the teams of the match do not have the size or number that the policy requires
    roles   a team lacks a role that the policy requires, or a player has a role they do not offer
    sizes   int64 (K,)  number of players
    """

    window: Flags
    region: Flags
    avoid: Flags
    attributes: Flags
    size: Flags
    roles: Flags
    sizes: Whole

    @property
    def players(self) -> int:
        """Players for whom at least one rule was broken."""
        return self.count(self.window | self.region | self.avoid | self.attributes | self.size | self.roles)

    def count(self, tickets: Flags) -> int:
        """Number of players in these tickets."""
        return int(self.sizes[tickets].sum())


def broken(matches: RunMatches, tickets: Tickets, policy: Policy) -> BrokenRules:
    """Check all rules for each ticket of a run's matches."""
    sizes = np.diff(tickets.start)[matches.ticket]
    if not len(matches):
        never = np.zeros(0, np.bool_)
        return BrokenRules(never, never, never, never, never, never, sizes)
    return BrokenRules(
        window=_windows(matches, tickets, policy),
        region=_regions(matches, tickets, policy),
        avoid=_avoided(matches, tickets),
        attributes=_attributes(matches, tickets, policy),
        size=_sizes(matches, tickets, policy)[matches.match],
        roles=_roles(matches, tickets, policy)[matches.match],
        sizes=sizes,
    )


def widths(policy: Policy, waited: Floats) -> Floats:
    """Widening of loose filters, in percentiles, after these waits in seconds."""
    after, width = np.array(policy.steps).T
    reached: Floats = width[np.searchsorted(after, np.maximum(waited, 0.0), side="right") - 1]
    return reached


def _windows(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    sizes = np.diff(tickets.start)
    loose = np.logical_and.reduceat(tickets.loose, tickets.start[:-1])[matches.ticket]
    waited = (matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND
    widened = np.where(loose, widths(policy, waited), 0.0)
    member = rows_of(tickets.start[matches.ticket], sizes[matches.ticket])
    first = starts(sizes[matches.ticket])[:-1]
    within = np.maximum(tickets.within[member], np.repeat(widened, sizes[matches.ticket]))
    percentile = tickets.percentile[member]
    bottom, top = np.minimum.reduceat(percentile - within, first), np.maximum.reduceat(percentile + within, first)
    low, high = np.minimum.reduceat(percentile, first), np.maximum.reduceat(percentile, first)
    # A ticket always satisfies its own filter, so it need not be excluded from the check.
    lowest = np.minimum.reduceat(low, matches.start[:-1])[matches.match]
    highest = np.maximum.reduceat(high, matches.start[:-1])[matches.match]
    return np.asarray((lowest < bottom) | (highest > top))


def _regions(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    ping = tickets.ping[matches.ticket]
    anywhere = np.isnan(ping).all(axis=1)
    column = {name: index for index, name in enumerate(tickets.region_names)}
    known = [column.get(name, -1) for name in matches.region_names]
    chosen = np.array([*known, -1], np.int64)[matches.region][matches.match]
    most = np.inf if policy.max_ping is None else policy.max_ping
    padded = np.column_stack((ping, np.full(len(ping), np.inf)))  # column of region -1: unknown or no region
    there = padded[np.arange(len(ping)), chosen]
    return np.asarray(~anywhere & ~((there <= most) & (there < np.inf)))


def _avoided(matches: RunMatches, tickets: Tickets) -> Flags:
    hit = np.zeros(len(matches.ticket), np.bool_)
    if not (tickets.met == FOREVER).any():
        return hit
    sizes, names = np.diff(tickets.start)[matches.ticket], np.diff(tickets.named_start)[matches.ticket]
    name = rows_of(tickets.named_start[matches.ticket], names)
    asking = np.repeat(np.arange(len(matches.ticket)), names)[tickets.met[name] == FOREVER]
    avoided = tickets.named[name][tickets.met[name] == FOREVER]
    players_here = tickets.player[rows_of(tickets.start[matches.ticket], sizes)]
    players, number = np.unique(np.concatenate((avoided, players_here)), return_inverse=True)
    key = np.concatenate((matches.match[asking], np.repeat(matches.match, sizes))) * len(players) + number
    hit[asking[np.isin(key[: len(asking)], key[len(asking) :])]] = True
    return hit


def _attributes(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    wronged = np.zeros(len(matches.ticket), np.bool_)
    if not len(tickets.choice):
        return wronged
    declared = {name: (attribute.values, attribute.worth) for name, attribute in policy.attributes.items()}
    declared |= {MAP: (policy.maps, None)} if policy.maps else {}
    waited = (matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND
    for name, (values, worth) in declared.items():
        accepted = [_accepted(choice, name, values) for choice in tickets.choices]
        own = [accepted[row] for row in tickets.choice[matches.ticket].tolist()]
        for first, stop in pairwise(matches.start.tolist()):
            if not set(values).intersection(*own[first:stop]):
                for place in range(first, stop):
                    insists = len(own[place]) < len(values) and (worth is None or waited[place] < worth)
                    wronged[place] |= insists
    return wronged


def _accepted(choice: TicketChoice, name: str, values: Sequence[str]) -> set[str]:
    """The declared values that a ticket accepts."""
    accepted = set(values).intersection(dict(choice.accepted).get(name, values))
    return accepted - set(choice.vetoes) if name == MAP else accepted


def _sizes(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    sizes = np.diff(tickets.start)[matches.ticket]
    first, count = matches.team_start[:-1], np.diff(matches.team_start)
    filled = np.bincount(matches.team_start[matches.match] + matches.team, sizes, int(matches.team_start[-1]))
    least, most = np.minimum.reduceat(filled, first), np.maximum.reduceat(filled, first)
    good = (count == policy.teams) & (least == most) & (most <= policy.team_size)
    waited = (matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND
    patient = np.minimum.reduceat(waited, matches.start[:-1]) >= policy.smaller_after
    fewest = policy.team_size if policy.min_team_size is None else policy.min_team_size
    good &= (least == policy.team_size) | ((least >= fewest) & patient)
    _, number, times = np.unique(matches.ticket, return_inverse=True, return_counts=True)
    good &= ~np.logical_or.reduceat(times[number] > 1, matches.start[:-1])  # a ticket occurs twice
    return np.asarray(~good)


def _roles(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    bad = np.zeros(len(matches), np.bool_)
    if not policy.roles:
        return bad
    sizes = np.diff(tickets.start)[matches.ticket]
    match = np.repeat(matches.match, sizes)
    team = np.repeat(matches.team_start[matches.match] + matches.team, sizes)
    of_team = np.repeat(np.arange(len(matches)), np.diff(matches.team_start))
    offered = tickets.roles[rows_of(tickets.start[matches.ticket], sizes)]
    for name, needed in policy.roles.items():
        number = matches.role_names.index(name) if name in matches.role_names else len(matches.role_names)
        assigned = matches.role == number
        bad[of_team[np.bincount(team[assigned], minlength=len(of_team)) < needed]] = True
        bit = tickets.role_names.index(name) if name in tickets.role_names else len(tickets.role_names)
        able = (offered == 0) | (offered >> np.uint64(bit) & np.uint64(1) == 1)
        bad[match[assigned & ~able]] = True
    return bad


WAITING, MATCHED, CANCELLED, EXPIRED, OVERTAKEN = range(5)
OUTCOMES = 3  # index of the random stream that decides who wins


@dataclass(frozen=True, eq=False)
class Run:
    """Result of one matchmaker for one sequence of tickets.

    name         name of the matchmaker or policy
    tickets      all T tickets in order of joining, with S members
    skill        float64 (S,)  true skill of the members; NaN if unknown
    fate         int8 (T,)     WAITING at the end, MATCHED, CANCELLED, EXPIRED (removed after the policy's longest
                               wait) or OVERTAKEN (replaced because a replayed player joined again)
    left         int64 (T,)    when it left, microseconds; for waiting tickets the time of the last tick
    ticks        int64 (N,)    times of the decisions
    waiting      int64 (N,)    players still waiting after each decision
    cpu_seconds  CPU time of the matchmaker
    passed_over  players who arrived while they still waited or played
    seed         seed of the match results
    """

    name: str
    policy: Policy
    scenario: Scenario | None
    tickets: Tickets
    skill: Floats
    fate: NDArray[np.int8]
    left: Whole
    matches: RunMatches
    ticks: Whole
    waiting: Whole
    cpu_seconds: float
    passed_over: int = 0
    seed: int = field(default=0)

    @cached_property
    def worth(self) -> MatchQuality:
        """Quality of each match."""
        luck = np.random.default_rng([self.seed, OUTCOMES])
        return weigh(self.matches, self.tickets, self.skill, self.policy, luck)

    @cached_property
    def broken(self) -> BrokenRules:
        """Rules broken by the matches."""
        return broken(self.matches, self.tickets, self.policy)

    @cached_property
    def waits(self) -> Floats:
        """Wait of each ticket until it left, or until the end; seconds, float64 (T,)."""
        return (self.left - self.tickets.queued) / SECOND

    @cached_property
    def sizes(self) -> Whole:
        """Number of members of each ticket, int64 (T,)."""
        return np.diff(self.tickets.start)

    @property
    def matched(self) -> Flags:
        """Tickets that were matched, bool (T,)."""
        return np.asarray(self.fate == MATCHED)

    def plot(self, *others: Run) -> Figure:
        """Plotly figure of how long players wait in this run and in others. Needs the extra `lab`."""
        with needing("lab", "a plot"):
            from evenmatch.lab.queue import queue_charts
        return queue_charts.wait_shares([self, *others])

    def players(self, fate: int) -> int:
        """Number of players of tickets with this fate; a player who joined twice counts twice."""
        return int(self.sizes[self.fate == fate].sum())
