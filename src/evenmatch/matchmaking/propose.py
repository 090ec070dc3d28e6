"""The matchmaker: a queue, a moment and a policy in, proposed matches out."""

from __future__ import annotations

import numpy as np

from evenmatch.errors import BadParameterError
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.balance import companions, divide, means
from evenmatch.matchmaking.collect import LOOK, SUMS
from evenmatch.matchmaking.find import find
from evenmatch.matchmaking.overdue import oldest_with
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import Rules, View
from evenmatch.matchmaking.telling import tell
from evenmatch.matchmaking.tickets import ANYWHERE, Whole
from evenmatch.matchmaking.view import role_room, rules_of, view_of

FRUITLESS = 256  # overdue tickets for which nobody is found, in one tick, before the others wait for the next


def propose(queue: Queue, now: int, policy: Policy) -> Proposals:
    """The matches that can begin now; the queue stays as it is.

    now  microseconds since the epoch
    The same tickets, moment and policy give the same matches, whatever the order in which the tickets joined. No
    window, ping limit, avoid list, role or party is ever broken; preferences are weighed in seconds of waiting.
    Raises BadParameterError where the policy's `odds` give anything but chances.
    """
    view, expired = view_of(queue, now, policy)
    tick = Tick(queue, view, now, policy)
    if len(view.t):
        tick.serve_overdue()
        smallest = policy.team_size if policy.min_team_size is None else policy.min_team_size
        for size in range(policy.team_size, smallest - 1, -1):
            tick.serve(size)
    return tell(queue, view, policy, now, tick.matches(), expired)


class Tick:
    """One tick at work: who is still free, and the matches made so far."""

    def __init__(self, queue: Queue, view: View, now: int, policy: Policy) -> None:
        self.view, self.now, self.policy = view, now, policy
        self.free = np.ones(len(view.t), np.bool_)
        self.made: list[tuple[Whole, Whole, Whole, Floats]] = []  # start, ticket, team, odds
        self.sums = np.zeros(1, SUMS)
        self.gap_cost = _gap_cost(view, policy)
        self.regions = _regions(queue, view)
        self.home = _home(queue, view, self.regions)

    def matches(self) -> tuple[Whole, Whole, Whole, Floats]:
        """All matches made: first ticket of each, places in the view, teams, odds."""
        none = np.empty(0, np.int64)
        sizes = np.concatenate((none, *(np.diff(start) for start, *_ in self.made)))
        ticket = np.concatenate((none, *(ticket for _, ticket, _, _ in self.made)))
        team = np.concatenate((none, *(team for _, _, team, _ in self.made)))
        odds = np.concatenate((np.empty(0), *(odds for *_, odds in self.made)))
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), ticket, team, odds

    def serve(self, size: int) -> None:
        """Make matches with teams of `size`: inside chosen filters first, like against like first, at home first."""
        v, policy = self.view.t, self.policy
        able = self.free & (v["size"] <= size)
        if size < policy.team_size:
            able &= v["waited"] >= policy.smaller_after
        wider = bool((able & ((v["lo"] < v["chosen_lo"]) | (v["hi"] > v["chosen_hi"]))).any())
        parties = size > 1 and bool((v["size"][able] > 1).any())
        for lo, hi in ((v["chosen_lo"], v["chosen_hi"]), (v["lo"], v["hi"]))[: 1 + wider]:
            for mixed in (False, True)[: 1 + parties]:
                rules = rules_of(policy, self.now, size, mixed=mixed)
                for at_home in (True, False):
                    for region in self.regions if at_home or len(self.regions) > 1 else ():
                        self._settle(lo, hi, able, region, rules, at_home=at_home)

    def _settle(self, lo: Floats, hi: Floats, able: Flags, region: int, rules: Rules, *, at_home: bool) -> None:
        """Make matches in a region until none is found."""
        here = self.free & able
        if len(self.regions) > 1:
            here &= self.home == region if at_home else self._can_play(region)
        at = np.flatnonzero(here)
        barred = np.zeros(len(here), np.bool_)
        while self.view.t["size"][at].sum() >= rules.teams * rules.size:
            start, ticket = find(self.view, lo, hi, at, rules, self._room(rules), barred, self.sums)
            if len(start) == 1:
                return
            good = self._make(start, ticket, rules)
            barred[ticket[start[:-1]][~good]] = True
            at = at[self.free[at]]

    def _make(self, start: Whole, ticket: Whole, rules: Rules) -> Flags:
        """Divide matches into teams and keep those within the odds; which of them these are."""
        team, odds, good = self._divided(start, ticket, rules)
        kept = np.repeat(good, np.diff(start))
        sizes = np.diff(start)[good]
        self.made.append(
            (np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), ticket[kept], team[kept], odds[good])
        )
        self.free[ticket[kept]] = False
        return good

    def _divided(self, start: Whole, ticket: Whole, rules: Rules) -> tuple[Whole, Floats, Flags]:
        """The team of each ticket, the odds of each match, and which matches can be made."""
        table = companions(rules.size) if rules.teams == 2 else companions(1)
        team = np.zeros(len(ticket), np.int64)
        good = divide(self.view, rules, self._room(rules), start, ticket, table, self.gap_cost, team)
        odds = _foretold(self.policy, *means(self.view, rules, start, ticket, team, good))
        if self.policy.max_odds is None:
            return team, odds, good > 0
        return team, odds, (good > 0) & (np.maximum(odds, 1.0 - odds) <= self.policy.max_odds)

    def serve_overdue(self) -> None:
        """Make, or keep free, a match for each loose ticket that has waited too long, oldest first.

        Whoever can make a match with it once all windows are at their widest is kept free, the oldest first, so that
        nobody younger takes part in the wait, and it ends.
        """
        v = self.view.t
        overdue = v["loose"] & (v["waited"] >= self.policy.overdue_after)
        if not overdue.any():
            return
        by_age = np.lexsort((v["id"], -v["waited"]))
        rules = rules_of(self.policy, self.now, self.policy.team_size, mixed=True)
        fruitless = 0
        for first in by_age[overdue[by_age]].tolist():
            if not self.free[first] or fruitless == FRUITLESS:
                continue
            if self._serve_one(first, by_age, rules):
                continue
            later = self._together(v["last_lo"], v["last_hi"], by_age, first, rules)
            fruitless += not len(later)
            self.free[later] = False

    def _serve_one(self, first: int, by_age: Whole, rules: Rules) -> bool:
        """Make a match with this ticket now: of those nearest to it, else of the oldest."""
        nearest = np.arange(max(first - LOOK, 0), min(first + LOOK + 1, len(by_age)))
        nearest = nearest[np.argsort(np.abs(self.view.t["low"][nearest] - self.view.t["low"][first]), kind="stable")]
        for order in (nearest, by_age):
            together = self._together(self.view.t["lo"], self.view.t["hi"], order, first, rules)
            if len(together):
                self._make(np.array([0, len(together)]), np.sort(together), rules)
                return True
        return False

    def _together(self, lo: Floats, hi: Floats, order: Whole, first: int, rules: Rules) -> Whole:
        """A match with this ticket of the first in `order` that go together, in the best region where there is one."""
        for region in self.regions:
            if self.view.t["able"][first] >> np.uint64(max(region, 0)) & np.uint64(1):
                found = oldest_with(
                    self.view, lo, hi, order, first, max(region, 0), self.free, rules, self._room(rules)
                )
                if len(found) and self._divided(np.array([0, len(found)]), np.sort(found), rules)[2].all():
                    return found
        return np.empty(0, np.int64)

    def _room(self, rules: Rules) -> Whole:
        return role_room(self.policy, rules.size)

    def _can_play(self, region: int) -> Flags:
        can: Flags = self.view.t["able"] >> np.uint64(region) & np.uint64(1) == 1
        return can


