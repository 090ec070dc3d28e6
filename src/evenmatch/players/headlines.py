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
from evenmatch.stakes import turned_around
from evenmatch.systems import wording
from evenmatch.systems.system import EVEN_GAP, Change, FactorValue, Rules
from evenmatch.systems.wording import Reason

CLEAR = 0.05  # expected scores closer than this to 0 or 1 are told out of 100 games instead of 10
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
    otherwise, slot = _otherwise(by, match, changes), count()
    explained = []
    for team in changes:
        first, *others = (change.factors for change in team)
        shared = {name for name, value in first.items() if others and all(one[name] == value for one in others)}
        explained.append(tuple(_explain(by, match, change, next(slot), shared, otherwise) for change in team))
    return tuple(explained)


def _explain(
    by: Rules,
    match: History,
    change: Change,
    slot: int,
    shared: set[str],
    otherwise: Mapping[tuple[int, str], Floats],
) -> Explanation:
    """Explain one player's change. otherwise: the ratings of all slots, by team and its other result."""
    left, counts = bool(match.columns.quit[slot]), bool(match.columns.keep[slot])
    values = _values(match, change)
    name = ("left and " if left else "") + str(values["result"])
    reason = _reason(by, change, len(match.columns.place)) if counts else wording.NOT_COUNTED
    other = [
        wording.OTHERWISE[_direction(moved)].format(other=wording.OTHER_RESULTS[result], points=_points(moved))
        for (team, result), ratings in otherwise.items()
        if team == change.team and counts and not left and math.isfinite(ratings[slot])
        for moved in [change._replace(after=float(ratings[slot])).moved]
    ]
    to_player, to_others = (_headline(reason, name, change, values | people) for people in wording.PEOPLE.values())
    return Explanation(
        to_player,
        to_others,
        " ".join(other) or None,
        {factor: value for factor, value in change.factors.items() if factor in shared},
        {factor: value for factor, value in change.factors.items() if factor not in shared},
    )


def _headline(reason: Reason, name: str, change: Change, values: Mapping[str, object]) -> str:
    """The sentence about a change. name: of the result, in wording.RESULTS; values: for the clauses."""
    result = wording.RESULTS[name].format(**values)
    expected = wording.OUTCOMES.get((name, str(values["expected"])))
    effect, it = wording.EFFECTS[_direction(change.moved)]
    points = _points(change.moved)
    clauses = {
        "result": result,
        "outcome": result if expected is None else expected.format(**values),
        "effect": effect.format(**values, points=points),
        "it": it.format(points=points),
    }
    return reason.sentence.format(**{**values, **clauses, **reason.values})


def _reason(by: Rules, change: Change, teams: int) -> Reason:
    """The system's reason, or a general one."""
    own: Reason | None = by.system.because(change, by.parameters)
    if own is not None:
        return own
    if change.is_against_result:
        return wording.BY_HISTORY if teams == 2 else wording.BY_OPPONENT
    return wording.AS_USUAL if change.moved else wording.UNCHANGED


def _values(match: History, change: Change) -> dict[str, object]:
    """The result and the expectation as in wording.OUTCOMES, and the numbers of their clauses."""
    places = match.columns.place.tolist()
    own, rivals = places[change.team], len(places) - 1
    if rivals == 1:
        result = "won" if change.result > 0.5 else "lost" if change.result < 0.5 else "drew"
        chance = change.expected
        of = 10 if CLEAR <= chance <= 1 - CLEAR else 100
        lead = chance - 0.5
        expected = "equal" if abs(lead) <= EVEN_GAP else "favourite" if lead > 0 else "underdog"
        return {"result": result, "expected": expected, "wins": min(max(round(of * chance), 1), of - 1), "of": of}
    place, tied = 1 + sum(other < own for other in places), places.count(own)
    last, due = place + tied - 1, round(1 + rivals * (1 - change.expected))
    near = place <= due <= last or abs(change.result - change.expected) * rivals <= 0.5
    return {
        "result": "placed" if tied == 1 else "shared",
        "expected": "same" if near else "different",
        "place": wording.ordinal(place) if tied == 1 else place,
        "last": last,
        "due": wording.ordinal(due),
        "teams": len(places),
    }


def _otherwise(by: Rules, match: History, changes: Sequence[Sequence[Change]]) -> Mapping[tuple[int, str], Floats]:
    """The ratings after other results; empty if the system cannot tell, or there are many teams."""
    recalled = [by.system.recall(change, by.parameters) for team in changes for change in team]
    if len(changes) > TURNED_AT_MOST or any(record is None for record in recalled):
        return {}
    return turned_around(by, match, np.array(recalled, by.system.state))


def _direction(moved: float) -> int:
    """An index of wording.EFFECTS and wording.OTHERWISE."""
    return wording.RISE if moved > 0 else wording.FALL if moved < 0 else wording.NO_CHANGE


def _points(moved: float) -> str:
    return f"{abs(moved):,.2f}"
