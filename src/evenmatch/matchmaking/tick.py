"""One tick at work: who is still free, and the matches made so far."""

from __future__ import annotations

import math

import numpy as np

from evenmatch.errors import BadParameterError
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.balance import companions, divide, means
from evenmatch.matchmaking.passes import EVERYWHERE, Places, Windows, make_matches
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import Records, Rules, View
from evenmatch.matchmaking.tickets import ANYWHERE, Whole, starts
from evenmatch.matchmaking.view import role_room, rules_of

TRIES = 8  # times that others are looked for where odds were beyond the limit, in one tick
DIGITS = 9  # of odds: exp and tanh differ between processors in their last bits
NEAREST = 256  # places up and down the order: where others are looked for first, or again


class Tick:
    """One tick at work: who is still free, and the matches made so far."""

    def __init__(self, queue: Queue, view: View, now: int, policy: Policy) -> None:
        self.view, self.now, self.policy = view, now, policy
        self.free = view.t["able"] > 0
        self.made: list[tuple[Whole, Whole, Whole, Floats]] = []  # start, ticket, team, odds
        # a point between the teams' means, near even odds by Elo's curve; rounded as odds are
        self.gap_cost = round(25 * math.log(10) * policy.odds_cost / policy.odds_scale, DIGITS)
        self.places = _places(queue, view.t)
        self.windows = Windows(*(np.ascontiguousarray(view.t[name]) for name in Windows._fields))

    def matches(self) -> tuple[Whole, Whole, Whole, Floats]:
        """All matches made: first ticket of each, places in the view, teams, odds."""
        none = np.empty(0, np.int64)
        sizes = np.concatenate((none, *(np.diff(start) for start, *_ in self.made)))
        ticket = np.concatenate((none, *(ticket for _, ticket, _, _ in self.made)))
        team = np.concatenate((none, *(team for _, _, team, _ in self.made)))
        odds = np.concatenate((np.empty(0), *(odds for *_, odds in self.made)))
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), ticket, team, odds

    def serve(self, size: int) -> None:
        """Make matches with teams of `size`, until none is found or too many were refused for their odds.

        Of a match that was refused, the two tickets whose ratings are farthest apart are kept apart in this tick, and
        others are looked for near by.
        """
        t, policy = self.view.t, self.policy
        able = t["size"] <= size
        if size < policy.team_size:
            able &= t["waited"] >= policy.smaller_after
        rules, room = rules_of(policy, self.now, size), role_room(policy, size)
        near = np.ones(len(t), np.bool_)
        for _ in range(TRIES):
            taken = ~(self.free & able & near)
            start, ticket = make_matches(self.view, self.windows, self.places, taken, rules, room)
            good = self.make(start, ticket, rules)
            if good.all():
                return
            refused = [ticket[start[match] : start[match + 1]] for match in np.flatnonzero(~good)]
            self.view = _kept_apart(self.view, np.array([_farthest(t, match) for match in refused]))
            near = _around(np.concatenate(refused), len(t))

    def make(self, start: Whole, ticket: Whole, rules: Rules) -> Flags:
        """Divide matches into teams and keep those within the odds; which of them these are."""
        team, odds, good = self.divided(start, ticket, rules)
        kept = np.repeat(good, np.diff(start))
        sizes = np.diff(start)[good]
        self.made.append(
            (np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), ticket[kept], team[kept], odds[good])
        )
        self.free[ticket[kept]] = False
        return good

    def divided(self, start: Whole, ticket: Whole, rules: Rules) -> tuple[Whole, Floats, Flags]:
        """The team of each ticket, the odds of each match, and which matches can be made."""
        table = companions(rules.size) if rules.teams == 2 else companions(1)
        team = np.zeros(len(ticket), np.int64)
        good = divide(self.view, rules, role_room(self.policy, rules.size), start, ticket, table, self.gap_cost, team)
        odds = _foretold(self.policy, *means(self.view, rules, start, ticket, team, good))
        if self.policy.max_odds is None:
            return team, odds, good > 0
        return team, odds, (good > 0) & (np.maximum(odds, 1.0 - odds) <= self.policy.max_odds)


def _farthest(t: Records, match: Whole) -> tuple[int, int]:
    """The two tickets of a match whose mean ratings are farthest apart."""
    rating = t["rating_sum"][match] / t["size"][match]
    return int(match[rating.argmin()]), int(match[len(match) - 1 - rating[::-1].argmax()])


def _kept_apart(view: View, pairs: Whole) -> View:
    """The same where these pairs of tickets, int64 (K, 2), are not to meet either."""
    count = len(view.t)
    owner = np.concatenate((np.repeat(np.arange(count), np.diff(view.apart_start)), pairs[:, 0], pairs[:, 1]))
    other = np.concatenate((view.apart, pairs[:, 1], pairs[:, 0]))
    order = np.argsort(owner, kind="stable")
    return view._replace(apart_start=starts(np.bincount(owner, minlength=count)), apart=other[order])


def _around(places: Whole, count: int) -> Flags:
    """Which of so many places are near any of these."""
    change = np.zeros(count + 1, np.int64)
    np.add.at(change, np.maximum(places - NEAREST, 0), 1)
    np.add.at(change, np.minimum(places + NEAREST + 1, count), -1)
    near: Flags = np.cumsum(change[:-1]) > 0
    return near


def _places(queue: Queue, t: Records) -> Places:
    """The regions where somebody can play, and where each ticket is at home."""
    told = t["able"][t["able"] != ANYWHERE]
    names = sorted(enumerate(queue.region_names), key=lambda one: one[1])
    region = np.array([bit for bit, _ in names if (told >> np.uint64(bit) & np.uint64(1)).any()], np.int64)
    home = np.full(len(t), EVERYWHERE, np.int64)
    if len(region):
        can = t["able"][:, None] >> region.astype(np.uint64) & np.uint64(1) == 1
        best = np.where(can, queue.ping[t["slot"]][:, region], np.inf).argmin(axis=1)
        home = np.where(t["able"] == ANYWHERE, EVERYWHERE, region[best])
    return Places(region, home)


def _foretold(policy: Policy, first: Floats, second: Floats) -> Floats:
    """The odds of the first teams; nan where a mean is."""
    odds = np.full(len(first), np.nan)
    known = ~np.isnan(first)
    told = np.asarray(policy.foretell(first[known], second[known]), np.float64)
    if told.shape != first[known].shape or not ((told >= 0) & (told <= 1)).all():
        raise BadParameterError("the policy's odds give something else; accepted is a chance of 0..1 for each match")
    odds[known] = np.round(told, DIGITS)
    return odds
