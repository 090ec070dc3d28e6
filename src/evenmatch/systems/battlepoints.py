"""Battle points: Elo with a K-factor per rating bracket, and more at stake in lopsided wins.

Definition: docs/systems/battlepoints.md, after the article and the game code of Math Battle II.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.systems.maths import LOG_10, logistic, mean_rating, score_of
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
    flag,
    floor_reason,
    kernel,
    move_shown,
    number,
    numbers,
    whole,
    wording,
)

TINY = 1e-9


@dataclass(frozen=True)
class BattlepointsParameters(Parameters):
    """Ratings in battle points."""

    start: float = number(1000.0, 0, 1e6, "rating of a newcomer")
    floor: float = number(700.0, 0, 1e6, "no rating falls below it", search=(0, 1000))
    scale: float = number(400.0, 1, 10_000, "a lead of this many points means odds of ten to one")
    brackets: tuple[float, ...] = numbers(
        (1200.0, 1500.0, 2000.0), 0, 1e6, "the highest rating of each bracket but the last", ascending=True
    )
    k: tuple[float, ...] = numbers(
        (32.0, 28.0, 24.0, 16.0), 0, 1000, "most points a match can move, per bracket", search=(4, 256)
    )
    lopsided: tuple[float, ...] = numbers(
        (1.2, 1.5, 1.8, 2.1), 0, 10, "factor of a lopsided match, per bracket", search=(0.5, 4)
    )
    lopsided_margin: float | None = number(
        None,
        0,
        1e6,
        "a match is lopsided from this lead in team_score; none: if the loser scored nothing",
        optional=True,
    )
    truncate: bool = flag(False, "cut ratings to whole points")
    provisional_games: int = whole(
        0, 0, 1000, "number of a player's first matches that use provisional_k as K; 0: none"
    )
    provisional_k: float = number(64.0, 0, 1000, "most points that such a match can move")
    advantage: float = number(0.0, -1e5, 1e5, "points added to the team that is listed first", search=(-100, 200))

    def conflict(self) -> str:
        """A newcomer must not start below the floor."""
        return below_floor(self.start, self.floor)


class Battlepoints(NamedTuple):
    """Parameters as kernels read them; `rate` is log-odds per point, `margin` is below 0 if there is none."""

    floor: float
    rate: float
    brackets: tuple[float, ...]
    k: tuple[float, ...]
    lopsided: tuple[float, ...]
    margin: float
    truncate: bool
    provisional_games: int
    provisional_k: float
    advantage: float


def _compile(p: BattlepointsParameters) -> Battlepoints:
    margin = -1.0 if p.lopsided_margin is None else p.lopsided_margin
    return Battlepoints(
        p.floor,
        LOG_10 / p.scale,
        tuple(p.brackets),
        tuple(p.k),
        tuple(p.lopsided),
        margin,
        p.truncate,
        p.provisional_games,
        p.provisional_k,
        p.advantage,
    )


STATE = np.dtype([("rating", "f8"), ("games", "i8")], align=True)
FACTORS = (
    Factor("k", "most points the match could move, by the player's own bracket or as a provisional player"),
    Factor("surprise", "result minus the player's own expected score, averaged over the rivals"),
    Factor("lopsided", "factor for a lopsided result: 1 if it was not; with several rivals, the mean", neutral=1.0),
    Factor("gain", "multiplier of K: the surprise times the factor, averaged over the rivals"),
    Factor("floor", "whether the floor stopped the fall", flag=True),
)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Battlepoints) -> tuple[float, float]:
    """Elo's logistic curve on the teams' means; draws are not foreseen."""
    lead = mean_rating(a, state) - mean_rating(b, state) + (params.advantage if home else 0.0)
    return logistic(lead * params.rate), 0.0


@kernel
def by_bracket(values: tuple[float, ...], rating: float, params: Battlepoints) -> float:
    """The value for the bracket of a rating's whole part. Comparisons avoid a jump that an index would cost."""
    whole = np.floor(rating)
    value = values[1] if whole > params.brackets[0] else values[0]
    value = values[2] if whole > params.brackets[1] else value
    return values[3] if whole > params.brackets[2] else value


