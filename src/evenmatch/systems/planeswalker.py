"""Planeswalker points: points for taking part and for winning, which never decrease; each match is an event.

Definition: docs/systems/planeswalker.md, after the programme for Magic tournaments. The original makes no forecast;
ours, added for comparison, is one side's share of both sides' points.
"""

from __future__ import annotations

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
    kernel,
    move_shown,
    number,
    wording,
)


@dataclass(frozen=True)
class PlaneswalkerParameters(Parameters):
    """Ratings in points."""

    start: float = number(0.0, 0, 1e6, "points of a newcomer")
    multiplier: float = number(1.0, 0, 1000, "factor for the event's points")
    sharpness: float = number(1.0, 0, 100, "how strongly points affect the odds; 0: all odds are even", search=(0, 10))
    prior: float = number(1.0, 1e-3, 1e6, "points added to each player's own when odds are computed", search=(1, 1000))


class Planeswalker(NamedTuple):
    """Parameters in the form that kernels read."""

    multiplier: float
    sharpness: float
    prior: float


def _compile(p: PlaneswalkerParameters) -> Planeswalker:
    return Planeswalker(p.multiplier, p.sharpness, p.prior)


STATE = np.dtype([("rating", "f8")], align=True)
FACTORS = (
    Factor("participation", "points for taking part, by the number of players"),
    Factor("wins", "rival teams that finished behind"),
    Factor("draws", "rival teams that finished level"),
    Factor("multiplier", "factor for the sum of these points"),
)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Planeswalker) -> tuple[float, float]:
    """One side's share of both sides' mean points. Draws are not predicted."""
    ratio = (mean_rating(b, state) + params.prior) / (mean_rating(a, state) + params.prior)
    return 1.0 / (1.0 + ratio**params.sharpness), 0.0


@kernel
def participation_of(players: int) -> float:
    """Points for taking part: floor(log2 n) − 2 from 8 players on, at most 9; 1 below."""
    points, enough = 1.0, 16
    while players >= enough and points < 9.0:
        points += 1.0
        enough *= 2
    return points


@kernel
def update(
    h: Columns, m: int, state: Records, params: Planeswalker, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Add each player's points."""
    first, end = h.team_start[m], h.team_start[m + 1]
    participation = participation_of(h.slot_start[end] - h.slot_start[first])
    for team in range(first, end):
        wins, draws = 0.0, 0.0
        for rival in range(first, end):
            if rival != team:
                ahead = h.place[rival] - h.place[team]
                wins += 1.0 if ahead > 0 else 0.0
                draws += 1.0 if ahead == 0 else 0.0
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            state[h.player[slot]].rating += (participation + 3.0 * wins + draws) * params.multiplier
            if len(factors):
                note = factors[slot]
                note.participation = participation
                note.wins = wins
                note.draws = draws
                note.multiplier = params.multiplier


def _because(change: Change, p: PlaneswalkerParameters) -> Reason:
    f = change.factors
    wins, draws = float(f["wins"]), float(f["draws"])
    worth = {"win": 3.0 * p.multiplier, "draw": p.multiplier, "participation": float(f["participation"]) * p.multiplier}
    if wins + draws == 1 and change.result in (0.5, 1.0):
        sentence = wording.EARNED_WIN if wins else wording.EARNED_DRAW
    elif wins and draws:
        sentence = wording.EARNED_BOTH
    elif wins or draws:
        sentence = wording.EARNED_WINS if wins else wording.EARNED_DRAWS
    else:
        sentence = wording.TOOK_PART
    values = {name: f"{value:g}" for name, value in {**worth, "wins": wins, "draws": draws}.items()}
    return Reason(sentence, values, wording.OTHERWISE_IN_ALL)


def _newcomer(p: PlaneswalkerParameters) -> tuple[object, ...]:
    return (p.start,)


SYSTEM = System(
    name="planeswalker",
    title="points for taking part and for winning; nobody ever loses points",
    source="Planeswalker Points, the programme for Magic tournaments",
    parameters=PlaneswalkerParameters,
    presets={"friday": {"multiplier": 3.0}},
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=as_shown(_newcomer, lowest=lambda p: 0.0),
    move=move_shown(lowest=lambda p: 0.0),
    factors=FACTORS,
    pair=pair,
    update=update,
    because=_because,
    whole=lambda p: True,
    recall=lambda change, p: (change.before,),
)
