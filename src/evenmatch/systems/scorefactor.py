"""Score factor: compares every player with every other, team-mates too, by score per second; duels by result only.

Definition: docs/systems/scorefactor.md, after XonStat's Elo for Xonotic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.systems.maths import DAY, LOG_10, logistic, score_of
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
    fields,
    flag,
    floor_reason,
    in_time,
    kernel,
    missing,
    mixed,
    move_shown,
    number,
    rarely,
    wording,
)

LEARNING = 32  # games until K has reached its final value
TINY = 1e-9
WIDEST = 400.0  # points: a larger difference does not change the odds


@dataclass(frozen=True)
class ScorefactorParameters(Parameters):
    """Ratings in points, times in seconds."""

    start: float = number(100.0, 0, 1e6, "rating of a newcomer")
    floor: float = number(100.0, 0, 1e6, "no rating falls below it", search=(0, 100))
    k: float = number(
        200.0, 0, 10_000, "the most points a match can move at first; a fifth of that after 32 games", search=(10, 2000)
    )
    full_time: float = number(600.0, 1, 1e6, "seconds after which a player's time counts in full", search=(30, 3600))
    min_time: float = number(120.0, 0, 1e6, "players with fewer seconds are left out")
    min_share: float = number(0.5, 0, 1, "players with a smaller share of the match are left out", search=(0, 0.9))
    spare_favourites: bool = flag(False, "a favourite who scored more loses no points to that opponent", search=True)
    summed: bool = flag(False, "add up the points against the other players instead of averaging them")
    inactivity_rot: bool = flag(False, "after 30 idle days, players lose a little more each week", search=True)
    advantage: float = number(
        0.0, -1e5, 1e5, "points added to the first-listed team, except among team-mates", search=(-100, 200)
    )

    def conflict(self) -> str:
        """A newcomer must not start below the floor."""
        return below_floor(self.start, self.floor)


class Scorefactor(NamedTuple):
    """Parameters in the form that kernels read."""

    floor: float
    k: float
    full_time: float
    min_time: float
    min_share: float
    spare_favourites: bool
    summed: bool
    inactivity_rot: bool
    advantage: float


def _compile(p: ScorefactorParameters) -> Scorefactor:
    times = (p.full_time, p.min_time, p.min_share)
    return Scorefactor(p.floor, p.k, *times, p.spare_favourites, p.summed, p.inactivity_rot, p.advantage)


STATE = np.dtype([("rating", "f8"), ("games", "i8"), ("last_played", "i8")], align=True)
FACTORS = (
    Factor("k", "most points the match could move, by games so far and time in the match; 0: left out"),
    Factor("share", "share of the score per second against each other player, averaged; in duels, the result"),
    Factor("expected_share", "the share that the ratings predicted"),
    Factor("gain", "multiplier of K: share minus expected_share, unless favourites are spared or it is a sum"),
    Factor("rot", "points lost to inactivity before the match"),
    Factor("floor", "whether the floor stopped the fall", flag=True),
)
K, RATE, RATING, GAIN, SHARE, EXPECTED = range(6)  # columns of scratch


@kernel
def current(state: Records, player: int, now: int, params: Scorefactor) -> float:
    """The rating at this time, reduced for each idle day after the first 30."""
    record = state[player]
    rating: float = record.rating
    if params.inactivity_rot and record.games > 0:
        days = (now - record.last_played) // DAY
        if days > 30:
            weeks = (days - 31) // 7 + 1  # also the points lost per day in the current week
            lost = 7 * weeks * (weeks - 1) // 2 + (days - 30 - 7 * (weeks - 1)) * weeks
            rating = max(params.floor, rating - lost)
    return rating


@rarely
def age(state: Records, now: int, params: Scorefactor) -> None:
    """Set every player's rating to the one that a match at this time would start from."""
    for player in range(len(state)):
        state[player].rating = current(state, player, now, params)


@kernel
def expected_share(lead: float) -> float:
    """Elo's curve, flat beyond 400 points."""
    return logistic(min(max(lead, -WIDEST), WIDEST) * (LOG_10 / WIDEST))


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Scorefactor) -> tuple[float, float]:
    """The mean of the players' pairwise expected scores. Draws are not predicted."""
    total, bonus = 0.0, params.advantage if home else 0.0
    for i in range(len(a)):
        own = current(state, a[i], now, params)
        for j in range(len(b)):
            total += expected_share(own - current(state, b[j], now, params) + bonus)
    return total / (len(a) * len(b)), 0.0


@kernel
def weight(h: Columns, slot: int, duration: float, games: int, params: Scorefactor) -> tuple[float, float]:
    """The part of K that applies to this player, and the seconds to divide the score by."""
    seconds = min(h.seconds[slot], duration)
    part = 1.0
    if math.isnan(h.seconds[slot]):  # not recorded: everybody played to the end
        seconds = 1.0
    elif seconds < params.min_time or seconds < params.min_share * duration:
        part = 0.0
    else:
        part = min(1.0, seconds / params.full_time)
    learned = 0.2 if games >= LEARNING else 1.0 - 0.8 * games / LEARNING
    return part * learned, seconds


@kernel
def score_share(a: float, b: float) -> float:
    """The share of a in a + b, both raised so that neither is negative."""
    least = min(0.0, a, b)
    total = (a - least) + (b - least)
    return (a - least) / total if total > 0.0 else 0.5


@kernel
def gain(share: float, forecast: float, params: Scorefactor) -> float:
    """The result of one comparison, in units of K."""
    if params.spare_favourites and forecast > 0.5:
        return max(0.0, share - forecast) if share > 0.5 else (2.0 * share - 1.0) * forecast
    return share - forecast


