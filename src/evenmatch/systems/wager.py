"""Wager: each player stakes a twentieth of their rank on their team, scaled by both teams' strength and playing time.

Definition: docs/systems/wager.md, after the article "Ranking in Team-Based Competitive Games".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from evenmatch.systems.maths import MILLION, product_at_least, ratio_of_wholes
from evenmatch.systems.system import (
    Change,
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Reason,
    Records,
    System,
    below_floor,
    choice,
    floor_reason,
    kernel,
    mixed,
    move_shown,
    number,
    rarely,
    starting_rating,
    wording,
)

LARGEST = 9e13  # cents; above it float64 no longer resolves half cents
EVEN = 1000  # thousandths: the factor of a mean rank without advantage
NEAR = 2e-15  # relative to the numbers added: how far float64 may be from the exact value, with some room

RULES = ("win", "loss", "draw", "draw with a stronger team", "the other team left", "quit")
WIN, LOSS, DRAW, DRAW_GAIN, OTHERS_LEFT, QUIT = range(len(RULES))
SENTENCES = {
    "draw": wording.DRAW_WITH_WEAKER,
    "draw with a stronger team": wording.DRAW_WITH_STRONGER,
}


@dataclass(frozen=True)
class WagerParameters(Parameters):
    """All ranks in points with two decimals."""

    start: float = number(1.0, 0.01, 1e9, "rank of a newcomer", decimals=2, search=(1, 100))
    floor: float = number(1.0, 0.01, 1e9, "no rank falls below it", decimals=2)
    stake: float = number(0.05, 0.001, 0.5, "share of the rank that is wagered", decimals=6, search=(0.005, 0.5))
    uneven: str = choice(
        "total", ("total", "mean"), "a team's time: the total, or the mean of its players", search=True
    )
    quitter_time: str = choice(
        "stayed",
        ("stayed", "actual"),
        "how long team-mates count when a quitter's own loss is computed: to the end, or while they were there",
        search=True,
    )
    modifier_limit: float | None = number(None, 1, 1000, "keep each modifier from 1/limit to limit", optional=True)
    advantage: float = number(
        0.0,
        -90,
        900,
        "percent added to the mean rank of the first-listed team",
        decimals=1,
        search=(-20, 60),
    )

    def conflict(self) -> str:
        """A newcomer must not start below the floor."""
        return below_floor(self.start, self.floor)


class Wager(NamedTuple):
    """Parameters in the form that kernels read; `limit` is infinite where there is none."""

    floor: float
    stake: float
    by_mean: bool
    stayed: bool
    limit: float
    least: float  # 1 / limit
    limit_part: int  # the limit in millionths
    stake_part: int  # the stake as a fraction
    stake_whole: int
    home: int  # factor of the first-listed team's mean rank, in thousandths


class Side(NamedTuple):
    """One team before the match: mean rank in cents, playing time in seconds, its divisor, and whether all quit."""

    mean: float
    seconds: float
    share: float
    gone: bool


class Bet(NamedTuple):
    """The outcome of a stake: won or lost, and the modifiers, each a ratio and the two numbers behind it."""

    won: bool
    by_rank: float
    rank: float
    rank_over: float
    by_time: float
    time: float
    time_over: float


def _compile(p: WagerParameters) -> Wager:
    limit = math.inf if p.modifier_limit is None else p.modifier_limit
    limit_part = 0 if p.modifier_limit is None else round(p.modifier_limit * MILLION)
    stake = Fraction(round(p.stake * MILLION), MILLION)
    by_mean, stayed = p.uneven == "mean", p.quitter_time == "stayed"
    stakes = (stake.numerator, stake.denominator)
    home = EVEN + round(10 * p.advantage)
    return Wager(p.floor, p.stake, by_mean, stayed, limit, 1.0 / limit, limit_part, *stakes, home)


STATE = np.dtype([("rating", "f8")], align=True)
FACTORS = (
    Factor("stake", "points wagered: a twentieth of the rank before; 0 if the rank does not change after a draw"),
    Factor(
        "rank_modifier",
        "the other team's mean rank divided by the own team's for a win, the other way round for a loss",
        neutral=1.0,
    ),
    Factor(
        "quitter_modifier",
        "the other team's time in the game divided by the own team's for a win, the other way round for a loss",
        neutral=1.0,
    ),
    Factor("rule", "which rule decided", labels=RULES),
    Factor("floor", "whether the floor stopped the fall", flag=True),
)


@kernel
def mean_cents(team: Integers, home: bool, state: Records, params: Wager) -> float:
    """Mean rank of a team in cents, at least one, rounded half up, with the advantage of the first-listed team."""
    total = 0
    for i in range(len(team)):
        total += int(state[team[i]].rating * 100.0 + 0.5)
    if len(team) > 1:
        total = (2 * total + len(team)) // (2 * len(team))
    if home and params.home != EVEN:
        total = max((2 * total * params.home + EVEN) // (2 * EVEN), 1)
    return float(total)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Wager) -> tuple[float, float]:
    """P(win) = YA² / (YA² + OA²), which makes the expected total change zero. Draws are not predicted."""
    ratio = mean_cents(b, False, state, params) / mean_cents(a, home, state, params)
    return 1.0 / (1.0 + ratio * ratio), 0.0


@kernel
def side(h: Columns, team: int, home: bool, state: Records, params: Wager) -> Side:
    """One team of the match, before anything is written."""
    low, high = h.slot_start[team], h.slot_start[team + 1]
    seconds, gone = 0.0, True
    for slot in range(low, high):
        seconds += h.seconds[slot]
        gone = gone and h.quit[slot]
    mean = mean_cents(h.player[low:high], home, state, params)
    return Side(mean, seconds, float(high - low) if params.by_mean else 1.0, gone)


@kernel
def clamp(ratio: float, params: Wager) -> float:
    """The modifier within [1/limit, limit]."""
    return min(max(ratio, params.least), params.limit)


@kernel
def time_ratio(time: float, time_over: float, params: Wager) -> float:
    """The clamped ratio; 1 if a team has no playing time or none was recorded."""
    if time != time_over and time > 0.0 and time_over > 0.0:
        return clamp(time / time_over, params)
    return 1.0


@kernel
def bet_on(won: bool, rank: float, rank_over: float, time: float, time_over: float, params: Wager) -> Bet:
    """A bet with the modifiers rank/rank_over and time/time_over."""
    by_rank, by_time = clamp(rank / rank_over, params), time_ratio(time, time_over, params)
    return Bet(won, by_rank, rank, rank_over, by_time, time, time_over)


@rarely
def reaches(doubled: int, cents: float, bet: Bet, params: Wager) -> bool:
    """Whether cents ± cents·stake·(rank/rank_over)·(time/time_over) ≥ doubled/2, in exact integer arithmetic.

    Ranks are whole cents; times are exact to the microsecond.
    """
    limit = params.limit_part
    a, b = ratio_of_wholes(bet.rank, bet.rank_over, 1, limit)
    c, d = 1, 1
    if bet.time > 0.0 and bet.time_over > 0.0:
        whole = bet.time == np.floor(bet.time) and bet.time_over == np.floor(bet.time_over)
        c, d = ratio_of_wholes(bet.time, bet.time_over, 1 if whole else MILLION, limit)
    twice = 2 * int(cents)
    gap = doubled - twice if bet.won else twice - doubled
    if gap <= 0:  # the half cent lies between the rank and its start
        return bet.won
    change, bound = (twice, params.stake_part, a, c), (gap, params.stake_whole, b, d)
    return product_at_least(change, bound) if bet.won else product_at_least(bound, change)


@kernel
def settle(cents: float, bet: Bet, params: Wager) -> float:
    """The new rank in points, rounded half up to cents as in exact arithmetic; infinite if out of range."""
    change = cents * params.stake * bet.by_rank * bet.by_time
    value = cents + change if bet.won else cents - change
    after = np.floor(value + 0.5)
    if abs(value - after) >= 0.5 - NEAR * (cents + change):
        lower = np.floor(value)
        after = lower + 1.0 if reaches(2 * int(lower) + 1, cents, bet, params) else lower
    if not after <= LARGEST:  # also true for NaN
        return math.inf
    return max(params.floor, after / 100.0)


@kernel
def rule_of(lead: int, own: Side, rival: Side) -> int:
    """The rule for the players of a team who stayed; `lead` is above 0 if the team finished ahead, below if behind."""
    rule = WIN if lead > 0 else LOSS  # compiles without a branch, which would be hard to predict
    if lead == 0:
        rule = DRAW_GAIN if own.mean < rival.mean else DRAW
    if rival.gone and not own.gone:
        rule = OTHERS_LEFT
    return rule


@kernel
def longest(h: Columns, team: int) -> float:
    """The length of the match: the longest time of any player in it."""
    first = h.team_start[np.searchsorted(h.team_start, team, side="right") - 1]
    length = 0.0
    for slot in range(h.slot_start[first], h.slot_start[first + 2]):
        length = max(length, h.seconds[slot])
    return length


@kernel
def team_bet(rule: int, own: Side, rival: Side, params: Wager) -> Bet:
    """The bet of the players who stayed: OA/YA and OT/YT for a win, inverted for a loss."""
    won = rule != LOSS
    own_time, rival_time = own.seconds * rival.share, rival.seconds * own.share
    rank, rank_over = (rival.mean if won else own.mean), (own.mean if won else rival.mean)
    time, time_over = (rival_time if won else own_time), (own_time if won else rival_time)
    if rule in (OTHERS_LEFT, DRAW):
        rank, rank_over, time, time_over = 1.0, 1.0, 1.0, 1.0
    return bet_on(won, rank, rank_over, time, time_over, params)


@kernel
def quitters_bet(h: Columns, team: int, slot: int, own: Side, rival: Side, params: Wager) -> Bet:
    """The bet of a quitter, who loses the stake, or by the loss formula if that is more."""
    seconds = own.seconds
    if params.stayed:
        seconds += longest(h, team) - h.seconds[slot]
    bet = bet_on(False, own.mean, rival.mean, seconds * rival.share, rival.seconds * own.share, params)
    if bet.by_rank * bet.by_time <= 1.0 or rival.seconds == 0.0:
        bet = Bet(False, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    return bet


@kernel
def rate_team(
    h: Columns, team: int, own: Side, rival: Side, lead: int, state: Records, params: Wager, factors: Records
) -> None:
    """Write the ranks of one team's players."""
    team_rule = rule_of(lead, own, rival)
    common = team_bet(team_rule, own, rival, params)
    for slot in range(h.slot_start[team], h.slot_start[team + 1]):
        record = state[h.player[slot]]
        before = record.rating
        cents = np.floor(before * 100.0 + 0.5)
        rule, bet = team_rule, common
        if h.quit[slot]:
            rule, bet = QUIT, quitters_bet(h, team, slot, own, rival, params)
        if rule != DRAW:
            record.rating = settle(cents, bet, params)
        note(factors, slot, before, rule, bet, params)


