"""Simple construction of matches from tickets, shared by all comparison matchmakers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.runs import widths
from evenmatch.matchmaking.odds import LineUps, predicted_odds
from evenmatch.matchmaking.passes import pick
from evenmatch.matchmaking.proposal import COSTS, Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import ANYWHERE, FOREVER, Masks, Whole, rows_of, starts
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


def by_age(line: QueueRow) -> Whole:
    """All rows, the oldest ticket first."""
    return np.lexsort((line.number, line.queued))


def windows(line: QueueRow, now: int, policy: Policy) -> tuple[Floats, Floats]:
    """Lowest and highest percentile that each ticket's filter accepts now."""
    wide = np.where(line.loose, widths(policy, (now - line.queued) / SECOND), -np.inf)
    return np.minimum(line.chosen_low, line.low - wide), np.maximum(line.chosen_high, line.high + wide)


def allowed(line: QueueRow, group: Group, policy: Policy) -> bool:
    """Whether the odds are within the policy's cap and no player meets one they avoid."""
    odds = predicted_odds_of(line, group, policy)
    if policy.max_odds is not None and max(odds, 1.0 - odds) > policy.max_odds:
        return False
    name = rows_of(line.named_first[group.rows], line.named_count[group.rows])
    if not len(name):
        return True
    avoided = line.named[name][line.met[name] == FOREVER]
    return not np.isin(avoided, line.players[rows_of(line.first[group.rows], line.size[group.rows])]).any()


def conflicts(line: QueueRow) -> dict[int, set[int]]:
    """Rows that must not meet because one of their players avoids another, by row; both ways."""
    avoiding = np.repeat(np.arange(len(line)), line.named_count)
    name = rows_of(line.named_first, line.named_count)
    lasting = line.met[name] == FOREVER
    avoided = line.named[name][lasting].tolist()
    if not avoided:
        return {}
    members = line.players[rows_of(line.first, line.size)].tolist()
    row_of = dict(zip(members, np.repeat(np.arange(len(line)), line.size).tolist(), strict=True))
    apart: dict[int, set[int]] = {}
    for row, player in zip(avoiding[lasting].tolist(), avoided, strict=True):
        if (other := row_of.get(player)) is not None:
            apart.setdefault(row, set()).add(other)
            apart.setdefault(other, set()).add(row)
    return apart


WIDEST = 100.0  # percentiles: largest possible spread of a match


