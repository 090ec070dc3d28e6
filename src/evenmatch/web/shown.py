"""What pages show of ladders and matches, out of what the use cases tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from evenmatch.service.boards import View
from evenmatch.service.recorded import Part, Recorded, Side
from evenmatch.systems.system import Change, Factor, FactorValue, System

HALF = 0.5
TIERS = 6  # looks of divisions
LETTERS = {"won": "W", "drew": "D", "lost": "L", "none": "–"}


@dataclass(frozen=True)
class LadderShown:
    """A ladder as the head of its pages shows it.

    tiers  the look of each division, 1 the lowest to 6 the highest
    seen   of which state of the ledger the page tells
    """

    name: str
    title: str
    system: str
    placement: int
    tiers: Mapping[str, int]
    rebuild_due: bool
    archived: bool
    seen: str

    @classmethod
    def of(cls, view: View) -> LadderShown:
        """The ladder of a view."""
        divisions = view.settings.standings.divisions
        last = max(len(divisions) - 1, 1)
        tiers = {one.name: 1 + at * (TIERS - 1) // last for at, one in enumerate(divisions)}
        head = view.head
        return cls(
            head.name,
            view.settings.title or head.name,
            head.system,
            view.settings.standings.placement,
            tiers,
            head.due is not None,
            view.settings.archived,
            seen_of(view),
        )


def seen_of(view: View) -> str:
    """Which state of the ledger a view tells of; another one is told otherwise."""
    return f"{view.head.position}.{view.head.generation}.{view.head.corrected}.{view.head.divided_at}"


class Result(NamedTuple):
    """What a player made of a match: won, drew, lost, or none where it does not count; a letter, and in words."""

    match_id: str
    word: str
    letter: str
    told: str


class Played(NamedTuple):
    """A match from the side of one player in it."""

    match: Recorded
    side: Side
    change: Change | None
    quit: bool
    reason: str | None
    result: Result


def played(match: Recorded, name: str) -> Played:
    """A match from the side of a player who is in it."""
    team, at = next(
        (team, at)
        for team, side in enumerate(match.sides)
        for at, (appearance, _) in enumerate(side.parts)
        if appearance.player == name
    )
    side = match.sides[team]
    appearance, line = side.parts[at]
    return Played(
        match,
        side,
        None if line is None else line.change,
        appearance.quit,
        match.reasons[team][at] if match.reasons else match.reason,
        result_of(match, side),
    )


def result_of(match: Recorded, side: Side) -> Result:
    """What a team made of a match."""
    places = [one.finish.place for one in match.sides]
    mine, others = side.finish.place, len(places) - 1
    ahead = sum(one > mine for one in places)
    level = sum(one == mine for one in places) - 1
    score = (ahead + 0.5 * level) / others
    word = "won" if score > 0.5 else "lost" if score < 0.5 else "drew"
    told = {"won": "won", "drew": "drew", "lost": "lost"}[word]
    letter = LETTERS[word]
    if others > 1:
        told, letter = f"place {mine} of {len(places)}", str(mine)
    if match.state != "rated":
        word, told = "none", f"{told}, which is not rated"
    return Result(match.match_id, word, letter, told)


def counted_from_one(match: Recorded) -> Recorded:
    """The same match; teams that were sent without a name, which programs count from 0, as people count."""
    labels = [side.finish.label for side in match.sides]
    if labels != [str(at) for at in range(len(labels))]:
        return match
    sides = (replace(side, finish=side.finish._replace(label=str(at))) for at, side in enumerate(match.sides, 1))
    return replace(match, sides=tuple(sides))


class FactorShown(NamedTuple):
    """A factor of a change: what it is called, its value in words, and how long its bar is.

    share  −1..1, by how far it is from changing nothing; None where the value is no number
    """

    name: str
    meaning: str
    told: str
    share: float | None


def factors_of(system: System, part: Part, largest: Mapping[str, float]) -> list[FactorShown]:
    """The factors of a player's change, in the system's order; `largest` is what `largest_of` found in the match."""
    _, line = part
    if line is None:
        return []
    return [
        _factor(one, line.change.factors[one.name], largest.get(one.name, 0.0))
        for one in system.factors
        if one.name in line.change.factors
    ]


def largest_of(system: System, match: Recorded) -> dict[str, float]:
    """How far each factor that is a number is from changing nothing, at most, over all players of a match.

    What is multiplied by counts as HALF at least: a modifier of 1.01 is not to look like one of 1.5.
    """
    found = {one.name: HALF if one.neutral else 0.0 for one in system.factors}
    neutral = {one.name: one.neutral for one in system.factors}
    for side in match.sides:
        for _, line in side.parts:
            for name, value in {} if line is None else line.change.factors.items():
                if isinstance(value, float) and math.isfinite(value):
                    found[name] = max(found[name], abs(value - neutral[name]))
    return found


def _factor(factor: Factor, value: FactorValue, largest: float) -> FactorShown:
    called = factor.name.replace("_", " ")
    if isinstance(value, bool):
        return FactorShown(called, factor.meaning, "yes" if value else "no", None)
    if isinstance(value, str):
        return FactorShown(called, factor.meaning, value.replace("_", " "), None)
    if not math.isfinite(value):  # it has no part in this change
        return FactorShown(called, factor.meaning, "–", None)
    told = f"{'× ' if factor.neutral else ''}{value:.4g}".replace("-", "−")
    return FactorShown(called, factor.meaning, told, (value - factor.neutral) / largest if largest else 0.0)
