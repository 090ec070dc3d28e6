"""Explanations of what a ticket waits for, and estimates of the wait."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.attributes import AttributeField, Fields, agree, fields_of
from evenmatch.matchmaking.conflict import worth
from evenmatch.matchmaking.odds import LineUps, exceeds, predicted_odds
from evenmatch.matchmaking.queue import ExpectedWait, Queue, WaitEstimate, WaitKind
from evenmatch.matchmaking.records import QueueView, Records
from evenmatch.matchmaking.tickets import Tickets, Whole
from evenmatch.matchmaking.view import meets_in, rules_of, view_of
from evenmatch.policy import INFINITE, Policy
from evenmatch.sentences import Sentence

SHORTEST = 1.0  # seconds: a tick or two
LEVEL = 20.0  # width in percentiles of the smallest band whose arrivals count as near a ticket's level
# Quantiles of the wait, 50 % and 90 %, as multiples of the expected time:
DUEL = (math.log(2), math.log(10))  # of an exponential distribution, for the wait for one player
TEAMS = (0.9, 2.4)  # for larger matches, from simulations at 1 to 20 players a second, see tools/wait_estimates.py
MIXED = (1.8, 7.0)  # for larger matches if parties wait, which do not fit into every team
AT_ONCE = (0.5, 0.9)  # for a match in the next tick, with ticks a second apart
ROUNDING = 1e-9  # percentiles
THIN = 3.0  # if gathering takes longer than `overdue_after` divided by this, waits grow in proportion
STRETCHED_AT_MOST = 2.0  # the largest such proportion; its square applies to the upper quantile


def remember(queue: Queue, tickets: Sequence[int], now: int, policy: Policy) -> dict[int, WaitEstimate]:
    """Estimate the waits of some tickets that have just joined, and remember the estimates in `queue.waits`.

    At most a few tickets per second are estimated. The caller reports how the waits ended with `queue.waits.end`.
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
    """The time until the missing players of a match arrive; None: no recent arrivals.

    If r players per second arrive in a band as wide as the window allows, and the fullest such band around the ticket
    lacks m players for a match, these arrive in m / r seconds. Each step allows a wider band but begins later; the
    smallest time counts. In a duel, the ticket plays the first waiting player that it may meet, or the next player who
    arrives in the band.
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
        longer = min(max(THIN * seconds / policy.overdue_after, 1.0), STRETCHED_AT_MOST)
    return ExpectedWait(kind, seconds, median * longer, upper * longer * longer)


def _gathered_in(queue: Queue, view: QueueView, place: int, now: int, policy: Policy) -> float:
    """Seconds until the missing players of a match have arrived, at the step with the smallest time."""
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
    """Mask of the tickets that share a region and a value of each attribute with this one, including itself."""
    own = view.t[place]
    suits: Flags = (view.t["able"] & own["able"]) > 0
    suits &= agree(view.accepts & view.accepts[place], fields_of(policy))
    suits[place] = True
    return suits


def _most_in_band(t: Records, own: Records, band: float) -> int:
    """The most players, including the ticket's own, in any band of this width that contains the ticket."""
    low, high = float(own["low"]), float(own["high"])
    reach = max(band, high - low) + ROUNDING
    near = (t["low"] >= high - reach) & (t["high"] <= low + reach)
    lows, sizes = t["low"][near], t["size"][near]
    before = np.concatenate(([0], np.cumsum(sizes)))
    begins = lows <= low
    ends = np.searchsorted(lows, lows[begins] + reach, side="right")
    return int((before[ends] - before[:-1][begins]).max())


def _opponent_in(queue: Queue, view: QueueView, place: int, now: int, policy: Policy) -> float:
    """Seconds until a player may play a duel with one of the waiting players; infinite: never."""
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
    """Arrivals per second in this band, after shifting it into 0..100. Partial bins count proportionally."""
    width = min(high - low, 100.0)
    low = min(max(low, 0.0), 100.0 - width)
    edges = np.arange(len(rate) + 1)
    share = np.clip(np.minimum(edges[1:], low + width) - np.maximum(edges[:-1], low), 0.0, 1.0)
    return float((rate * share).sum())


class AttributeCount(NamedTuple):
    """The values of an attribute that a ticket accepts, and how many other waiting players accept at least one."""

    accepts: tuple[str, ...]
    players: int