def _regions(queue: Queue, view: View) -> list[int]:
    """The regions' bits by name; one that stands for none where nobody told any."""
    if (view.t["able"] == ANYWHERE).all():
        return [-1]
    return [queue.region_names.index(name) for name in sorted(queue.region_names)]


def _home(queue: Queue, view: View, regions: list[int]) -> Whole:
    """Where each ticket plays with the best worst ping, the first by name of equals; int64 (N,)."""
    if len(regions) == 1:
        return np.full(len(view.t), regions[0], np.int64)
    ping = queue.ping[view.t["slot"]][:, regions]
    able = view.t["able"][:, None] >> np.array(regions, np.uint64) & np.uint64(1) == 1
    home: Whole = np.array(regions)[np.where(able, ping, np.inf).argmin(axis=1)]
    return home


def _gap_cost(view: View, policy: Policy) -> float:
    """Seconds that a point between two teams' mean ratings costs, near even odds."""
    ratings = view.t["rating_sum"] / view.t["size"]
    if not len(ratings):
        return 0.0
    middle, step = float(ratings.mean()), max(float(ratings.std()), 1e-6 * abs(float(ratings.mean())), 1e-9) * 1e-3
    odds = _foretold(policy, np.array([middle + step]), np.array([middle - step]))
    return policy.odds_cost * 100 * abs(float(odds[0]) - 0.5) / (2 * step)


def _foretold(policy: Policy, first: Floats, second: Floats) -> Floats:
    """The odds of the first teams; nan where a mean is."""
    odds = np.full(len(first), np.nan)
    known = ~np.isnan(first)
    told = np.asarray(policy.foretell(first[known], second[known]), np.float64)
    if told.shape != first[known].shape or not ((told >= 0) & (told <= 1)).all():
        raise BadParameterError("the policy's odds give something else; accepted is a chance of 0..1 for each match")
    odds[known] = told
    return odds
