"""Matches for overdue tickets, oldest first. Other tickets are reserved for those that cannot be matched yet."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.conflict import meets
from evenmatch.matchmaking.exact_teams import has_room
from evenmatch.matchmaking.records import KernelRules, QueueView, Records, compiled, lean_inner
from evenmatch.matchmaking.roles import add_party
from evenmatch.matchmaking.tick import TickState
from evenmatch.matchmaking.tickets import MOST_REGIONS, Whole
from evenmatch.matchmaking.view import role_room, rules_of
from evenmatch.policy import Policy


@lean_inner
def _add(v: QueueView, rules: KernelRules, room: Whole, counts: Whole, held: Whole, scratch: Whole, j: int) -> bool:
    """Count a ticket and return True if seats and roles suffice for it."""
    size = v.t[j].size
    counts[size] += 1
    if has_room(counts, rules.teams, rules.size, scratch) and (
        not rules.roles or add_party(held, room, rules.teams, v, j)
    ):
        return True
    counts[size] -= 1
    return False


@compiled
def oldest_with(
    v: QueueView,
    lo: Floats,
    hi: Floats,
    order: Whole,
    first: int,
    region: int,
    cell: np.uint64,
    free: Flags,
    rules: KernelRules,
    room: Whole,
    marked: Whole,
    mark: int,
) -> Whole:
    """Collect tickets compatible with `first`, in the given order, until the match is full or no ticket is left.

    lo, hi  windows that must contain all other players, by place in the view
    order   places in the view;  region  a bit number;  room  see view.role_room
    cell    values that all tickets must accept, see tick.cells_of; 0: anything
    marked  int64 (N,)  scratch: places with this mark are already collected
    """
    found, count = np.empty(rules.teams * rules.size, np.int64), 1
    counts, held = np.zeros(rules.size + 1, np.int64), np.zeros(len(room), np.int64)
    scratch = np.empty(max(rules.teams, rules.size + 1), np.int64)
    t = v.t[first]
    if t.size > rules.size or lo[first] > t.low or hi[first] < t.high:
        return found[:0]
    if not _add(v, rules, room, counts, held, scratch, first):
        return found[:0]
    found[0], marked[first] = first, mark
    seats, reach, top, low, bottom = t.size, hi[first], t.high, t.low, lo[first]
    rating_low, rating_high = t.rating_low, t.rating_high
    for j in order:
        t = v.t[j]
        if j == first or not free[j] or not t.able >> np.uint64(region) & np.uint64(1) or t.size > rules.size:
            continue
        if v.accepts[j] & cell != cell:
            continue
        if max(bottom, lo[j]) > min(low, t.low) or min(reach, hi[j]) < max(top, t.high):
            continue
        if max(rating_high, t.rating_high) - min(rating_low, t.rating_low) > rules.rating_cap:
            continue
        if meets(v, marked, mark, j) or not _add(v, rules, room, counts, held, scratch, j):
            continue
        found[count], marked[j] = j, mark
        count += 1
        seats += t.size
        reach, bottom, top, low = min(reach, hi[j]), max(bottom, lo[j]), max(top, t.high), min(low, t.low)
        rating_low, rating_high = min(rating_low, t.rating_low), max(rating_high, t.rating_high)
        if seats == rules.teams * rules.size:
            break
    return found[:count]


ANY = MOST_REGIONS  # the region bit of tickets that can play anywhere
INCOMPLETE = 8  # overdue tickets per tick that keep compatible players although too few of them wait
SERVED = 256  # overdue tickets per tick; if there are more, half of these places rotate among them
VISITS = 5_000_000  # tickets inspected per tick, at most
EXCLUDED = 8  # tickets that a search excludes, at most, because too few others are compatible with them
EXCLUDED_FOR_ODDS = 64  # tickets that a search excludes, at most, because of the odds


def serve_overdue(tick: TickState) -> None:
    """Create a match for each overdue loose ticket, or reserve other tickets for it, oldest first.

    The reserved tickets are the oldest that form a match with it once all windows are at their widest. Newer tickets do
    not replace them, so the wait ends. If too few such players wait, the first INCOMPLETE overdue tickets reserve the
    compatible ones until more join. Overdue tickets are never reserved, and the usual search includes them.
    """
    t = tick.view.t
    if tick.policy.overdue_after is None or t["waited"].max() < tick.policy.overdue_after:
        return
    overdue = t["loose"] & (t["waited"] >= overdue_from(t, tick.policy))
    if not overdue.any():
        return
    by_age = np.lexsort((t["id"], -t["waited"]))
    search = _Search(tick, by_age)
    not_overdue, incomplete = by_age[~overdue[by_age]], 0
    for first in _in_turn(by_age[overdue[by_age]], tick.now).tolist():
        if not tick.free[first] or search.create_match(first):
            continue
        later, refused = search.together(*search.widest, by_age, first)
        if not len(later) and not refused and incomplete < INCOMPLETE:
            later = search.available(not_overdue, first)
            incomplete += len(later) > 1
        tick.free[later[~overdue[later]]] = False
        if search.visits > VISITS:
            return


def overdue_from(t: Records, policy: Policy) -> float:
    """The wait in seconds from which loose tickets are overdue: Policy.overdue_from of the mean wait.

    The mean is over loose single players. It leaves out as many of the longest-waiting as a match has players, because
    these may be overdue or reserved.
    """
    waited = np.sort(t["waited"][t["loose"] & (t["size"] == 1)])[: -policy.players]
    return policy.overdue_from(float(waited.mean()) if len(waited) else 0.0)


def _in_turn(tickets: Whole, now: int) -> Whole:
    """The overdue tickets served in this tick: the oldest, and some of the others, which change every second."""
    if len(tickets) <= SERVED:
        return tickets
    oldest, others = tickets[: SERVED // 2], tickets[SERVED // 2 :]
    turn = (now // SECOND * (SERVED // 2) + np.arange(SERVED // 2)) % len(others)
    return np.concatenate((oldest, others[np.unique(turn)]))


class _Search:
    """The search for matches that contain a given ticket."""

    def __init__(self, tick: TickState, by_age: Whole) -> None:
        self.tick, self.by_age, self.visits = tick, by_age, 0
        self.rules = rules_of(tick.policy, tick.now, tick.policy.team_size)
        self.room = role_room(tick.policy, tick.policy.team_size)
        self.marked, self.mark = np.zeros(len(by_age), np.int64), 0

    @cached_property
    def widest(self) -> tuple[Floats, Floats]:
        """The widest windows of all tickets. Kernels need contiguous arrays, which fields of records are not."""
        t = self.tick.view.t
        return np.ascontiguousarray(t["last_lo"]), np.ascontiguousarray(t["last_hi"])

    def create_match(self, first: int) -> bool:
        """Create a match with this ticket now, from the oldest compatible tickets. Returns whether there is one."""
        match, _ = self.together(self.tick.windows.lo, self.tick.windows.hi, self.by_age, first)
        if len(match):
            self.tick.make(np.array([0, len(match)]), match, self.rules)
        return len(match) > 0

    def together(self, lo: Floats, hi: Floats, order: Whole, first: int) -> tuple[Whole, bool]:
        """The match with this ticket from the first compatible ones in `order`, and whether odds refused any.

        The match is empty if there is none. It is in the first region and cell that have one. If the odds exceed the
        cap, the search is repeated without the last ticket, at most EXCLUDED_FOR_ODDS times. If the collected tickets
        cannot fill the match, it is repeated without the first one, at most EXCLUDED times.
        """
        tick, was_refused = self.tick, False
        for region, cell in self._places(first):
            excluded, closed, refused = list[int](), 0, 0
            match = np.empty(0, np.int64)
            while closed < EXCLUDED and refused < EXCLUDED_FOR_ODDS:
                found = self._gather(lo, hi, order, first, region, cell)
                full = tick.view.t["size"][found].sum() == self.rules.teams * self.rules.size
                if full and tick.divided(np.array([0, len(found)]), np.sort(found), self.rules)[2].all():
                    match = np.sort(found)
                    break
                if len(found) < 2:
                    break
                excluded.append(int(found[-1 if full else 1]))
                tick.free[excluded[-1]] = False
                closed, refused = closed + (not full), refused + bool(full)
            tick.free[excluded] = True
            was_refused = was_refused or refused > 0
            if len(match):
                return match, was_refused
        return np.empty(0, np.int64), was_refused

    def available(self, order: Whole, first: int) -> Whole:
        """The tickets of `order` that fit this one at the widest windows, in the region and cell with the most."""
        most = np.empty(0, np.int64)
        for region, cell in self._places(first):
            found = self._gather(*self.widest, order, first, region, cell)
            most = found if len(found) > len(most) else most
        return most

    def _gather(self, lo: Floats, hi: Floats, order: Whole, first: int, region: int, cell: np.uint64) -> Whole:
        self.visits += len(order)
        self.mark += 1
        tick = self.tick
        return oldest_with(
            tick.view, lo, hi, order, first, region, cell, tick.free, self.rules, self.room, self.marked, self.mark
        )

    def _places(self, first: int) -> list[tuple[int, np.uint64]]:
        """The pairs of a region and a cell in which this ticket can play."""
        able, cells = int(self.tick.view.t["able"][first]), self.tick.cells
        own = cells[self.tick.view.accepts[first] & cells == cells]
        regions = [region for region in self.tick.places.region.tolist() or [ANY] if able >> region & 1]
        return [(region, cell) for region in regions for cell in own]
