"""Explain the rating changes of a match: a sentence for each player, what another result would have done, and factors.

The messages are in `systems.wording`, and a system supplies the reason for a change that needs one (`System.because`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats, History
from evenmatch.stakes import quitters_differ, turned_around
from evenmatch.systems import wording
from evenmatch.systems.system import EVEN_GAP, Change, FactorValue, Rules
from evenmatch.systems.wording import Reason, Voice

SLIGHT = 0.005  # a result this close to the expected score is neither better nor worse
OWN_GAP = 25.0  # points above or below the team's average from which a change differs visibly from the team's odds
TURNED_AT_MOST = 16  # teams of a match for which other results are computed: a replay of the match for each


class Explanation(NamedTuple):
    """The explanation of a player's rating change.

    headline    a sentence to the player ("You won …"): the result, what was expected, and the change
    of_another  the same sentence for everybody else ("They won …")
    otherwise   what another result would have done to the rating; None: the system cannot tell, or the player left
    otherwise_of_another  the same for everybody else
    factors_of_team, factors_of_player  the factors that are the same for all players of a team of several, and the rest
    """

    headline: str
    of_another: str
    otherwise: str | None
    otherwise_of_another: str | None
    factors_of_team: Mapping[str, FactorValue]
    factors_of_player: Mapping[str, FactorValue]


def explain(
    by: Rules,
    match: History,
    changes: Sequence[Sequence[Change]],
    translate: Callable[[str], str] = wording.same,
) -> tuple[tuple[Explanation, ...], ...]:
    """Explain the changes of one match, team by team.

    translate  returns a message of `wording.messages` in another language, with the same names in braces
    """
    otherwise, slot, facts = _otherwise(by, match, changes), count(), MatchFacts.of(match)
    told = _Telling(by, facts, otherwise, translate)
    explained = []
    for team in changes:
        first, *others = (change.factors for change in team)
        shared = {name for name, value in first.items() if others and all(one[name] == value for one in others)}
        mean = sum(change.before for change in team) / len(team)
        explained.append(tuple(told.explain(change, mean, next(slot), shared) for change in team))
    return tuple(explained)


class MatchFacts(NamedTuple):
    """A match in lists.

    ranks, tied, sizes  of its teams: rank from 1, how many share it, and players
    quit, keep          of its slots: left early; counts for the player's rating
    """

    ranks: list[int]
    tied: list[int]
    sizes: list[int]
    quit: list[bool]
    keep: list[bool]

    @classmethod
    def of(cls, match: History) -> MatchFacts:
        """Read a history of one match."""
        c = match.columns
        places, ordered = c.place, np.sort(c.place)
        ahead, to = (np.searchsorted(ordered, places, side) for side in ("left", "right"))
        sizes = np.diff(c.slot_start).tolist()
        return cls((1 + ahead).tolist(), (to - ahead).tolist(), sizes, c.quit.tolist(), c.keep.tolist())


class _Telling(NamedTuple):
    """What the explanations of a match have in common. otherwise: all slots' ratings, by team and its other result."""

    by: Rules
    facts: MatchFacts
    otherwise: Mapping[tuple[int, str], Floats]
    translate: Callable[[str], str]

    def explain(self, change: Change, mean: float, slot: int, shared: set[str]) -> Explanation:
        """Explain one player's change. mean: of the team's ratings; shared: factors that the team has in common."""
        by, left, counts = self.by, self.facts.quit[slot], self.facts.keep[slot]
        name, expected, values = self.outcome(change, left)
        lead = change.before - mean
        reason = _reason(by, change, lead, name) if counts else wording.NOT_COUNTED
        notes = _notes(by, change, lead, reason) if reason.sentence in wording.NOTED else []
        others = self.others(change, slot) if counts and not left and reason.otherwise else {}
        level = self.level(change, others) if any(note.sentence == wording.UNCERTAIN for note in notes) else []
        if level:
            notes = [note for note in notes if note.sentence != wording.UNCERTAIN]
        other = level or [self.other_result(reason, result, one, change.moved) for result, one in others.items()]
        told = [reason, *reason.then, *notes]
        if name == "drew" and _draw_explains(change, reason):
            expected = {"favourite": "favourite, less", "underdog": "underdog, more"}.get(expected, expected)
        kind, deed = wording.KINDS.get(name.removeprefix("left and "), wording.OTHER_KIND)
        clauses = {
            "result": wording.RESULTS[name],
            "outcome": wording.OUTCOMES.get((name, expected), wording.RESULTS[name]),
            **{"kind": kind, "deed": deed},
            **dict(zip(("effect", "Effect", "it"), wording.EFFECTS[_direction(change.moved)], strict=True)),
        }
        (to_player, otherwise), (to_others, otherwise_of_another) = (
            [" ".join(self.sentence(one, clauses, values, voice) for one in sentences) for sentences in (told, other)]
            for voice in (self.voice(person, change.team) for person in ("player", "others"))
        )
        return Explanation(
            to_player,
            to_others,
            otherwise or None,
            otherwise_of_another or None,
            {factor: value for factor, value in change.factors.items() if factor in shared},
            {factor: value for factor, value in change.factors.items() if factor not in shared},
        )

    def sentence(self, reason: Reason, clauses: Mapping[str, str], values: Mapping[str, object], voice: Voice) -> str:
        """A sentence about a change."""

        def say(template: str, values: Mapping[str, object]) -> str:
            return self.translate(wording.message(template, voice)).format(**values)

        told = {**values, **{name: say(template, values) for name, template in clauses.items()}, **reason.values}
        for template, numbers in reason.parts:
            part = say(template, numbers)
            told["parts"] = say(wording.PARTS, {"parts": told["parts"], "part": part}) if "parts" in told else part
        return say(reason.sentence, told)

    def voice(self, person: str, team: int) -> Voice:
        """The words for a person, "player" or "others", and the teams as one of this team sees them."""
        sizes = self.facts.sizes
        members = ["team" if size > 1 else "player" for size in (sizes[team], sizes[1 - team % 2], max(sizes))]
        return Voice(person, *members)

    def outcome(self, change: Change, left: bool) -> tuple[str, str, dict[str, object]]:
        """The result and the expectation, as in wording.OUTCOMES, and the values of their clauses."""
        surprise, teams = change.result - change.expected, len(self.facts.sizes)
        agrees = change.moved * surprise > 0
        if teams == 2:
            chance = min(max(round(100 * change.expected), 1), 99)
            equal = "nearly equal" if agrees and change.result == 0.5 and chance != 50 else "equal"
            clear = "favourite" if change.expected > 0.5 else "underdog"
            expected = equal if abs(change.expected - 0.5) <= EVEN_GAP else clear
            result = "won" if change.result > 0.5 else "lost" if change.result < 0.5 else "drew"
        else:
            chance, tied = 0, self.facts.tied[change.team]
            told = agrees and abs(surprise) >= SLIGHT if change.moved else abs(surprise) > EVEN_GAP
            expected = "unsaid" if not told else "better" if surprise > 0 else "worse"
            result = "placed" if tied == 1 else "all tied" if tied == teams else "tied"
        place = wording.ordinal(self.facts.ranks[change.team], self.translate)
        values = {"chance": chance, "place": place, "teams": teams, "points": _points(self.by, change.moved)}
        return ("left and " if left else "") + result, expected, values

    def others(self, change: Change, slot: int) -> dict[str, Change]:
        """The changes that other results would have brought."""
        return {
            result: change._replace(after=float(ratings[slot]))
            for (team, result), ratings in self.otherwise.items()
            if team == change.team and math.isfinite(ratings[slot])
        }

    def level(self, change: Change, others: Mapping[str, Change]) -> list[Reason]:
        """The sentence about both ends after a draw or a tie of all of an uncertain rating; none for other results."""
        most, least = (next(iter(others.values())), [*others.values()][-1]) if len(others) == 2 else (change, change)
        if most.moved <= 0 or least.moved >= 0:
            return []
        kind = "draw" if "win" in others else "tie"
        points = {"most": _points(self.by, most.moved), "least": _points(self.by, least.moved)}
        return [Reason(wording.UNCERTAIN_LEVEL[kind], points)]

    def other_result(self, reason: Reason, result: str, change: Change, really: float) -> Reason:
        """Say what another result would have done to the rating. really: the change that this result brought."""
        by, moved = self.by, change.moved
        if moved == 0:
            effect = "floor" if by.values().get("floor") == change.before else "nothing"
        elif moved < 0:
            effect = "same" if moved == really else "cost"
        else:
            effect = "earned" if result.startswith(("win", "first")) else "still"
        large = change.before >= 10 or by.system.whole(by.parameters)
        floor = f"{change.before:,.0f}" if large else f"{change.before:.2f}"
        return Reason(reason.otherwise[result, effect], {"points": _points(by, moved), "floor": floor})