@kernel
def is_lopsided(h: Columns, team: int, rival: int, params: Battlepoints) -> bool:
    """Whether the loser of the two scored nothing, or lost by the margin."""
    ahead = h.place[rival] - h.place[team]
    if ahead == 0:
        return False
    own, other = h.team_score[team], h.team_score[rival]
    more, less = (own, other) if ahead > 0 else (other, own)
    if params.margin >= 0.0:
        return more - less >= params.margin
    return more > 0.0 and less == 0.0


@kernel
def update(
    h: Columns, m: int, state: Records, params: Battlepoints, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Rate every player against the mean of each rival team, averaged over the rivals."""
    first, end = h.team_start[m], h.team_start[m + 1]
    for team in range(first, end):
        scratch[team - first, 0] = mean_rating(h.player[h.slot_start[team] : h.slot_start[team + 1]], state)
    scratch[0, 0] += params.advantage  # as rivals of the others
    rivals = end - first - 1
    for team in range(first, end):
        low, high = h.slot_start[team], h.slot_start[team + 1]
        for slot in range(low, high):
            record = state[h.player[slot]]
            before = record.rating
            k, extra = by_bracket(params.k, before, params), by_bracket(params.lopsided, before, params)
            if record.games < params.provisional_games:
                k = params.provisional_k
            surprise, weighted, emphasis = 0.0, 0.0, 0.0
            for rival in range(first, end):
                if rival == team:
                    continue
                won = score_of(h.place[rival] - h.place[team])
                if rivals == 1 and high - low == 1:
                    lead = won - expected[team]
                else:
                    own = before + (params.advantage if team == first else 0.0)
                    lead = won - logistic((own - scratch[rival - first, 0]) * params.rate)
                factor = extra if is_lopsided(h, team, rival, params) else 1.0
                surprise += lead
                weighted += lead * factor
                emphasis += factor
            value = before + k * (weighted / rivals)
            after = max(params.floor, value)
            if params.truncate:
                after = np.floor(after)
            record.rating = after
            record.games += 1
            if len(factors):
                note = factors[slot]
                note.k = k
                note.surprise = surprise / rivals
                note.lopsided = emphasis / rivals
                note.gain = weighted / rivals
                note.floor = value < params.floor


def _because(change: Change, p: BattlepointsParameters) -> Reason | None:
    f = change.factors
    if f["floor"]:
        return floor_reason(change, f"{p.floor:g}")
    surprise = float(f["surprise"])
    if not change.is_against_result or (change.result - change.expected) * surprise < 0:
        return None
    return Reason(wording.ONE_SIDED if float(f["gain"]) * surprise < 0 else wording.WHOLE_POINTS)


def _note(change: Change, p: BattlepointsParameters) -> Reason | None:
    f = change.factors
    bigger = abs(float(f["gain"])) > abs(float(f["surprise"])) * (1.0 + TINY)
    return Reason(wording.ONE_SIDED_NOTE) if bigger else None


def _recall(change: Change, p: BattlepointsParameters) -> tuple[object, ...]:
    provisional = p.provisional_games > 0 and change.factors["k"] == p.provisional_k
    return (change.before, 0 if provisional else p.provisional_games)


def _newcomer(p: BattlepointsParameters) -> tuple[object, ...]:
    return (p.start, 0)


SYSTEM = System(
    name="battlepoints",
    title="Elo with brackets: high ratings move less, except in lopsided matches",
    source='the article "Creating a Ranking System for Math Battle II" and the game\'s code',
    needs="any matches; `team_score` if lopsided results are to count",
    parameters=BattlepointsParameters,
    presets={
        "app": {
            "brackets": (2100.0, 2400.0, 2400.0),
            "k": (32.0, 24.0, 10.0, 10.0),
            "lopsided": (1.0, 1.0, 1.0, 1.0),
            "truncate": True,
        }
    },
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=as_shown(_newcomer, lowest=lambda p: p.floor),
    move=move_shown(lambda p: p.floor, lambda rating, p: np.floor(rating) if p.truncate else rating),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=1,
    because=_because,
    note=_note,
    own_rating=lambda p: True,
    whole=lambda p: p.truncate,
    recall=_recall,
)
