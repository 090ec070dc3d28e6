"""Estimate how long tickets will wait, from arrivals, waiting players, the policy's steps and recent waits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.attribute_fields import agree, fields_of
from evenmatch.matchmaking.conflict import worth
from evenmatch.matchmaking.odds import LineUps, exceeds, predicted_odds
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import QueueView, Records
from evenmatch.matchmaking.tickets import Whole
from evenmatch.matchmaking.view import meets_in, rules_of, view_of
from evenmatch.matchmaking.wait_record import ExpectedWait, WaitEstimate, WaitKind
from evenmatch.policy import INFINITE, Policy

SHORTEST = 1.0  # seconds: the time to a tick or two; less is not expected
LEVEL = 20.0  # percentiles around a ticket whose arrivals count as arrivals near its level, at least
DUEL = (math.log(2), math.log(10))  # quantiles of an exponential distribution: of the wait for one player
TEAMS = (0.9, 2.4)  # for larger matches, from simulations at 1 to 20 players a second, see tools/wait_estimates.py
MIXED = (1.8, 7.0)  # the same where parties wait, which do not fit into every team
AT_ONCE = (0.5, 0.9)  # a match in the next tick, if ticks are a second apart
ROUNDING = 1e-9  # percentiles
THIN = 3.0  # where gathering takes more than this part of `overdue_after`, waits are longer in proportion
LONGEST = 2.0  # limit of this proportion; its square applies to the upper figure


def remember(queue: Queue, tickets: Sequence[int], now: int, policy: Policy) -> dict[int, WaitEstimate]:
    """Estimate the waits of tickets that have just joined, a few each second, and keep them in `queue.waits`.

    The caller reports how the waits ended: `queue.waits.end`. Proposals do not depend on any of this.
    """
    room = queue.waits.room(now)
    some = [ticket for ticket in tickets if ticket in queue][:room]
    if not some:
        return {}
    view, _ = view_of(queue, now, policy)
    estimates = {}
    for place in np.flatnonzero(np.isin(view.t["id"], some)).tolist():
        expected = expected_wait(queue, view, place, now, policy)
        if expected is not None:
            ticket = int(view.t["id"][place])
            estimates[ticket] = queue.waits.calibrated(expected, now)
            queue.waits.add(ticket, expected, now)
    return estimates


def estimate_wait(queue: Queue, view: QueueView, place: int, now: int, policy: Policy) -> WaitEstimate | None:
    """The estimated further wait of the ticket at a place of the view; None: no recent arrivals."""
    expected = expected_wait(queue, view, place, now, policy)
    return None if expected is None else queue.waits.calibrated(expected, now)


def expected_wait(queue: Queue, view: QueueView, place: int, now: int, policy: Policy) -> ExpectedWait | None:
    """The time in which the missing players of a match arrive; None: no recent arrivals.

    If r players per second arrive in a band of the allowed spread, and the best such band around the ticket has m
    players fewer than a match needs, these come in m / r seconds. Each step allows a wider band but begins later; the
    smallest time is used. In duels the players who wait are known: the ticket meets the first of them that it may
    meet, or the next player who arrives in the band.
    """
    own = view.t[place]
    kind = WaitKind(int(own["size"]), not own["loose"], bool(own["newcomers"]))
    is_duel = policy.players == 2
    opponent_in = _opponent_in(queue, view, place, now, policy) if is_duel else INFINITE
    if opponent_in < SHORTEST:
        return ExpectedWait(kind._replace(at_once=True), SHORTEST, *AT_ONCE)
    seconds = min(opponent_in, _gathered_in(queue, view, place, now, policy))
    if not seconds < INFINITE:
        return None
    seconds = max(seconds, SHORTEST)
    if is_duel:
        return ExpectedWait(kind, seconds, *DUEL)
    median, upper = MIXED if view.t["size"].max() > 1 and own["size"] < policy.team_size else TEAMS
    longer = 1.0
    if policy.overdue_after and own["loose"]:
        longer = min(max(THIN * seconds / policy.overdue_after, 1.0), LONGEST)
    return ExpectedWait(kind, seconds, median * longer, upper * longer * longer)


def _gathered_in(queue: Queue, view: QueueView, place: int, now: int, policy: Policy) -> float:
    """Seconds until the missing players of a match have arrived, at the step where that is soonest."""
    t, own = view.t, view.t[place]
    rate = queue.arrivals_a_second(now)
    suits = _suitable(view, place, policy)
    share = float((t["size"][suits].sum() + 1) / (t["size"].sum() + 1))
    middle, waited = float(own["low"] + own["high"]) / 2, float(own["waited"])
    points = queue.tickets[t["slot"][place]]
    chosen = float(points["chosen_hi"] - points["high"])
    usual = float(np.median(t["chosen_hi"] - t["high"]))
    totals = []
    for after, width in policy.steps:
        others = max(width, usual)
        band = min(max(width, chosen), others) if own["loose"] else min(chosen, others)
        level = max(band, LEVEL)
        near = share * _within(rate, middle - level / 2, middle + level / 2) * band / level
        if near > 0:
            missing = 1 if policy.players == 2 else max(policy.players - _most_in_band(t[suits], own, band), 1)
            totals.append(max(after - waited, 0.0) + missing / near)
    return min(totals, default=INFINITE)


def _suitable(view: QueueView, place: int, policy: Policy) -> Flags:
    """Mask of the tickets that share a region and a value of each attribute with this one, itself included."""
    own = view.t[place]
    suits: Flags = (view.t["able"] & own["able"]) > 0
    suits &= agree(view.accepts & view.accepts[place], fields_of(policy))
    suits[place] = True
    return suits


def _most_in_band(t: Records, own: Records, band: float) -> int:
    """The most players, with those of the ticket, in a band of percentiles that contains the ticket."""
    low, high = float(own["low"]), float(own["high"])
    reach = max(band, high - low) + ROUNDING
    near = (t["low"] >= high - reach) & (t["high"] <= low + reach)
    lows, sizes = t["low"][near], t["size"][near]
    before = np.concatenate(([0], np.cumsum(sizes)))
    begins = lows <= low
    ends = np.searchsorted(lows, lows[begins] + reach, side="right")
    return int((before[ends] - before[:-1][begins]).max())


def _opponent_in(queue: Queue, view: QueueView, place: int, now: int, policy: Policy) -> float:
    """Seconds until a single player may play a duel with one of those who wait now; infinite: with none of them."""
    t, own = view.t, view.t[place]
    waited = np.maximum(t["waited"], own["waited"])
    wait = meets_in(policy, t, place)
    mixed = (t["newcomers"] > 0) != (own["newcomers"] > 0)
    wait = np.maximum(wait, np.where(mixed, policy.newcomer_wait - waited, 0.0))
    wait[((t["able"] & own["able"]) == 0) | (np.arange(len(t)) == place)] = INFINITE
    for field in fields_of(policy):
        apart = (view.accepts & view.accepts[place] & np.uint64(field.named)) == 0
        latest = np.minimum(t["waited"], own["waited"])
        worth_left = INFINITE if field.worth is None else field.worth - latest
        wait = np.where(apart, np.maximum(wait, worth_left), wait)
    rules = rules_of(policy, now, policy.team_size)
    wait[np.abs(t["rating_sum"] - own["rating_sum"]) > rules.rating_cap] = INFINITE
    named = ((t["names"] & own["players"]) | (t["players"] & own["names"])) > 0
    for other in np.flatnonzero(named & (wait < INFINITE)).tolist():
        wait[other] = max(wait[other], worth(view, rules, place, other) - waited[other])
    rivals = np.flatnonzero(wait < INFINITE)
    wait[rivals[exceeds(predicted_odds(policy, _duels(view, place, rivals)), policy)]] = INFINITE
    return float(max(wait.min(), 0.0))


def _duels(view: QueueView, place: int, rivals: Whole) -> LineUps:
    """Duels of one single player with each of several others."""
    members = view.members[np.stack((np.full(len(rivals), view.t["first"][place]), view.t["first"][rivals]), 1).ravel()]
    return LineUps(2, np.arange(2 * len(rivals) + 1), members["player"], members["rating"])


def _within(rate: Floats, low: float, high: float) -> float:
    """Arrivals per second in this band, shifted to lie inside 0..100; partial bins count proportionally."""
    width = min(high - low, 100.0)
    low = min(max(low, 0.0), 100.0 - width)
    edges = np.arange(len(rate) + 1)
    share = np.clip(np.minimum(edges[1:], low + width) - np.maximum(edges[:-1], low), 0.0, 1.0)
    return float((rate * share).sum())