def _reason(by: Rules, change: Change, lead: float, name: str) -> Reason:
    """The system's reason, or a general one. lead: the player's rating minus the team's mean."""
    own: Reason | None = by.system.because(change, by.parameters)
    if own is not None:
        return own
    by_own = by.system.own_rating(by.parameters) and lead * change.moved < 0
    if by_own and change.moved * (change.result - change.expected) < 0:
        return wording.OWN_ABOVE if lead > 0 else wording.OWN_BELOW
    if change.is_against_result:
        return wording.BY_HISTORY if name.removeprefix("left and ") in ("won", "drew", "lost") else wording.BY_OPPONENT
    if name == "left and won" and change.moved > 0 and not quitters_differ(by):
        return wording.LEFT_UNPUNISHED
    if not change.moved and name in ("won", "lost") and abs(change.result - change.expected) <= EVEN_GAP:
        return wording.AS_EXPECTED
    return wording.AS_USUAL if change.moved else wording.UNCHANGED


def _draw_explains(change: Change, reason: Reason) -> bool:
    """Whether the rating moved, or would have moved, because a draw is more or less than expected."""
    surprise = change.result - change.expected
    usual = reason.sentence in (wording.AS_USUAL.sentence, wording.BREAKDOWN) and change.moved * surprise > 0
    return usual or (reason.sentence == wording.OUTWEIGHED and surprise < 0)