@kernel
def note(factors: Records, slot: int, before: float, rule: int, bet: Bet, params: Wager) -> None:
    """Write a slot's factors if a journal is kept."""
    if len(factors):
        noted = factors[slot]
        noted.stake = 0.0 if rule == DRAW else before * params.stake
        noted.rank_modifier = bet.by_rank
        noted.quitter_modifier = bet.by_time
        noted.rule = rule
        noted.floor = not bet.won and before * (1.0 - params.stake * bet.by_rank * bet.by_time) < params.floor


@kernel
def update(
    h: Columns, m: int, state: Records, params: Wager, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Rate both teams, from the ranks before the match."""
    first = h.team_start[m]
    side_a, side_b = side(h, first, True, state, params), side(h, first + 1, False, state, params)
    for team in range(first, first + 2):  # a loop halves the code and the compile time
        own, rival = (side_a, side_b) if team == first else (side_b, side_a)
        lead = h.place[2 * first + 1 - team] - h.place[team]
        rate_team(h, team, own, rival, lead, state, params, factors)


def _because(change: Change, p: WagerParameters) -> Reason | None:
    f, floor = change.factors, f"{p.floor:.2f}"
    if f["rule"] == "quit":
        if f["floor"]:
            return Reason(wording.LEFT_TO_FLOOR if change.moved else wording.LEFT_AT_FLOOR, {"floor": floor})
        if change.result:
            return Reason(wording.LEFT_WON if change.result > 0.5 else wording.LEFT_DREW)
    if f["floor"]:
        return floor_reason(change, floor)
    if f["rule"] == "the other team left":
        return Reason(wording.OTHERS_LEFT[round(2 * change.result)])
    sentence = SENTENCES.get(str(f["rule"]))
    return None if sentence is None else Reason(sentence)


def _recall(change: Change, p: WagerParameters) -> tuple[object, ...] | None:
    """No other result would count once the other team has left."""
    return None if change.factors["rule"] == "the other team left" else (change.before,)


def _start_at(rating: float, p: WagerParameters) -> tuple[object, ...]:
    points = starting_rating(rating, p.floor, LARGEST / 100.0)
    return (round(points + min(points * NEAR, 1e-9), 2),)  # half up: 10.605 in binary may lie just below


SYSTEM = System(
    name="wager",
    title="everybody stakes a twentieth of their points, scaled by the teams' strength and by time played",
    source='the article "Ranking in Team-Based Competitive Games"',
    needs="two teams per match; `seconds` for all players of a match or for none; `quit` where players quit",
    teams=2,
    parameters=WagerParameters,
    presets={"article": {"uneven": "mean", "quitter_time": "actual"}, "limited": {"modifier_limit": 4.0}},
    compile=_compile,
    state=STATE,
    newcomer=lambda p: (p.start,),
    start_at=_start_at,
    move=move_shown(lambda p: p.floor, lambda rating, p: np.floor((rating + 1e-9) * 100.0 + 0.5) / 100.0),
    factors=FACTORS,
    pair=pair,
    update=update,
    refuse=lambda h, p: mixed(h, "seconds", "wager"),
    because=_because,
    recall=_recall,
)
