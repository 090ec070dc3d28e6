"""The effects of a match as sentences, shared by `evenmatch explain`, the HTTP API and the web pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.systems.system import RATING_DECIMALS, FactorValue

SIGNIFICANT = 6  # digits of probabilities and factors
SMALLEST, LARGEST = 1e-16, 1e22  # outside these sizes powers of ten are not exact, so numbers are rounded as text
AS_EXPECTED, AGAINST_THE_ODDS = 0.55, 0.45  # limits of the winner's expected score; between them: an even match


class Finish(NamedTuple):
    """The place and score of a team.

    label     as it was sent
    expected  its expected score before the match, 0..1; None: the match was not rated
    """

    label: str
    place: int
    score: float | None
    expected: float | None


def outcome(teams: Sequence[Finish]) -> str:
    """A sentence that says who won, and whether that was expected."""
    best = min(team.place for team in teams)
    winners = [team for team in teams if team.place == best]
    labels = [f"team {team.label}" for team in winners]
    if len(winners) == len(teams):
        return f"A draw between {' and '.join(labels)}."
    if len(winners) > 1:
        return f"{_sentence(' and '.join(labels))} shared first place among {len(teams)} teams."
    return f"{_sentence(labels[0])} won{_verdict(winners[0].expected)}."


def standing_of(team: Finish) -> str:
    """A team's place, score and expected score, as text."""
    score = "" if team.score is None else f", score {team.score:g}"
    odds = "" if team.expected is None else f", expected {team.expected:.1%} before the match"
    return f"Team {team.label}: place {team.place}{score}{odds}"


def movement(before: float, after: float, *, quit_early: bool) -> str:
    """A rating before and after, and its change, as text."""
    left, shown = " (quit)" if quit_early else "", ShownRatingChange.of(before, after)
    return f"{shown.before:.2f} → {shown.after:.2f}  {shown.change:+.2f}{left}"


class ShownRatingChange(NamedTuple):
    """A rating change as shown, rounded so that `before` plus `change` equals `after`."""

    before: float
    after: float
    change: float

    @classmethod
    def of(cls, before: float, after: float) -> ShownRatingChange:
        """Round two exact ratings; the change is the difference of the rounded ones."""
        start, end = round(before, RATING_DECIMALS), round(after, RATING_DECIMALS)
        return cls(start, end, round(end - start, RATING_DECIMALS))


def shown(value: FactorValue) -> FactorValue | None:
    """A probability or factor as it is shown; None for NaN and infinities, which JSON does not have."""
    if not isinstance(value, float):
        return value
    return shown_number(value) if math.isfinite(value) else None


def factor_text(value: FactorValue | None) -> str:
    """A factor in words; a dash for one that was not used."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.replace("_", " ")
    return "–" if value is None or not math.isfinite(value) else f"{value:.4g}".replace("-", "−")


def shown_number(value: float) -> float:
    """A probability or factor, rounded to its significant digits."""
    return float(shown_numbers(np.array([value]))[0])


def shown_numbers(values: Floats) -> Floats:
    """Round a column to its significant digits; infinities and NaN stay as they are."""
    size = np.abs(values)
    usual = (size > SMALLEST) & (size < LARGEST)
    places = SIGNIFICANT - 1 - np.floor(np.log10(np.where(usual, size, 1.0)))
    power = 10.0 ** np.abs(places)  # exact here, so dividing a whole number by it gives the nearest decimal
    known = np.where(usual, values, 0.0)
    rounded: Floats = np.where(places >= 0, np.round(known * power) / power, np.round(known / power) * power)
    for place in np.flatnonzero(~usual):  # rare
        rounded[place] = float(f"{values[place]:.{SIGNIFICANT}g}")
    return rounded


def known(value: FactorValue) -> FactorValue | None:
    """The value; None for NaN and infinities, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def known_number(value: float) -> float | None:
    """The number; None for NaN and infinities, which JSON does not have."""
    return value if math.isfinite(value) else None


def _verdict(expected: float | None) -> str:
    if expected is None:
        return ""
    if expected > AS_EXPECTED:
        return ": as expected"
    return ": against the odds" if expected < AGAINST_THE_ODDS else ": an even match"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