def greedy(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match runs of percentile neighbours that satisfy all filters, the smallest spread first, in one pass."""
    line, groups = line_up(queue), []
    bottom, top = windows(line, now, policy)
    for region, rows in by_region(line, np.arange(len(line))):
        first, stop, spread = find_runs(line, rows, bottom[rows], top[rows], policy)
        taken = np.zeros(len(rows), np.bool_)
        for index in np.argsort(spread, kind="stable").tolist():
            run = slice(int(first[index]), int(stop[index]))
            if taken[run].any():
                continue
            group = split(line, rows[run], policy, region)
            if group is not None and allowed(line, group, policy):
                groups.append(group)
                taken[run] = True
    return proposals(line, now, policy, groups)


def exact_dp(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match the disjoint runs of percentile neighbours with the most matches, and among those the least total spread.

    An exact optimum over the runs that `greedy` considers, by weighted interval scheduling. It looks at one tick alone:
    who waits longest does not count, and a match is made as soon as it is possible.
    """
    line, groups = line_up(queue), list[Group]()
    bottom, top = windows(line, now, policy)
    for region, rows in by_region(line, np.arange(len(line))):
        first, stop, spread = find_runs(line, rows, bottom[rows], top[rows], policy)
        last, value = np.full(len(rows), -1), np.zeros(len(rows))
        last[first] = stop - 1
        value[first] = WIDEST * (len(rows) + 1) - spread  # one match more is worth more than all spreads together
        groups += _schedule(line, rows, last, value, policy, region)
    return proposals(line, now, policy, groups)


def _schedule(line: QueueRow, rows: Whole, last: Whole, value: Floats, policy: Policy, region: int) -> list[Group]:
    """The best disjoint runs whose parties fit and whose odds and players are allowed; changes `last`.

    Only chosen runs are checked, and the choice is repeated without those refused, which gives the same optimum as
    checking all runs beforehand.
    """
    accepted: dict[int, Group] = {}
    while True:
        chosen = pick(last, value).tolist()
        for start in chosen:
            if start not in accepted:
                group = split(line, rows[start : last[start] + 1], policy, region)
                if group is not None and allowed(line, group, policy):
                    accepted[start] = group
                else:
                    last[start] = -1
        if all(start in accepted for start in chosen):
            return [accepted[start] for start in chosen]


def find_runs(line: QueueRow, rows: Whole, bottom: Floats, top: Floats, policy: Policy) -> tuple[Whole, Whole, Floats]:
    """Start, end and spread of the runs of neighbours that fill a match and satisfy all filters."""
    cumulative = starts(line.size[rows])
    first = np.arange(len(rows))
    stop = np.searchsorted(cumulative, cumulative[:-1] + policy.players)
    full = cumulative[np.minimum(stop, len(rows))] == cumulative[:-1] + policy.players
    first, stop = first[full], stop[full]
    if not len(first):
        return first, stop, np.empty(0)
    pairs = np.column_stack((first, stop)).ravel()

    def highest(values: Floats) -> Floats:
        maxima: Floats = np.maximum.reduceat(np.append(values, 0.0), pairs)[::2]  # a run may end after the last row
        return maxima

    low, high = -highest(-line.low[rows]), highest(line.high[rows])
    allowed = (highest(bottom) <= low) & (-highest(-top) >= high)
    if policy.max_rating_spread is not None:
        allowed &= highest(line.rating_high[rows]) + highest(-line.rating_low[rows]) <= policy.max_rating_spread
    return first[allowed], stop[allowed], (high - low)[allowed]


BATCH = 25  # matches whose players are in one batch of `flexmatch`


def pivot(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Match the longest-waiting ticket with the nearest ones in its own filter, like FlexMatch and PlayFab.

    Their rule expansions depend on the age of one ticket of the match; the filters of the others are ignored.
    """
    line, groups = line_up(queue), []
    bottoms, tops = windows(line, now, policy)
    free = np.ones(len(line), np.bool_)
    for region, rows in by_region(line, np.arange(len(line))):
        low, high, size, bottom, top = line.low[rows], line.high[rows], line.size[rows], bottoms[rows], tops[rows]
        first, stop = np.searchsorted(low, bottom), np.searchsorted(low, top, side="right")
        cumulative = starts(size)
        hopeful = cumulative[stop] - cumulative[first] >= policy.players
        for row in np.lexsort((line.number[rows], line.queued[rows])).tolist():
            if not hopeful[row] or not free[rows[row]]:
                continue
            nearby = np.arange(first[row], stop[row])
            nearby = nearby[free[rows[nearby]] & (high[nearby] <= top[row]) & (nearby != row)]
            if size[nearby].sum() + size[row] < policy.players:
                continue
            distance = np.abs(low[nearby] + high[nearby] - low[row] - high[row])
            candidates = np.concatenate(([row], nearby[np.argsort(distance, kind="stable")]))
            if groups_found := fill(line, rows[_enough(candidates, size, policy)], policy, region)[:1]:
                groups += groups_found
                free[groups_found[0].rows] = False
    return proposals(line, now, policy, groups)


def playfab(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Around the oldest ticket, add the nearest compatible ones within a spread that grows with its age, like PlayFab.

    The steps of PlayFab's documentation: the longest-waiting ticket is the seed, candidates are ranked by distance and
    added one by one, and a candidate that breaks a rule is skipped. The rule is a difference rule on percentiles: the
    spread of the group is at most the policy's step for the seed's age. Unlike PlayFab, all players' own filters,
    avoid lists and the cap on odds are respected, too. A group that is not full is dropped and its seed waits.
    """
    line, groups = line_up(queue), list[Group]()
    pool = _Pool(line, *windows(line, now, policy), _reach(line, now, policy), conflicts(line), policy)
    free = np.ones(len(line), np.bool_)
    for region, rows in by_region(line, np.arange(len(line))):
        lowest = np.maximum(pool.bottom, line.high - pool.reach)[rows]
        highest = np.minimum(pool.top, line.low + pool.reach)[rows]
        first = np.searchsorted(line.low[rows], lowest)
        stop = np.searchsorted(line.low[rows], highest, side="right")
        cumulative = starts(line.size[rows])
        hopeful = cumulative[np.maximum(first, stop)] - cumulative[first] >= policy.players
        for place in np.lexsort((line.number[rows], line.queued[rows])).tolist():
            if not hopeful[place] or not free[rows[place]]:
                continue
            candidates = rows[first[place] : stop[place]]
            chosen = pool.grow(int(rows[place]), candidates[free[candidates]])
            if chosen is None:
                continue
            for group in fill(line, chosen, policy, region):
                if allowed(line, group, policy):
                    groups.append(group)
                    free[chosen] = False
    return proposals(line, now, policy, groups)


@dataclass(frozen=True, eq=False)
class _Pool:
    """The waiting tickets, with what each of them accepts now.

    bottom, top  float64 (N,)  lowest and highest percentile that a ticket accepts
    reach        float64 (N,)  allowed spread of a match whose oldest ticket this is
    apart        rows that must not meet, by row
    """

    line: QueueRow
    bottom: Floats
    top: Floats
    reach: Floats
    apart: Mapping[int, set[int]]
    policy: Policy

    def grow(self, anchor: int, candidates: Whole) -> Whole | None:
        """Rows of a full match around the anchor, the nearest first; None if the candidates do not fill it."""
        line, policy = self.line, self.policy
        if line.high[anchor] - line.low[anchor] > self.reach[anchor]:  # a party that is itself too wide yet
            return None
        near = candidates[
            (self.bottom[candidates] <= line.low[anchor])
            & (self.top[candidates] >= line.high[anchor])
            & (line.high[candidates] <= self.top[anchor])
            & (candidates != anchor)
        ]
        if line.size[near].sum() + line.size[anchor] < policy.players:
            return None
        distance = np.abs(line.low[near] + line.high[near] - line.low[anchor] - line.high[anchor])
        growing = _GrowingMatch(self, anchor)
        for row in near[np.argsort(distance, kind="stable")].tolist():
            growing.add(row)
            if not growing.missing:
                return np.array(growing.rows, np.int64)
        return None


class _GrowingMatch:
    """A match that takes tickets one by one, as long as every rule holds for the whole of it."""

    def __init__(self, pool: _Pool, anchor: int) -> None:
        self.rows: list[int] = []
        self.missing = pool.policy.players
        self._pool = pool
        self._reach = float(pool.reach[anchor])
        self._room = [pool.policy.team_size] * pool.policy.teams
        self._low, self._high = np.inf, -np.inf
        self._bottom, self._top = -np.inf, np.inf
        self._rating_low, self._rating_high = np.inf, -np.inf
        self.add(anchor)

    def add(self, row: int) -> None:
        """Add a ticket unless a rule forbids it or no team has room for it."""
        pool, line = self._pool, self._pool.line
        size, most = int(line.size[row]), pool.policy.max_rating_spread
        low, high = min(self._low, line.low[row]), max(self._high, line.high[row])
        bottom, top = max(self._bottom, pool.bottom[row]), min(self._top, pool.top[row])
        rating_low = min(self._rating_low, line.rating_low[row])
        rating_high = max(self._rating_high, line.rating_high[row])
        team = next((index for index, room in enumerate(self._room) if room >= size), None)
        if (
            team is None
            or high - low > self._reach
            or low < bottom
            or high > top
            or (most is not None and rating_high - rating_low > most)
            or not pool.apart.get(row, set()).isdisjoint(self.rows)
        ):
            return
        self._low, self._high, self._bottom, self._top = low, high, bottom, top
        self._rating_low, self._rating_high = rating_low, rating_high
        self._room[team] -= size
        self.missing -= size
        self.rows.append(row)


def flexmatch(queue: Queue, now: int, policy: Policy) -> Proposals:
    """Cut the queue, the oldest first, into batches, and match each batch in percentile order, like FlexMatch.

    FlexMatch with `batchingPreference: sorted` and `expansionAgeSelection: oldest`. In a batch the oldest ticket is the
    anchor. It gets the run of consecutive sorted tickets with the smallest spread that contains it and lies within the
    policy's step to both sides of it; the step is that of the oldest ticket of the run. Unlike FlexMatch, all players'
    own filters, avoid lists and the cap on odds are respected, too. How large FlexMatch's batches are is not published.
    """
    line, groups = line_up(queue), list[Group]()
    bottom, top = windows(line, now, policy)
    reach = _reach(line, now, policy)
    for region, rows in by_region(line, by_age(line)):
        for begin in range(0, len(rows), BATCH * policy.players):
            batch = rows[begin : begin + BATCH * policy.players]
            groups += _match_batch(line, batch, (bottom, top, reach), policy, region)
    return proposals(line, now, policy, groups)


def _match_batch(
    line: QueueRow, batch: Whole, limits: tuple[Floats, Floats, Floats], policy: Policy, region: int
) -> list[Group]:
    """Matches of one batch; its rows are in order of age."""
    (bottom, top, reach), groups = limits, list[Group]()
    remaining = np.sort(batch)
    first, stop, spread = find_runs(line, remaining, bottom[remaining], top[remaining], policy)
    for anchor in batch.tolist():
        place = int(np.searchsorted(remaining, anchor))
        if place == len(remaining) or remaining[place] != anchor or not (first <= place).any():
            continue
        around = np.flatnonzero((first <= place) & (place < stop))
        for index in around[np.argsort(spread[around], kind="stable")].tolist():
            run = remaining[first[index] : stop[index]]
            step = reach[run].max()
            if line.low[anchor] - line.low[run].min() > step or line.high[run].max() - line.high[anchor] > step:
                continue
            group = split(line, run, policy, region)
            if group is not None and allowed(line, group, policy):
                groups.append(group)
                remaining = np.setdiff1d(remaining, run)
                first, stop, spread = find_runs(line, remaining, bottom[remaining], top[remaining], policy)
                break
    return groups


def _reach(line: QueueRow, now: int, policy: Policy) -> Floats:
    """Width of the policy's step for each ticket's age, whether its own filter widens or not."""
    return widths(policy, (now - line.queued) / SECOND)


def _enough(candidates: Whole, size: Whole, policy: Policy) -> Whole:
    """The first candidates: just enough if all are solo players, else twice as many."""
    wanted = policy.players if (size[candidates] == 1).all() else 2 * policy.players
    return candidates[: int(np.searchsorted(np.cumsum(size[candidates]), wanted)) + 1]


BINS = 10
WAVE = 15 * SECOND


class RivalMatchmaker(NamedTuple):
    """A comparison matchmaker, its one-line description, and whether it keeps the filters of all players."""

    propose: Callable[[Queue, int, Policy], Proposals]
    what: str
    keeps_filters: bool = False


def others() -> dict[str, RivalMatchmaker]:
    """Create the comparison matchmakers by name; a new set for each run, since `waves` has state."""
    return {
        "fifo": RivalMatchmaker(fifo, "First in, first out; ranks are ignored."),
        "bins": RivalMatchmaker(bins, f"{BINS} fixed bins of percentiles; first in, first out in each."),
        "greedy": RivalMatchmaker(
            greedy,
            "Neighbours in percentile that satisfy all filters; the match with the smallest spread first.",
            keeps_filters=True,
        ),
        "pivot": RivalMatchmaker(
            pivot, "The longest-waiting ticket is matched with the nearest players within its own widened filter."
        ),
        "waves": RivalMatchmaker(
            PercentileWaves(),
            f"Every {WAVE // SECOND} seconds the whole queue, sorted by percentile, is cut into matches.",
        ),
        "exact-dp": RivalMatchmaker(
            exact_dp,
            "Neighbours in percentile that satisfy all filters; most matches, then the least total spread.",
            keeps_filters=True,
        ),
        "playfab": RivalMatchmaker(
            playfab,
            "The nearest tickets around the longest-waiting one that satisfy all filters, in a spread that grows with "
            "its age.",
            keeps_filters=True,
        ),
        "flexmatch": RivalMatchmaker(
            flexmatch,
            "Batches of the oldest tickets in order of percentile; neighbours around the oldest that satisfy all "
            "filters.",
            keeps_filters=True,
        ),
    }


def fifo(queue: Queue, now: int, policy: Policy) -> Proposals:
    """First in, first out, as Nakama without query properties or Open Match's first example."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, by_age(line)):
        groups += fill(line, rows, policy, region)
    return proposals(line, now, policy, groups)


def bins(queue: Queue, now: int, policy: Policy) -> Proposals:
    """First in, first out within ten fixed percentile bands, like queues by league or bracket in many games."""
    line, groups = line_up(queue), []
    for region, rows in by_region(line, by_age(line)):
        middle = (line.low[rows] + line.high[rows]) / 2.0
        band = np.minimum(middle * BINS // 100, BINS - 1)
        for number in np.unique(band):
            groups += fill(line, rows[band == number], policy, region)
    return proposals(line, now, policy, groups)


class PercentileWaves:
    """Every 15 seconds, cut the queue in percentile order into matches from the bottom up, like lichess.

    Filters are ignored; players left over at the top wait for the next wave.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def __call__(self, queue: Queue, now: int, policy: Policy) -> Proposals:
        """Return the matches of the wave that is due, if any; a time before the last call restarts the waves."""
        last, self._last = self._last, now
        line, groups = line_up(queue), list[Group]()
        if last is not None and now // WAVE > last // WAVE:
            for region, rows in by_region(line, np.arange(len(line))):
                groups += fill(line, rows, policy, region)
        return proposals(line, now, policy, groups)
