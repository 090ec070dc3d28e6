"""View models of ladders and matches for the templates, built from query results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from evenmatch.ladders.standings import View
from evenmatch.ladders.visibility import Visibility
from evenmatch.players.explanations import factor_text
from evenmatch.players.headlines import Explanation
from evenmatch.players.matches import MatchProfile, TeamProfile
from evenmatch.players.placement import placement_rule
from evenmatch.sentences import Sentence
from evenmatch.standings.bands import division_notes
from evenmatch.standings.board import Snapshot, Standing
from evenmatch.systems.system import Change, Factor, FactorValue, System
from evenmatch.web.texts import Texts

HALF = 0.5
TIERS = 6  # colours of division badges
COUNTED = {"all": "", "season": "Matches this season", "reset": "Matches since the last reset"}  # by View.counting
LETTERS = {"won": "W", "drew": "D", "lost": "L", "none": "–"}


@dataclass(frozen=True)
class LadderShown:
    """A ladder as shown in the header of its pages.

    placement   what it takes to be listed
    tiers       the badge colour of each division, from 1 (lowest) to 6 (highest)
    seen        the state of the ledger that the page shows, from `seen_of`
    snapshot    its standings as the visitor sees them
    visibility  what the visitor may see of its ratings
    counted     which matches the standings count, in words; empty: all
    colour      the accent colour of its pages; empty: that of the site
    """

    name: str
    title: str
    system: str
    placement: Sentence
    tiers: Mapping[str, int]
    rebuild_due: bool
    archived: bool
    seen: str
    snapshot: Snapshot
    visibility: Visibility
    counted: str
    colour: str

    @classmethod
    def of(cls, view: View) -> LadderShown:
        """Create the view model of a ladder from its view as the visitor sees it."""
        divisions = view.settings.standings.divisions
        last = max(len(divisions) - 1, 1)
        tiers = {division.name: 1 + index * (TIERS - 1) // last for index, division in enumerate(divisions)}
        head = view.head
        return cls(
            head.name,
            view.settings.title or head.name,
            head.system,
            placement_rule(view.settings.standings),
            tiers,
            head.due is not None,
            view.settings.archived,
            seen_of(view),
            view.snapshot,
            Visibility(view.snapshot.show),
            COUNTED[view.counting],
            view.settings.colour,
        )

    def division_notes(self, standing: Standing) -> list[Sentence]:
        """Return the notes on a player's division, see `bands.division_notes`."""
        return division_notes(self.snapshot, standing)


def seen_of(view: View) -> str:
    """Return a token for the ledger state of a view; it differs after every change that the pages show."""
    return f"{view.head.position}.{view.head.generation}.{view.head.corrected}.{view.head.divided_at}"


class MatchResult(NamedTuple):
    """A player's result in a match: `won`, `drew`, `lost`, or `none` if not rated; a letter, and a sentence."""

    match_id: str
    word: str
    letter: str
    told: str


class PlayedMatch(NamedTuple):
    """A match from the point of view of one of its players.

    change  None: not rated, or not shown;  percentile, division  as shown when the match was recorded
    """

    match: MatchProfile
    side: TeamProfile
    change: Change | None
    percentile: int | None
    division: str | None
    quit: bool
    explanation: Explanation | None
    result: MatchResult


def played(match: MatchProfile, name: str, texts: Texts) -> PlayedMatch:
    """Return a match from the point of view of a player who appears in it."""
    team, position = match.part_of(name)
    side = match.sides[team]
    appearance, line = side.parts[position]
    return PlayedMatch(
        match,
        side,
        None if line is None else line.change,
        None if line is None else line.percentile,
        None if line is None else line.division,
        appearance.quit,
        match.explanations[team][position] if match.explanations else None,
        result_of(match, side, texts),
    )


def result_of(match: MatchProfile, side: TeamProfile, texts: Texts) -> MatchResult:
    """Return the result of a team in a match."""
    places = [team.finish.place for team in match.sides]
    own, others = side.finish.place, len(places) - 1
    beaten = sum(place > own for place in places)
    tied = sum(place == own for place in places) - 1
    score = (beaten + 0.5 * tied) / others
    word = "won" if score > 0.5 else "lost" if score < 0.5 else "drew"
    text, letter = texts.translated(word), LETTERS[word]
    if others > 1:
        text, letter = texts.text("place %(place)s of %(teams)s", place=own, teams=len(places)), str(own)
    if match.state != "rated":
        word, text = "none", texts.text("%(result)s (not rated)", result=text)
    return MatchResult(match.match_id, word, letter, text)


def counted_from_one(match: MatchProfile) -> MatchProfile:
    """Return the match with unnamed teams labelled from 1 instead of 0."""
    labels = [side.finish.label for side in match.sides]
    if labels != [str(index) for index in range(len(labels))]:
        return match
    numbered = enumerate(match.sides, 1)
    sides = (replace(side, finish=side.finish._replace(label=str(number))) for number, side in numbered)
    return replace(match, sides=tuple(sides))


class FactorShown(NamedTuple):
    """A factor of a rating change: label, value in words, and length of its bar.

    share  −1..1, its distance from the neutral value; None if the value is not a number
    """

    name: str
    meaning: str
    told: str
    share: float | None


def factors_of(system: System, values: Mapping[str, FactorValue], largest: Mapping[str, float]) -> list[FactorShown]:
    """Return these factors in the system's order; `largest`: from `largest_of` for the match."""
    return [
        _factor(factor, values[factor.name], largest.get(factor.name, 0.0))
        for factor in system.factors
        if factor.name in values
    ]


def largest_of(system: System, match: MatchProfile) -> dict[str, float]:
    """Return the largest distance of each numeric factor from its neutral value, over all players of a match.

    Multipliers have at least HALF, so that the bar for a modifier of 1.01 is shorter than the bar for 1.5.
    """
    largest = {factor.name: HALF if factor.neutral else 0.0 for factor in system.factors}
    neutral = {factor.name: factor.neutral for factor in system.factors}
    for explanation in chain.from_iterable(match.explanations):
        for name, value in (*explanation.factors_of_team.items(), *explanation.factors_of_player.items()):
            if isinstance(value, float) and math.isfinite(value):
                largest[name] = max(largest[name], abs(value - neutral[name]))
    return largest


def _factor(factor: Factor, value: FactorValue, largest: float) -> FactorShown:
    label, text = factor.name.replace("_", " "), factor_text(value)
    if isinstance(value, bool | str) or not math.isfinite(value):
        return FactorShown(label, factor.meaning, text, None)
    share = (value - factor.neutral) / largest if largest else 0.0
    return FactorShown(label, factor.meaning, f"× {text}" if factor.neutral else text, share)
