"""Explain what a ticket waits for, with an estimate of the wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.attribute_fields import AttributeField, Fields, agree, fields_of
from evenmatch.matchmaking.conflict import worth
from evenmatch.matchmaking.odds import LineUps, exceeds, predicted_odds
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import QueueView
from evenmatch.matchmaking.tickets import Tickets, Whole
from evenmatch.matchmaking.view import meets_in, rules_of, view_of
from evenmatch.policy import INFINITE, Policy

MEDIAN, UPPER = 0.8, 2.7  # the median wait and the 90 % quantile, as multiples of the mean wait
REACHES = (5.0, 10.0, 20.0, 50.0)  # percentiles around a level, whose arrivals are counted until they are
ENOUGH = 30.0  # players
SETTLED = 2.0  # a queue has settled after this many times the time in which a match gathers
MOST_KIND = 4.0  # largest ratio of the waits of parties and of all


class AttributeCount(NamedTuple):
    """The values of an attribute that a ticket accepts, and how many players of other tickets accept any of them."""

    values: tuple[str, ...]
    players: int


@dataclass(frozen=True)
class Waiting:
    """Why a ticket has no match yet.

    waited       seconds so far
    window       the present range of percentiles in which all other players must be; NaN: not shown
    widens_in    seconds until the window widens next; None: it does not widen any more (`strict`: it never widens)
    widens_to    the window after that; None: it does not widen, or that is not shown
    needed       how many more players a match needs
    within       players of other tickets that are individually compatible with this one now
    estimate     further seconds until a match, from recent arrivals near this level: half wait less; None: no arrivals
    upper        nine of ten wait less than this; None: no arrivals
    hindrances   sentences that say why the ticket can never be matched under this policy; normally empty
    attributes   how many of the waiting players of other tickets share a value of each attribute and a map with this
                 one; only attributes for which those are not all, and whose wish the ticket has not waived
    others       waiting players of other tickets
    """

    ticket: int
    waited: float
    strict: bool
    window: tuple[float, float]
    widens_in: float | None
    widens_to: tuple[float, float] | None
    needed: int
    within: int
    estimate: float | None
    upper: float | None
    hindrances: tuple[str, ...]
    attributes: Mapping[str, AttributeCount]
    others: int

    @property
    def sentences(self) -> list[str]:
        """The explanation as sentences for players."""
        if self.hindrances:
            return list(self.hindrances)
        low, high = self.window
        between = "" if math.isnan(low) else f" between percentile {max(low, 0):.4g} and {min(high, 100):.4g}"
        lines = [
            f"waiting for {self.needed} more{between}: "
            f"{self.within} of the waiting players could be in a match with you now"
        ]
        lines += [
            f"{self.others} other player{' waits' if self.others == 1 else 's wait'}, {count.players} of them "
            f"accept{'s' if count.players == 1 else ''} {_written(name, count.values)}"
            for name, count in self.attributes.items()
        ]
        if self.widens_in is not None:
            to = "" if self.widens_to is None else " to percentile {:.4g} to {:.4g}".format(*_inside(self.widens_to))
            lines.append(f"in {self.widens_in:.0f} s the search widens{to}")
        elif self.strict:
            lines.append("the filter is strict: it does not widen")
        if self.estimate is None:
            lines.append("no player near your level joined lately, so there is no estimate")
        elif self.estimate < 1:
            lines.append("a match is likely at once")
        else:
            upper = "" if self.upper is None else f"; nine of ten find one within {_rounded(self.upper)}"
            lines.append(f"a match is likely in about {_rounded(self.estimate)}{upper}")
        return lines


def _rounded(seconds: float) -> str:
    """A wait as players read it: to 5 s from 20 s on, to 10 s from a minute on, in minutes from five minutes on."""
    if seconds >= 300:
        return f"{seconds / 60:.0f} min"
    step = 1 if seconds < 20 else 5 if seconds < 60 else 10
    return f"{max(round(seconds / step) * step, 1)} s"


def _written(name: str, values: tuple[str, ...]) -> str:
    return f"{name} {' or '.join(values)}"


def _inside(window: tuple[float, float]) -> tuple[float, float]:
    return max(window[0], 0), min(window[1], 100)


def why(ticket: int, queue: Queue, now: int, policy: Policy) -> Waiting:
    """Explain what a ticket waits for. Raises InputError if it is not waiting in this queue."""
    if ticket not in queue:
        raise InputError(f"ticket {ticket} is not waiting here; expected a waiting ticket")
    view, _ = view_of(queue, now, policy)
    place = np.flatnonzero(view.t["id"] == ticket)
    columns = queue.tickets_of((ticket,))
    waited = max((now - int(columns.queued[0])) / SECOND, 0.0)
    if not len(place):
        return _left_out(ticket, waited, bool(columns.loose.all()), len(columns.player), policy)
    own, points = view.t[place[0]], queue.tickets[view.t["slot"][place[0]]]
    low, high = float(points["low"]), float(points["high"])
    window = (float(own["lo"]), float(own["hi"]))
    widens_in, widens_to = None, None
    for after, width in policy.steps:
        wider = (min(window[0], low - width), max(window[1], high + width))
        if own["loose"] and after > waited and wider != window:
            widens_in, widens_to = after - waited, wider
            break
    hindrances = [] if own["able"] else ["every region is too far away: no ping is within the limit of this queue"]
    fields = fields_of(policy)
    accepts = int(view.accepts[place[0]])
    hindrances += [_undeclared(field, columns) for field in fields if not accepts & field.bits]
    estimate, upper = _estimates(queue, view, int(place[0]), now, policy)
    return Waiting(
        ticket=ticket,
        waited=waited,
        strict=not own["loose"],
        window=window,
        widens_in=widens_in,
        widens_to=widens_to,
        needed=policy.players - int(own["size"]),
        within=int(view.t["size"][_compatible_tickets(view, int(place[0]), now, policy)].sum()),
        estimate=estimate,
        upper=upper,
        hindrances=tuple(hindrances),
        attributes=_attribute_counts(view, int(place[0]), fields),
        others=int(view.t["size"].sum() - own["size"]),
    )


def _undeclared(field: AttributeField, columns: Tickets) -> str:
    """The reason why a ticket can never be matched that accepts no declared value of an attribute."""
    accepted = dict(columns.choices[columns.choice[0]].accepted).get(field.name, field.values)
    return f"{_written(field.name, accepted)} is not played here; expected {' or '.join(field.values)}"


def _attribute_counts(view: QueueView, place: int, fields: Fields) -> dict[str, AttributeCount]:
    """For each attribute by which waiting players are kept apart from this ticket: see Waiting.attributes."""
    accepts, size, counts = int(view.accepts[place]), view.t["size"], {}
    total = int(size.sum())
    for field in fields:
        if accepts & field.waived:
            continue
        players = int(size[(view.accepts & np.uint64(accepts & field.named)) > 0].sum())
        if 0 < players < total:
            counts[field.name] = AttributeCount(field.common(accepts), players - int(size[place]))
    return counts


def _left_out(ticket: int, waited: float, loose: bool, size: int, policy: Policy) -> Waiting:
    if size > policy.team_size:
        reason = f"a party of {size} is larger than a team of {policy.team_size}"
    else:
        reason = f"the ticket has waited {waited:.0f} s, the longest wait in this queue is {policy.max_wait:g} s"
    none = (float("nan"), float("nan"))
    return Waiting(
        ticket, waited, not loose, none, None, None, max(policy.players - size, 0), 0, None, None, (reason,), {}, 0
    )


def _compatible_tickets(view: QueueView, place: int, now: int, policy: Policy) -> Flags:
    """Mask of the tickets that are individually compatible with this one."""
    t, own = view.t, view.t[place]
    rules = rules_of(policy, now, policy.team_size)
    compatible: Flags = (
        (t["low"] >= own["lo"]) & (t["high"] <= own["hi"]) & (t["lo"] <= own["low"]) & (t["hi"] >= own["high"])
    )
    compatible &= (t["able"] & own["able"]) > 0
    compatible &= agree(view.accepts & view.accepts[place], fields_of(policy))
    spread = np.maximum(t["rating_high"], own["rating_high"]) - np.minimum(t["rating_low"], own["rating_low"])
    compatible &= spread <= rules.rating_cap
    compatible[place] = False
    named = ((t["names"] & own["players"]) | (t["players"] & own["names"])) > 0
    for other in np.flatnonzero(compatible & named).tolist():
        compatible[other] = not np.isinf(worth(view, rules, place, other))
    return compatible


def _estimates(
    queue: Queue, view: QueueView, place: int, now: int, policy: Policy
) -> tuple[float | None, float | None]:
    """Estimates of the further wait in seconds: the median, and the 90 % quantile; None: no recent arrivals.

    The mean wait follows from Little's law: the players who wait near this level, divided by their arrivals per second
    in the last ten minutes; parties and single players by the mean of their waits so far. Until the queue has settled,
    it is the time in which the players of a match gather in a band of the first step, (k - 1)² / (2 (k + 1)) arrivals.
    In duels the players who wait are known: the ticket meets the first of them that it may meet, or the next player
    who arrives. MEDIAN and UPPER are measured: docs/matchmaking.md.
    """
    if policy.players == 2:
        soonest = _opponent_in(queue, view, place, now, policy)
        if soonest == 0:
            return 0.0, 0.0
        mean = min(_arrival_in(queue, view, place, queue.arrivals_a_second(now), policy), soonest)
    else:
        mean = _usual_wait(queue, view, place, now, policy)
    return (mean * MEDIAN, mean * UPPER) if mean < INFINITE else (None, None)


def _usual_wait(queue: Queue, view: QueueView, place: int, now: int, policy: Policy) -> float:
    """The mean wait in seconds near the level of a ticket; infinite without recent arrivals."""
    t, own, rate = view.t, view.t[place], queue.arrivals_a_second(now)
    middle = float(own["low"] + own["high"]) / 2
    for reach in REACHES:
        width = min(2 * reach, 100.0)
        low = min(max(middle - reach, 0.0), 100.0 - width)
        arrivals = _within(rate, low, low + width)
        if arrivals * queue.known_for(now) >= ENOUGH:
            break
    if arrivals == 0:
        return INFINITE
    law = (policy.players - 1) ** 2 / (2 * (policy.players + 1))
    gathered = law / (arrivals * policy.steps[0][1] / width) if policy.steps[0][1] > 0 else INFINITE
    if queue.known_for(now) < SETTLED * gathered < INFINITE:
        return gathered
    near = (t["high"] >= low) & (t["low"] <= low + width)
    alike = near & ((t["size"] > 1) == (own["size"] > 1))
    ages = float(t["waited"][alike].mean()), float(t["waited"][near].mean())
    kind = min(max(ages[0] / ages[1], 1 / MOST_KIND), MOST_KIND) if ages[1] > 0 else 1.0
    return float(t["size"][near].sum()) / arrivals * kind


def _arrival_in(queue: Queue, view: QueueView, place: int, rate: Floats, policy: Policy) -> float:
    """Mean seconds until a player arrives whom a ticket may meet in a duel: a wider step begins later."""
    own = queue.tickets[view.t["slot"][place]]
    loose, waited = bool(own["loose"]), float(view.t["waited"][place])
    middle, chosen = (own["low"] + own["high"]) / 2, float(own["chosen_hi"] - own["high"])
    totals = [INFINITE]
    for after, width in policy.steps if loose else ((0.0, chosen),):
        reach = max(width, chosen)
        near = _within(rate, middle - reach / 2, middle + reach / 2)
        if near > 0:
            totals.append(max(after - waited, 0.0) + 1 / near)
    return min(totals)


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
