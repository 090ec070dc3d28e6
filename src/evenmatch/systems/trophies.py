"""Trophies: an attacker and a defender stake trophies according to the gap between them; after Clash of Clans.

Definition: docs/systems/trophies.md. Players of the game fitted the curves; the one for lost attacks is unverified.
The first-listed team attacks; with attack=mutual each match is half an attack by each side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.systems.maths import mean_rating
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
    as_shown,
    below_floor,
    choice,
    floor_reason,
    kernel,
    move_shown,
    number,
    wording,
)

MOST_TROPHIES = 59.0  # trophies that one match can move
STEEPEST = 1e5  # trophies: larger leads are cut to this, so that no power overflows


@dataclass(frozen=True)
class TrophiesParameters(Parameters):
    """Ratings in trophies."""

    start: float = number(0.0, 0, 1e6, "trophies of a newcomer", search=(0, 10_000))
    floor: float = number(0.0, 0, 1e6, "nobody falls below it")
    attack: str = choice("first", ("first", "mutual"), "who attacks: the first-listed team, or both", search=True)

    def conflict(self) -> str:
        """A newcomer must not start below the floor."""
        return below_floor(self.start, self.floor)


class Trophies(NamedTuple):
    """Parameters in the form that kernels read."""

    floor: float
    mutual: bool


def _compile(p: TrophiesParameters) -> Trophies:
    return Trophies(p.floor, p.attack == "mutual")


STATE = np.dtype([("rating", "f8")], align=True)
FACTORS = (
    Factor("lead", "the team's mean trophies minus the rival's"),
    Factor("stake", "trophies that the result moved, before the floor"),
    Factor("attacked", "whether the team attacked", flag=True),
    Factor("floor", "whether the floor stopped the fall", flag=True),
)


@kernel
def won(x: float) -> float:
    """Unrounded trophies gained by a won attack with a lead of x."""
    x = min(max(x, -STEEPEST), STEEPEST)
    return min(max(-0.63599 + 60.07066 / (1.0 + 0.991798 * math.exp(0.00576 * x)), 0.0), MOST_TROPHIES)


@kernel
def lost(x: float) -> float:
    """Unrounded trophies lost by a failed attack with a lead of x."""
    x = min(max(x, -STEEPEST), STEEPEST)
    return min(max(39.0907 - 39.0619 / (1.0 + 0.993 * math.exp(0.00595 * x)), 0.0), MOST_TROPHIES)


@kernel
def even_odds(gain: float, loss: float) -> float:
    """The probability of winning at which neither side can expect to gain."""
    return loss / (gain + loss) if gain + loss > 0.0 else 0.5


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Trophies) -> tuple[float, float]:
    """The odds at which the stakes are fair. Draws are not predicted. The first-listed team attacks."""
    x = mean_rating(a, state) - mean_rating(b, state)
    if params.mutual or not home:
        return even_odds(won(x) + lost(-x), won(-x) + lost(x)), 0.0
    return even_odds(won(x), lost(x)), 0.0


@kernel
def update(
    h: Columns, m: int, state: Records, params: Trophies, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Move the stake from the members of one team to those of the other; a draw moves nothing."""
    first, end = h.team_start[m], h.team_start[m + 1]
    middle = h.slot_start[first + 1]
    x = mean_rating(h.player[h.slot_start[first] : middle], state)
    x -= mean_rating(h.player[middle : h.slot_start[end]], state)
    ahead = h.place[first + 1] - h.place[first]
    sign = 1.0 if ahead > 0 else -1.0
    stake = won(x) if ahead > 0 else lost(x)
    if params.mutual:
        stake = 0.5 * (won(sign * x) + lost(-sign * x))
    stake = 0.0 if ahead == 0 else sign * math.floor(stake + 0.5)
    for slot in range(h.slot_start[first], h.slot_start[end]):
        record = state[h.player[slot]]
        own = stake if slot < middle else -stake
        value = record.rating + own
        record.rating = max(params.floor, value)
        if len(factors):
            note = factors[slot]
            note.lead = x if slot < middle else -x
            note.stake = own
            note.attacked = slot < middle or params.mutual
            note.floor = value < params.floor


def _because(change: Change, p: TrophiesParameters) -> Reason | None:
    if change.factors["floor"]:
        return floor_reason(change, f"{p.floor:g}")
    return Reason(wording.DRAW_MOVES_NOTHING) if change.result == 0.5 else None


def _newcomer(p: TrophiesParameters) -> tuple[object, ...]:
    return (p.start,)


SYSTEM = System(
    name="trophies",
    title="an attacker and a defender stake trophies; the favourite risks more than it can win",
    source="Clash of Clans: curves fitted by its players",
    needs="matches of exactly two teams; the first-listed one attacks",
    teams=2,
    parameters=TrophiesParameters,
    presets={"mutual": {"attack": "mutual"}},
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=as_shown(_newcomer, lowest=lambda p: p.floor),
    move=move_shown(lowest=lambda p: p.floor),
    factors=FACTORS,
    pair=pair,
    update=update,
    because=_because,
    whole=lambda p: True,
    recall=lambda change, p: (change.before,),
)
