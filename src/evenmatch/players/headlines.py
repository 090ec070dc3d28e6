"""Explain the rating changes of a match: a sentence for each player, what another result would have done, and factors.

The words are in `systems.wording`, and a system supplies the reason for a change that needs one (`System.because`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats, History
from evenmatch.stakes import quitters_differ, turned_around
from evenmatch.systems import wording
from evenmatch.systems.system import EVEN_GAP, Change, FactorValue, Rules
from evenmatch.systems.wording import Reason

SLIGHT = 0.005  # a result this close to the expected score is neither better nor worse
OWN_GAP = 50.0  # points above or below the team's average from which a change differs visibly from the team's odds
TURNED_AT_MOST = 16  # teams of a match for which other results are computed: a replay of the match for each


class Explanation(NamedTuple):
    """The explanation of a player's rating change.

    headline    a sentence to the player ("You won …"): the result, what was expected, and the change
    of_another  the same sentence for everybody else ("They won …")
    otherwise   what another result would have done to the rating; None: the system cannot tell, or the player left
    factors_of_team, factors_of_player  the factors that are the same for all players of a team of several, and the rest
    """

    headline: str
    of_another: str
    otherwise: str | None
    factors_of_team: Mapping[str, FactorValue]
    factors_of_player: Mapping[str, FactorValue]


def explain(by: Rules, match: History, changes: Sequence[Sequence[Change]]) -> tuple[tuple[Explanation, ...], ...]:
    """Explain the changes of one match, team by team."""
    otherwise, slot, facts = _otherwise(by, match, changes), count(), MatchFacts.of(match)
    explained = []
    for team in changes:
        first, *others = (change.factors for change in team)
        shared = {name for name, value in first.items() if others and all(one[name] == value for one in others)}
        mean = sum(change.before for change in team) / len(team)
        explained.append(tuple(_explain(by, facts, change, mean, next(slot), shared, otherwise) for change in team))
    return tuple(explained)


class MatchFacts(NamedTuple):
    """A match in lists.

    ranks, tied, sizes  of its teams: rank from 1, how many share it, and players;  largest  the largest size
    quit, keep          of its slots: left early; counts for the player's rating
    """

    ranks: list[int]
    tied: list[int]
    sizes: list[int]
    largest: int
    quit: list[bool]
    keep: list[bool]

    @classmethod
    def of(cls, match: History) -> MatchFacts:
        """Read a history of one match."""
        c = match.columns
        places, ordered = c.place, np.sort(c.place)
        ahead, to = (np.searchsorted(ordered, places, side) for side in ("left", "right"))
        sizes = np.diff(c.slot_start).tolist()
        return cls((1 + ahead).tolist(), (to - ahead).tolist(), sizes, max(sizes), c.quit.tolist(), c.keep.tolist())


def _explain(
    by: Rules,
    facts: MatchFacts,
    change: Change,
    mean: float,
    slot: int,
    shared: set[str],
    otherwise: Mapping[tuple[int, str], Floats],
) -> Explanation:
    """Explain one player's change. mean: of the team's ratings; otherwise: all slots', by team and its other result."""
    left, counts = facts.quit[slot], facts.keep[slot]
    values = _values(facts, change)
    name = ("left and " if left else "") + str(values["result"])
    reason = _reason(by, change, change.before - mean, name) if counts else wording.NOT_COUNTED
    note = _note(by, change, change.before - mean) if reason.sentence in wording.NOTED else None
    other = [
        _other_result(by, reason, result, change._replace(after=float(ratings[slot])))
        for (team, result), ratings in otherwise.items()
        if team == change.team and counts and not left and math.isfinite(ratings[slot])
    ]
    points = _points(by, change.moved)
    to_player, to_others = (
        " ".join(_headline(one, name, change, values | people, points) for one in (reason, note) if one)
        for people in wording.PEOPLE.values()
    )
    return Explanation(
        to_player,
        to_others,
        " ".join(other) or None,
        {factor: value for factor, value in change.factors.items() if factor in shared},
        {factor: value for factor, value in change.factors.items() if factor not in shared},
    )


def _headline(reason: Reason, name: str, change: Change, values: Mapping[str, object], points: str) -> str:
    """A sentence about a change. name: of the result, in wording.RESULTS; values: for the clauses."""
    side = {clause: text.format(**values) for clause, text in wording.SIDES[str(values["members"])].items()}
    values = {**values, **side, "points": points}
    result = wording.RESULTS[name].format(**values)
    expected = wording.OUTCOMES.get((name, str(values["expected"])))
    effect, it = wording.EFFECTS[_direction(change.moved)]
    clauses = {
        "result": result,
        "outcome": result if expected is None else expected.format(**values),
        "effect": effect.format(**values),
        "it": it.format(**values),
    }
    return reason.sentence.format(**{**values, **clauses, **reason.values})


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
    return wording.AS_USUAL if change.moved else wording.UNCHANGED


def _note(by: Rules, change: Change, lead: float) -> Reason | None:
    """A second sentence about the size of a change, from the system or because the player is not the team's average."""
    own: Reason | None = by.system.note(change, by.parameters)
    if own is not None or abs(lead) < OWN_GAP or not by.system.own_rating(by.parameters):
        return own
    return Reason(wording.OWN_NOTES[_direction(change.moved), lead > 0])


def _other_result(by: Rules, reason: Reason, result: str, change: Change) -> str:
    """The sentence about a change that another result would have brought."""
    moved, floor = change.moved, by.values().get("floor")
    if moved == 0:
        name = "floor" if floor == change.before else "nothing"
    elif moved < 0:
        name = "cost"
    else:
        name = "earned" if result.startswith(("win", "first")) else "still"
    shown = f"{change.before:,.0f}" if change.before >= 10 or by.system.whole(by.parameters) else f"{change.before:.2f}"
    other = wording.OTHER_RESULTS[result]
    return reason.otherwise[name].format(other=other, points=_points(by, moved), floor=shown)


def _values(facts: MatchFacts, change: Change) -> dict[str, object]:
    """The result and the expectation as in wording.OUTCOMES, and the values of their clauses."""
    sizes, surprise = facts.sizes, change.result - change.expected
    members, agrees = _members(sizes[change.team]), change.moved * surprise > 0
    if len(sizes) == 2:
        chance = min(max(round(100 * change.expected), 1), 99)
        equal = "nearly equal" if agrees and change.result == 0.5 and chance != 50 else "equal"
        clear = "favourite" if change.expected > 0.5 else "underdog"
        return {
            "result": "won" if change.result > 0.5 else "lost" if change.result < 0.5 else "drew",
            "expected": equal if abs(change.expected - 0.5) <= EVEN_GAP else clear,
            "members": members,
            "favourite": wording.FAVOURITE[_members(sizes[1 - change.team])],
            "chance": chance,
        }
    tied = facts.tied[change.team]
    told = agrees and abs(surprise) >= SLIGHT if change.moved else abs(surprise) > EVEN_GAP
    return {
        "result": "placed" if tied == 1 else "all tied" if tied == len(sizes) else "tied",
        "expected": "unsaid" if not told else "better" if surprise > 0 else "worse",
        "members": members,
        "place": wording.ordinal(facts.ranks[change.team]),
        "teams": len(sizes),
        "players": wording.ALL_TEAMS[_members(facts.largest)],
    }


def _members(size: int) -> str:
    """A key of wording.SIDES."""
    return "team" if size > 1 else "player"


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