@dataclass(frozen=True)
class Waiting:
    """What a ticket waits for in one queue.

    waited       seconds so far
    window       range of percentiles that all other players must be in; null: not shown
    strict       true: the window never widens
    widens_in    seconds until the window widens; null: it does not widen further
    widens_to    the window after that; null: it does not widen, or is not shown
    needed       number of players missing for a match
    within       waiting players who could be in a match with this ticket now
    estimate     estimated further wait in seconds, the median; null: no suitable players queued recently
    upper        further seconds within which nine of ten such tickets find a match; null: unknown
    hindrances   sentences that say why the ticket can never be matched under this policy; normally empty
    attributes   attributes that this ticket has not waived and that keep it apart from other waiting players
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
    hindrances: tuple[Sentence, ...]
    attributes: Mapping[str, AttributeCount]
    others: int

    @property
    def sentences(self) -> list[str]:
        """The explanation as sentences for players."""
        if self.hindrances:
            return [str(sentence) for sentence in self.hindrances]
        low, high = self.window
        where = "at every level" if low <= 0 and high >= 100 else "near your level"
        players = f"{self.needed} more player{'' if self.needed == 1 else 's'}"
        lines = [f"searching {where} for {players}, {min(self.within, self.needed)} found so far"]
        if self.others == 0:
            lines.append("nobody else is waiting in this queue")
        lines += [
            f"{self.others} other player{' waits' if self.others == 1 else 's wait'}, {count.players} of them "
            f"accept{'s' if count.players == 1 else ''} {_written(name, count.accepts)}"
            for name, count in self.attributes.items()
        ]
        if self.widens_in is not None:
            lines.append(f"in {self.widens_in:.0f} s the search widens")
        elif self.strict:
            lines.append("your filter is strict: the search does not widen")
        if self.estimate is None:
            lines.append("no one near your level joined recently, so there is no estimate")
        elif self.estimate < 1:
            lines.append("a match is likely any moment now")
        else:
            lines.append(f"a match is likely in about {rounded_wait(self.estimate)}")
        if self.upper is not None and self.upper >= 1:
            lines[-1] += f", nine of ten find one within {rounded_wait(self.upper)}"
        return lines


def rounded_wait(seconds: float) -> str:
    """A wait in words, rounded to 5 s above 20 s, to 10 s above 60 s, and to minutes from 5 minutes."""
    if seconds >= 295:
        return f"{seconds / 60:.0f} min"
    step = 10 if seconds > 60 else 5 if seconds > 20 else 1
    return f"{max(step * round(seconds / step), 1)} s"


def _written(name: str, values: tuple[str, ...]) -> str:
    return f"{name} {' or '.join(values)}"


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
    too_far = Sentence("every region is too far away: no ping is within this queue's limit")
    hindrances = [] if own["able"] else [too_far]
    fields = fields_of(policy)
    accepts = int(view.accepts[place[0]])
    hindrances += [_undeclared(field, columns) for field in fields if not accepts & field.bits]
    wait = estimate_wait(queue, view, int(place[0]), now, policy)
    return Waiting(
        ticket=ticket,
        waited=waited,
        strict=not own["loose"],
        window=window,
        widens_in=widens_in,
        widens_to=widens_to,
        needed=policy.players - int(own["size"]),
        within=int(view.t["size"][_compatible_tickets(view, int(place[0]), now, policy)].sum()),
        estimate=None if wait is None else wait.estimate,
        upper=None if wait is None else wait.upper,
        hindrances=tuple(hindrances),
        attributes=_attribute_counts(view, int(place[0]), fields),
        others=int(view.t["size"].sum() - own["size"]),
    )


def _undeclared(field: AttributeField, columns: Tickets) -> Sentence:
    """The reason why a ticket that accepts no declared value of an attribute can never be matched."""
    accepted = dict(columns.choices[columns.choice[0]].accepted).get(field.name, field.values)
    return Sentence(
        "{name} {accepted} is not played here; expected {declared}",
        {"name": field.name, "accepted": _any_of(accepted), "declared": _any_of(field.values)},
    )


def _any_of(values: Sequence[str]) -> Sentence | str:
    """The values as "a or b or c"."""
    if len(values) < 2:
        return "".join(values)
    return Sentence("{first} or {rest}", {"first": values[0], "rest": _any_of(values[1:])})


def _attribute_counts(view: QueueView, place: int, fields: Fields) -> dict[str, AttributeCount]:
    """The counts for Waiting.attributes."""
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
        reason = Sentence(
            "a party of {size} is larger than a team of {team_size}", {"size": size, "team_size": policy.team_size}
        )
    else:
        reason = Sentence(
            "the ticket has waited {waited} s, the longest wait in this queue is {longest} s",
            {"waited": f"{waited:.0f}", "longest": f"{policy.max_wait:g}"},
        )
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