@kernel
def update(
    h: Columns, m: int, state: Records, params: Scorefactor, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Compare all players who took part, then write."""
    first, end = h.team_start[m], h.team_start[m + 1]
    low, high = h.slot_start[first], h.slot_start[end]
    now, duration = h.time[m], h.duration[m]
    duel = end - first == 2 and high - low == 2
    size, middle = int(high - low), int(h.slot_start[first + 1] - low)  # the row of the second team's first player
    compared = 0
    for slot in range(low, high):
        row, record = slot - low, state[h.player[slot]]
        part, seconds = weight(h, slot, duration, record.games, params)
        scratch[row, K] = part * params.k
        scratch[row, RATE] = 0.0 if duel else h.score[slot] / seconds
        scratch[row, RATING] = current(state, h.player[slot], now, params)
        scratch[row, GAIN] = scratch[row, SHARE] = scratch[row, EXPECTED] = 0.0
        if part > 0.0:
            compared += 1
    for i in range(size):
        if scratch[i, K] == 0.0:
            continue
        rivals = middle if i < middle else size  # the first row against which the advantage counts
        for part in range(2):  # choosing the bonus in the inner loop would take a fifth more time
            start, stop, bonus = (i + 1, rivals, 0.0) if part == 0 else (rivals, size, params.advantage)
            for j in range(start, stop):
                if scratch[j, K] == 0.0:
                    continue
                share = score_share(scratch[i, RATE], scratch[j, RATE])
                if duel:
                    share = score_of(h.place[first + 1] - h.place[first])
                forecast = expected_share(scratch[i, RATING] - scratch[j, RATING] + bonus)
                scratch[i, GAIN] += gain(share, forecast, params)
                scratch[j, GAIN] += gain(1.0 - share, 1.0 - forecast, params)
                scratch[i, SHARE] += share
                scratch[j, SHARE] += 1.0 - share
                scratch[i, EXPECTED] += forecast
                scratch[j, EXPECTED] += 1.0 - forecast
    for slot in range(low, high):
        row, record = slot - low, state[h.player[slot]]
        counted = compared > 1 and scratch[row, K] > 0.0
        divisor = 1 if params.summed else compared - 1
        value = record.rating
        if len(factors):
            note = factors[slot]
            note.k = scratch[row, K] if counted else 0.0
            note.share = scratch[row, SHARE] / (compared - 1) if counted else math.nan
            note.expected_share = scratch[row, EXPECTED] / (compared - 1) if counted else math.nan
            note.gain = scratch[row, GAIN] / divisor if counted else 0.0
            note.rot = value - scratch[row, RATING] if counted else 0.0
            note.floor = False
        if counted:
            value = scratch[row, RATING] + scratch[row, K] * scratch[row, GAIN] / divisor
            if len(factors):
                factors[slot].floor = value < params.floor
            record.rating = max(params.floor, value)
            record.games += 1
            record.last_played = now


def _refuse(h: Columns, parameters: ScorefactorParameters) -> Iterator[tuple[int, str]]:
    yield from mixed(h, "seconds", "scorefactor")
    if np.isnan(h.score).any():
        slots = h.slot_start[h.team_start]
        duel = (h.team_start[1:] - h.team_start[:-1] == 2) & (slots[1:] - slots[:-1] == 2)
        yield from missing(h, "score", ~duel, "scorefactor")


def _because(change: Change, p: ScorefactorParameters) -> Reason | None:
    f, floor = change.factors, f"{p.floor:g}"
    share, due, gain = (float(f[name]) for name in ("share", "expected_share", "gain"))
    if f["k"] == 0:
        return Reason(wording.LEFT_OUT)
    if change.moved * gain < 0:
        return Reason(wording.ROTTED, {"lost": f"{float(f['rot']):g}"})
    if share == change.result and abs(due - change.expected) < TINY:  # a duel, which goes by the result
        return floor_reason(change, floor) if f["floor"] else None
    if f["floor"] and change.moved == 0:
        return Reason(wording.SCORED_AT_FLOOR, {"floor": floor})
    if gain * (share - due) <= 0 and share != due:
        return Reason(wording.SPARED)
    pace = wording.RISE if share > due else wording.FALL if share < due else wording.NO_CHANGE
    scores = dict(zip(("share", "due"), wording.percentages(share, due), strict=True))
    sentence = wording.SCORED_AGAINST if change.is_against_result else wording.SCORED
    return Reason(sentence, then=(Reason(wording.PACE[pace], scores),))


def _note(change: Change, p: ScorefactorParameters) -> Reason | None:
    part = float(change.factors["k"]) / p.k
    return Reason(wording.FEW_GAMES) if part > 0.25 else Reason(wording.SHORT_TIME) if part < 0.2 - TINY else None


def _newcomer(p: ScorefactorParameters) -> tuple[object, ...]:
    return (p.start, 0, 0)


SYSTEM = System(
    name="scorefactor",
    title="compares the score per second of every player with everyone else's, team-mates included",
    source="XonStat's Elo for Xonotic: two articles of its author and the running code",
    needs="`score` of every player, except in duels; `seconds` for all players of a match or for none",
    parameters=ScorefactorParameters,
    presets={"xonstat": {"spare_favourites": True}, "summed": {"summed": True}},
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=as_shown(_newcomer, lowest=lambda p: p.floor),
    as_of=in_time(age, _compile),
    move=move_shown(lowest=lambda p: p.floor),
    columns=fields("games"),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=6,
    refuse=_refuse,
    because=_because,
    note=_note,
)
