"""Skills as a mean and a deviation, shown as the mean minus some deviations, and their sums over a team."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from evenmatch.history import Floats, Integers
from evenmatch.systems.compiled import kernel
from evenmatch.systems.system import (
    RATING_DECIMALS,
    Change,
    Reason,
    Records,
    starting_rating,
    uncertain_note,
    wording,
)

SHOWN = 0.01  # points: the smallest change that is shown
LITTLE_TIME = 0.1  # weight of a player, below which a match tells next to nothing
ALMOST_CERTAIN = 0.1  # a result this close to the expected score tells next to nothing
STATE = np.dtype([("rating", "f8"), ("mean", "f8"), ("deviation", "f8")], align=True)


class SkillParameters(Protocol):
    """Parameters of a newcomer's record."""

    @property
    def mean(self) -> float:
        """Mean of a newcomer."""
        ...

    @property
    def deviation(self) -> float:
        """Deviation of a newcomer."""
        ...

    @property
    def display(self) -> float:
        """How many deviations the shown rating lies below the mean."""
        ...


@kernel
def sums(team: Integers, state: Records) -> tuple[float, float]:
    """Sums of the means and of the variances of a team."""
    if len(team) == 1:
        record = state[team[0]]
        return record.mean, record.deviation * record.deviation
    mean, variance = 0.0, 0.0
    for i in range(len(team)):
        record = state[team[i]]
        mean += record.mean
        variance += record.deviation * record.deviation
    return mean, variance


def newcomer(p: SkillParameters) -> tuple[object, ...]:
    """The record of a player who has not played."""
    return (_first_shown(p), p.mean, p.deviation)


def start_at(rating: float, p: SkillParameters) -> tuple[object, ...]:
    """The record of a player who starts with this shown rating."""
    rating = starting_rating(rating)
    mean = p.mean - (_first_shown(p) - rating)  # gives a newcomer's mean to the last bit
    return (rating, mean, p.deviation)


def mean_strength(records: Records, _: SkillParameters) -> Floats:
    """`System.strength`: the mean, whatever rating is shown."""
    return records["mean"].copy()


def move(state: Records, rating: Floats, p: SkillParameters) -> Records:
    """The records with other shown ratings: the mean moves along, the deviation stays."""
    moved = state.copy()
    moved["mean"] += rating - state["rating"]
    moved["rating"] = rating
    return moved


def because(change: Change, p: SkillParameters) -> Reason | None:
    """`System.because`: a rating that lies below the mean also moves if only the deviation changes."""
    if change.factors["weight"] == 0 or (not change.moved and float(change.factors["weight"]) < 0.01):
        return Reason(wording.NO_TIME, otherwise={})
    by_mean, certainty = _parts(change, p)
    if change.moved >= 0 and by_mean <= -SHOWN:
        return Reason(wording.OUTWEIGHED, {"part": f"{certainty:.2f}", "fall": f"{-by_mean:.2f}"})
    if not change.is_against_result or certainty * change.moved <= 0 or abs(certainty) < abs(change.moved) - SHOWN:
        return None  # the mean moved against the result as well
    if change.moved > 0:
        return Reason(wording.MORE_CERTAIN)
    if float(change.factors["weight"]) < LITTLE_TIME:
        return Reason(wording.LESS_CERTAIN["time"], otherwise={})
    certain = abs(change.result - change.expected) <= ALMOST_CERTAIN
    return Reason(wording.LESS_CERTAIN["odds" if certain else "unknown"])


def certainty_note(change: Change, p: SkillParameters) -> Reason | None:
    """`System.note`: how much of the change comes from the deviation, or that it is still large."""
    by_mean, certainty = _parts(change, p)
    if certainty < max(SHOWN, abs(change.moved) / 10):
        return uncertain_note(change, p.deviation / 2, 1 / 3)
    sentence = wording.BY_CERTAINTY if change.moved > 0 else wording.SOFTENED
    return Reason(sentence, {"part": f"{certainty:.2f}", "fall": f"{-by_mean:.2f}"})


def _parts(change: Change, p: SkillParameters) -> tuple[float, float]:
    """Points of the shown change from the mean and from the deviation, rounded so that they add up to it."""
    narrowed = float(change.factors["deviation_before"]) - float(change.factors["deviation_after"])
    certainty = round(p.display * narrowed, RATING_DECIMALS)
    return round(change.moved - certainty, RATING_DECIMALS), certainty


def recall(change: Change, p: SkillParameters) -> tuple[object, ...]:
    """`System.recall`: the mean follows from the shown rating and the deviation."""
    deviation = float(change.factors["deviation_before"])
    return (change.before, change.before + p.display * deviation, deviation)


def _first_shown(p: SkillParameters) -> float:
    return p.mean - p.display * p.deviation
