"""Tickets that have waited too long: a match for each, or others kept free for it, oldest first."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.overdue import oldest_with
from evenmatch.matchmaking.tick import NEAREST, Tick
from evenmatch.matchmaking.tickets import MOST_REGIONS, Whole
from evenmatch.matchmaking.view import role_room, rules_of

ANY = MOST_REGIONS  # a bit that all tickets have which can play anywhere
KEPT_FOR = 8  # tickets that lack players, for which those who are there are kept free
IN_TURN = 256  # tickets that are served by themselves in one tick; where there are more, half of them take turns
VISITS = 5_000_000  # tickets looked at for them, in one tick
OTHERS = 8  # times that somebody is left out with whom nobody else goes
REFUSED = 64  # times that somebody is left out for the odds
SECOND = 1_000_000


def serve_overdue(tick: Tick) -> None:
    """Make a match for each loose ticket that has waited too long, or keep others free for it, oldest first.

    Whoever can make a match with it once all windows are at their widest is kept free, the oldest first, so that nobody
    younger changes who they are, and the wait ends. For the first few that lack players even then, those who are there
    are kept free until the others come. Nobody who is overdue themselves is kept free for another, and all of them take
    part in the usual search too.
    """
    t = tick.view.t
    if tick.policy.overdue_after is None:
        return
    overdue = t["loose"] & (t["waited"] >= tick.policy.overdue_after)
    if not overdue.any():
        return
    by_age = np.lexsort((t["id"], -t["waited"]))
    search = _Search(tick, by_age)
    patient, kept_for = by_age[~overdue[by_age]], 0
    for first in _in_turn(by_age[overdue[by_age]], tick.now).tolist():
        if not tick.free[first] or search.make_one(first):
            continue
        later, refused = search.together(t["last_lo"], t["last_hi"], by_age, first)
        if not len(later) and not refused and kept_for < KEPT_FOR:
            later = search.those_there(patient, first)
            kept_for += len(later) > 1
        tick.free[later[~overdue[later]]] = False
        if search.visits > VISITS:
            return


def _in_turn(tickets: Whole, now: int) -> Whole:
    """Those whose turn it is: the oldest, and of the others another part each second."""
    if len(tickets) <= IN_TURN:
        return tickets
    oldest, others = tickets[: IN_TURN // 2], tickets[IN_TURN // 2 :]
    turn = (now // SECOND * (IN_TURN // 2) + np.arange(IN_TURN // 2)) % len(others)
    return np.concatenate((oldest, others[np.unique(turn)]))


class _Search:
    """Matches around one ticket."""

    def __init__(self, tick: Tick, by_age: Whole) -> None:
        self.tick, self.by_age, self.visits = tick, by_age, 0
        self.rules = rules_of(tick.policy, tick.now, tick.policy.team_size)
        self.room = role_room(tick.policy, tick.policy.team_size)
        self.marked, self.mark = np.zeros(len(by_age), np.int64), 0

    def make_one(self, first: int) -> bool:
        """Make a match with this ticket now: of those nearest to it, else of the oldest."""
        low = self.tick.view.t["low"]
        nearest = np.arange(max(first - NEAREST, 0), min(first + NEAREST + 1, len(low)))
        nearest = nearest[np.argsort(np.abs(low[nearest] - low[first]), kind="stable")]
        for order in (nearest, self.by_age):
            found, _ = self.together(self.tick.windows.lo, self.tick.windows.hi, order, first)
            if len(found):
                self.tick.make(np.array([0, len(found)]), found, self.rules)
                return True
        return False

    def together(self, lo: Floats, hi: Floats, order: Whole, first: int) -> tuple[Whole, bool]:
        """A match with this ticket of the first in `order` that go together, if any; whether odds refused others.

        The first region where there is one is taken. Where the odds would be beyond the limit the last is left out, and
        where nobody else goes with them the first, and others are looked for; not more often than the bounds say.
        """
        tick, was_refused = self.tick, False
        for region in self._regions(first):
            out, closed, refused = list[int](), 0, 0
            match = np.empty(0, np.int64)
            while closed < OTHERS and refused < REFUSED:
                found = self._gather(lo, hi, order, first, region)
                full = tick.view.t["size"][found].sum() == self.rules.teams * self.rules.size
                if full and tick.divided(np.array([0, len(found)]), np.sort(found), self.rules)[2].all():
                    match = np.sort(found)
                    break
                if len(found) < 2:
                    break
                out.append(int(found[-1 if full else 1]))
                tick.free[out[-1]] = False
                closed, refused = closed + (not full), refused + bool(full)
            tick.free[out] = True
            was_refused = was_refused or refused > 0
            if len(match):
                return match, was_refused
        return np.empty(0, np.int64), was_refused

    def those_there(self, order: Whole, first: int) -> Whole:
        """Those of `order` that could once be in a match with this ticket, in the region where they are most."""
        t, most = self.tick.view.t, np.empty(0, np.int64)
        for region in self._regions(first):
            found = self._gather(t["last_lo"], t["last_hi"], order, first, region)
            most = found if len(found) > len(most) else most
        return most

    def _gather(self, lo: Floats, hi: Floats, order: Whole, first: int, region: int) -> Whole:
        self.visits += len(order)
        self.mark += 1
        tick = self.tick
        return oldest_with(
            tick.view, lo, hi, order, first, region, tick.free, self.rules, self.room, self.marked, self.mark
        )

    def _regions(self, first: int) -> list[int]:
        able = int(self.tick.view.t["able"][first])
        return [region for region in self.tick.places.region.tolist() or [ANY] if able >> region & 1]
