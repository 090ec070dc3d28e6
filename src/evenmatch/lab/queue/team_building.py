"""Simple construction of matches from tickets, shared by all comparison matchmakers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.odds import LineUps, predicted_odds
from evenmatch.matchmaking.proposal import COSTS, Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import ANYWHERE, Masks, Whole, rows_of, starts
from evenmatch.policy import Policy

FEW = 12  # up to this many tickets, every split into two teams is tried


class QueueRow(NamedTuple):
    """Columns of N waiting tickets in order of percentile.

    number        int64 (N,)  ticket number;  queued: int64, microseconds;  size: int64, players;  loose: bool
    low, high     lowest and highest percentile of the members;  chosen_low, chosen_high: hull of their filters
    rating_low, rating_high, rating_sum  float64 (N,)  over the members
    able          uint64 (N,)  bit r: can play in region r
    ping          float64 (N, R)  worst ping of the members
    first         int64 (N,)  first member in `players` and `ratings`
    named_first, named_count  int64 (N,)  rows of `named` and `met`
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
    ratings: Floats
    named: Whole
    met: Whole
    region_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.number)


def line_up(queue: Queue) -> QueueRow:
    """Read the tickets of a queue; the only function here that depends on the queue's storage."""
    slots = queue.order()
    t, regions = queue.tickets[slots], tuple(queue.region_names)
    return QueueRow(
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
        ratings=queue.members["rating"],
        named=queue.named["player"],
        met=queue.named["met"],
        region_names=regions,
    )


@dataclass(frozen=True)
class Group:
    """Tickets of one match by row, and the team of each; `region` -1: any."""

    rows: Whole
    team: Whole
    region: int


def by_region(line: QueueRow, rows: Whole) -> list[tuple[int, Whole]]:
    """Group rows by the region of each ticket's best ping, keeping their order.

    Tickets that play anywhere are assigned to the region with the most tickets.
    """
    anywhere = line.able[rows] == ANYWHERE
    if not line.region_names or anywhere.all():
        return [(-1, rows)]
    best = np.argmin(line.ping[rows], axis=1)
    best[anywhere] = np.bincount(best[~anywhere]).argmax()
    return [(int(region), rows[best == region]) for region in np.unique(best)]


def fill(line: QueueRow, rows: Whole, policy: Policy, region: int = -1) -> list[Group]:
    """Fill as many matches as possible in this order; a ticket that fits no team is used for the next match."""
    size, players = line.size[rows], policy.players
    if not (size > 1).any():
        full_rows = rows[: len(rows) // players * players].reshape(-1, players)
        return [group for match_rows in full_rows if (group := split(line, match_rows, policy, region)) is not None]
    groups = []
    remaining = list(zip(rows.tolist(), size.tolist(), strict=True))
    while (team_of_row := _first_fit(remaining, policy)) is not None:
        chosen, team = np.array(list(team_of_row), np.int64), np.array(list(team_of_row.values()), np.int64)
        group = split(line, chosen, policy, region)
        groups.append(Group(*_by_team(chosen, team), region) if group is None else group)
        remaining = [row_and_size for row_and_size in remaining if row_and_size[0] not in team_of_row]
    return groups


def _first_fit(remaining: Sequence[tuple[int, int]], policy: Policy) -> dict[int, int] | None:
    """Team of each row in the first match that becomes full if each ticket joins the first team with room."""
    free, missing = [policy.team_size] * policy.teams, policy.players
    team_of_row: dict[int, int] = {}
    for row, size in remaining:
        team = next((index for index, room in enumerate(free) if room >= size), None)
        if team is not None:
            free[team] -= size
            missing -= size
            team_of_row[row] = team
            if not missing:
                return team_of_row
    return None


def split(line: QueueRow, rows: Whole, policy: Policy, region: int = -1) -> Group | None:
    """Split tickets into full teams with mean ratings as close as possible; None if parties do not fit.

    For two teams of few tickets every split is tried. Otherwise parties are assigned by descending size, then rating,
    each to the weakest team with room, relative to its number of players so far.
    """
    sizes, ratings = line.size[rows], line.rating_sum[rows]
    if policy.teams == 2 and len(rows) <= FEW:
        sides = _splits(len(rows), policy.team_size if (sizes == 1).all() else 0)
        full = sides[sides @ sizes == policy.team_size] if (sizes > 1).any() else sides
        if not len(full) or sizes.sum() != policy.players:
            return None
        difference = np.abs(2.0 * (full @ ratings) - ratings.sum())
        team = 1 - full[int(np.argmin(difference))]
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
    """All splits of `count` tickets, 1: on the side of the first ticket; `half`: only sides of this size, if not 0."""
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
    for row in np.lexsort((-ratings, -sizes)).tolist():
        with_room = [number for number in range(policy.teams) if room[number] >= sizes[row]]
        if not with_room:
            return None
        chosen = min(with_room, key=lambda number: (strength[number], -room[number], number))
        room[chosen] -= int(sizes[row])
        strength[chosen] += float(ratings[row]) - mean * int(sizes[row])
        team[row] = chosen
    return team if not any(room) else None


def predicted_odds_of(line: QueueRow, group: Group, policy: Policy) -> float:
    """Predicted odds of the first team, or with more than two teams of the strongest against the weakest."""
    rows, team = _by_team(group.rows, group.team)
    member = rows_of(line.first[rows], line.size[rows])
    players = np.bincount(team, line.size[rows]).astype(np.int64)
    line_ups = LineUps(len(players), starts(players), line.players[member], line.ratings[member])
    return float(predicted_odds(policy, line_ups)[0])


def proposals(line: QueueRow, now: int, policy: Policy, groups: Sequence[Group]) -> Proposals:
    """Convert groups to proposals without costs; tickets beyond the policy's longest wait are expired."""
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
            [line.ping[group.rows, group.region].max() if group.region >= 0 else 0.0 for group in groups], np.float64
        ),
        odds=np.array([predicted_odds_of(line, group, policy) for group in groups], np.float64),
        spread=_max_by_group(line.high[rows], start) + _max_by_group(-line.low[rows], start),
        rating_spread=_max_by_group(line.rating_high[rows], start) + _max_by_group(-line.rating_low[rows], start),
        waited=_max_by_group(waited[rows], start),
        costs=np.zeros((len(groups), len(COSTS))),
        expired=np.sort(line.number[late]),
        region_names=line.region_names,
    )


def _max_by_group(values: Floats, start: Whole) -> Floats:
    if len(start) == 1:
        return np.empty(0)
    maxima: Floats = np.maximum.reduceat(values, start[:-1])
    return maxima
