"""What a match did, in sentences: the same for `evenmatch explain` and for whoever asks the service."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.systems.system import FactorValue

RATING_DECIMALS = 2  # as ratings are shown everywhere; the journal of `evenmatch export` has them exactly
SIGNIFICANT = 6  # digits of probabilities and factors
SMALLEST, LARGEST = 1e-16, 1e22
AS_EXPECTED, AGAINST_THE_ODDS = 0.55, 0.45  # of a winner's expected score; between them nobody was the favourite


class Finish(NamedTuple):
    """How a team finished.

    label     as it was sent
    expected  its expected score before the match, 0..1; None: the match was not rated
    """

    label: str
    place: int
    score: float | None
    expected: float | None


def outcome(teams: Sequence[Finish]) -> str:
    """Who won, and whether that was to be expected."""
    best = min(team.place for team in teams)
    winners = [team for team in teams if team.place == best]
    named = [f"team {team.label}" for team in winners]
    if len(winners) == len(teams):
        return f"A draw between {' and '.join(named)}."
    if len(winners) > 1:
        return f"{_sentence(' and '.join(named))} shared the first place of {len(teams)}."
    return f"{_sentence(named[0])} won{_verdict(winners[0].expected)}."


def standing_of(team: Finish) -> str:
    """A team's place, its score, and what was expected of it."""
    score = "" if team.score is None else f", score {team.score:g}"
    odds = "" if team.expected is None else f", expected {team.expected:.1%} before the match"
    return f"Team {team.label}: place {team.place}{score}{odds}"


def movement(before: float, after: float, *, quit_early: bool) -> str:
    """From where to where a rating went."""
    left = " (quit)" if quit_early else ""
    return f"{before:.2f} → {after:.2f}  {after - before:+.2f}{left}"


class Movement(NamedTuple):
    """Where a rating went, as it is shown: rounded, so that `before` and `change` add up to `after`."""

    before: float
    after: float
    change: float

    @classmethod
    def of(cls, before: float, after: float) -> Movement:
        """The movement between two exact ratings."""
        start, end = round(before, RATING_DECIMALS), round(after, RATING_DECIMALS)
        return cls(start, end, round(end - start, RATING_DECIMALS))


def shown(value: FactorValue) -> FactorValue | None:
    """A probability or a factor as it is shown; None where it is no number, which JSON does not have."""
    if not isinstance(value, float):
        return value
    return shown_number(value) if math.isfinite(value) else None


def shown_number(value: float) -> float:
    """A probability or a factor to its significant digits."""
    return float(shown_numbers(np.array([value]))[0])


def shown_numbers(values: Floats) -> Floats:
    """The same for a column; infinities and NaN stay as they are."""
    size = np.abs(values)
    usual = (size > SMALLEST) & (size < LARGEST)
    places = SIGNIFICANT - 1 - np.floor(np.log10(np.where(usual, size, 1.0)))
    power = 10.0 ** np.abs(places)  # exact here: a whole number divided by it is the nearest to the decimal
    known = np.where(usual, values, 0.0)
    rounded: Floats = np.where(places >= 0, np.round(known * power) / power, np.round(known / power) * power)
    for place in np.flatnonzero(~usual):  # these are few
        rounded[place] = float(f"{values[place]:.{SIGNIFICANT}g}")
    return rounded


def known(value: FactorValue) -> FactorValue | None:
    """The value; None where it is no number, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def known_number(value: float) -> float | None:
    """The same for what is a number."""
    return value if math.isfinite(value) else None


def _verdict(expected: float | None) -> str:
    if expected is None:
        return ""
    if expected > AS_EXPECTED:
        return ": as expected"
    return ": against the odds" if expected < AGAINST_THE_ODDS else ": an even match"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