def _notes(by: Rules, change: Change, lead: float, reason: Reason) -> list[Reason]:
    """More sentences about the size of a change, from the system and because the player is not the team's average."""
    own: Reason | None = by.system.note(change, by.parameters)
    notes = [] if own is None else [own]
    if reason.sentence not in wording.BY_OWN and abs(lead) >= OWN_GAP and by.system.own_rating(by.parameters):
        notes.append(Reason(wording.OWN_NOTES[_direction(change.moved), lead > 0]))
    return sorted(notes, key=lambda note: note.sentence == wording.UNCERTAIN)  # the uncertainty comes last


def _otherwise(by: Rules, match: History, changes: Sequence[Sequence[Change]]) -> Mapping[tuple[int, str], Floats]:
    """The ratings after other results; empty if the system cannot tell, or there are many teams."""
    recalled = [by.system.recall(change, by.parameters) for team in changes for change in team]
    if len(changes) > TURNED_AT_MOST or any(record is None for record in recalled):
        return {}
    told = turned_around(by, match, np.array(recalled, by.system.state))
    alone = " alone" if len(changes) > 2 and match.columns.place.min() == match.columns.place.max() else ""
    return {(team, result + alone): ratings for (team, result), ratings in told.items()}


def _direction(moved: float) -> int:
    """An index of wording.EFFECTS and wording.OTHERWISE."""
    return wording.RISE if moved > 0 else wording.FALL if moved < 0 else wording.NO_CHANGE


def _points(by: Rules, moved: float) -> str:
    whole = by.system.whole(by.parameters) and moved == round(moved)
    return f"{abs(moved):,.0f}" if whole else f"{abs(moved):,.2f}"
