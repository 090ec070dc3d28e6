"""One simple and fair way to make matches out of rows of tickets, shared by all comparison matchmakers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue_matches import SECOND
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.proposal import COSTS, Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import ANYWHERE, Masks, Whole, rows_of, starts

FEW = 12  # tickets of which every split is tried


class Line(NamedTuple):
    """N waiting tickets in order of percentile: all that a simple matchmaker looks at.

    number        int64 (N,)  of the ticket;  queued  int64, microseconds;  size  int64, players;  loose  bool
    low, high     the members' lowest and highest percentile;  chosen_low, chosen_high  the hull of their filters
    rating_low, rating_high, rating_sum  float64 (N,)  of the members
    able          uint64 (N,)  bit r: it can play in region r
    ping          float64 (N, R)  the worst of the members
    first         int64 (N,)  member in `players`;  named_first, named_count  int64 (N,)  rows of `named`, `met`
    """

    number: Whole
    queued: Whole
    size: Whole
    loose: Flags
    low: Floats
    high: Floats
    chosen_low: Floats
    chosen_high: Floats
    rating_low: Floats
    rating_high: Floats
    rating_sum: Floats
    able: Masks
    ping: Floats
    first: Whole
    named_first: Whole
    named_count: Whole
    players: Whole
    named: Whole
    met: Whole
    region_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.number)


def line_up(queue: Queue) -> Line:
    """The tickets of a queue; the only place that knows how a queue keeps them."""
    slots = queue.order()
    t, regions = queue.tickets[slots], tuple(queue.region_names)
    return Line(
        number=t["id"],
        queued=t["queued"],
        size=t["size"].astype(np.int64),
        loose=t["loose"],
        low=t["low"],
        high=t["high"],
        chosen_low=t["chosen_lo"],
        chosen_high=t["chosen_hi"],
        rating_low=t["rating_low"],
        rating_high=t["rating_high"],
        rating_sum=t["rating_sum"],
        able=t["able"],
        ping=queue.ping[slots, : len(regions)],
        first=t["first"],
        named_first=t["named_first"],
        named_count=t["named_count"].astype(np.int64),
        players=queue.members["player"],
        named=queue.named["player"],
        met=queue.named["met"],
        region_names=regions,
    )


@dataclass(frozen=True)
class Group:
    """Tickets that shall play together, by place in the line, with the team of each; `region` -1: anywhere."""

    rows: Whole
    team: Whole
    region: int


def by_region(line: Line, rows: Whole) -> list[tuple[int, Whole]]:
    """The rows by the region in which each plays, in the same order; a ticket plays where its ping is best.

    Tickets that play anywhere go where most play.
    """
    anywhere = line.able[rows] == ANYWHERE
    if not line.region_names or anywhere.all():
        return [(-1, rows)]
    best = np.argmin(line.ping[rows], axis=1)
    best[anywhere] = np.bincount(best[~anywhere]).argmax()
    return [(int(region), rows[best == region]) for region in np.unique(best)]


def fill(line: Line, rows: Whole, policy: Policy, region: int = -1) -> list[Group]:
    """As many matches as can be filled in this order; a ticket that fits no team any more waits for the next match."""
    size, players = line.size[rows], policy.players
    if not (size > 1).any():
        whole = rows[: len(rows) // players * players].reshape(-1, players)
        return [group for ones in whole if (group := split(line, ones, policy, region)) is not None]
    groups = []
    left = list(zip(rows.tolist(), size.tolist(), strict=True))
    while (seats := _first_fit(left, policy)) is not None:
        chosen, team = np.array(list(seats), np.int64), np.array(list(seats.values()), np.int64)
        group = split(line, chosen, policy, region)
        groups.append(Group(*_by_team(chosen, team), region) if group is None else group)
        left = [one for one in left if one[0] not in seats]
    return groups


def _first_fit(left: Sequence[tuple[int, int]], policy: Policy) -> dict[int, int] | None:
    """The teams of the rows of the first match that comes full when each ticket takes the first seats free."""
    free, missing = [policy.team_size] * policy.teams, policy.players
    seats: dict[int, int] = {}
    for row, size in left:
        team = next((at for at, room in enumerate(free) if room >= size), None)
        if team is not None:
            free[team] -= size
            missing -= size
            seats[row] = team
            if not missing:
                return seats
    return None


def split(line: Line, rows: Whole, policy: Policy, region: int = -1) -> Group | None:
    """These tickets as full teams whose mean ratings are as close as can be; None where parties cannot be seated.

    Two teams of few tickets: every split is tried. Else the largest party, and of these the strongest, goes first, each
    to the team that has room and is the weakest so far by the seats it has filled.
    """
    sizes, ratings = line.size[rows], line.rating_sum[rows]
    if policy.teams == 2 and len(rows) <= FEW:
        sides = _splits(len(rows), policy.team_size if (sizes == 1).all() else 0)
        good = sides[sides @ sizes == policy.team_size] if (sizes > 1).any() else sides
        if not len(good) or sizes.sum() != policy.players:
            return None
        apart = np.abs(2.0 * (good @ ratings) - ratings.sum())
        team = 1 - good[int(np.argmin(apart))]
    else:
        dealt = _deal(sizes, ratings, policy)
        if dealt is None:
            return None
        team = dealt
    return Group(*_by_team(rows, team), region)


def _by_team(rows: Whole, team: Whole) -> tuple[Whole, Whole]:
    order = np.argsort(team, kind="stable")
    return rows[order], team[order]


@cache
def _splits(count: int, half: int) -> Whole:
    """Every way to put the first of so many tickets on a side with others, 1 for those; `half`: with so many in all."""
    if half:
        rows = np.array([(0, *others) for others in combinations(range(1, count), half - 1)], np.int64)
        sides = np.zeros((len(rows), count), np.int64)
        np.put_along_axis(sides, rows, 1, axis=1)
        return sides
    masks = np.arange(1, 1 << count, 2)
    return masks[:, None] >> np.arange(count) & 1


def _deal(sizes: Whole, ratings: Floats, policy: Policy) -> Whole | None:
    mean = float(ratings.sum() / sizes.sum())
    room, strength = [policy.team_size] * policy.teams, [0.0] * policy.teams
    team = np.empty(len(sizes), np.int64)
    for at in np.lexsort((-ratings, -sizes)).tolist():
        able = [one for one in range(policy.teams) if room[one] >= sizes[at]]
        if not able:
            return None
        chosen = min(able, key=lambda one: (strength[one], -room[one], one))
        room[chosen] -= int(sizes[at])
        strength[chosen] += float(ratings[at]) - mean * int(sizes[at])
        team[at] = chosen
    return team if not any(room) else None


def foretold(line: Line, group: Group, policy: Policy) -> float:
    """The odds of a group: of its first team, or with more than two of the strongest against the weakest."""
    means = np.bincount(group.team, line.rating_sum[group.rows]) / np.bincount(group.team, line.size[group.rows])
    one, other = (means[0], means[1]) if len(means) == 2 else (means.max(), means.min())
    return float(policy.foretell(np.array([one]), np.array([other]))[0])


def proposals(line: Line, now: int, policy: Policy, groups: Sequence[Group]) -> Proposals:
    """The groups as proposals, without costs; and who has waited as long as the policy lets anybody wait."""
    none = np.empty(0, np.int64)
    rows = np.concatenate([none, *(group.rows for group in groups)])
    start = starts(np.array([len(group.rows) for group in groups], np.int64))
    member = rows_of(line.first[rows], line.size[rows])
    waited = (now - line.queued) / SECOND
    late = np.zeros(len(line), np.bool_) if policy.max_wait is None else waited >= policy.max_wait
    late[rows] = False
    return Proposals(
        start=start,
        ticket=line.number[rows],
        team=np.concatenate([none, *(group.team for group in groups)]),
        member_start=starts(line.size[rows]),
        player=line.players[member],
        role=np.full(len(member), -1),
        region=np.array([group.region for group in groups], np.int64),
        ping=np.array(
            [line.ping[one.rows, one.region].max() if one.region >= 0 else 0.0 for one in groups], np.float64
        ),
        odds=np.array([foretold(line, group, policy) for group in groups], np.float64),
        spread=_most(line.high[rows], start) + _most(-line.low[rows], start),
        rating_spread=_most(line.rating_high[rows], start) + _most(-line.rating_low[rows], start),
        waited=_most(waited[rows], start),
        costs=np.zeros((len(groups), len(COSTS))),
        expired=np.sort(line.number[late]),
        region_names=line.region_names,
    )


def _most(values: Floats, start: Whole) -> Floats:
    if len(start) == 1:
        return np.empty(0)
    most: Floats = np.maximum.reduceat(values, start[:-1])
    return most
