"""League points: three for a win, one for a draw. A whole rating system in one file, to start your own from."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
    fields,
    kernel,
    move_shown,
    number,
)


@dataclass(frozen=True)
class LeagueParameters(Parameters):
    """What can be set by name, with a range and a meaning."""

    win: float = number(3.0, 0, 100, "points for each rival finished ahead of")
    draw: float = number(1.0, 0, 100, "points for each draw")


class League(NamedTuple):
    """The same numbers as the kernels read them."""

    win: float
    draw: float


STATE = np.dtype([("rating", "f8"), ("games", "i8")], align=True)
FACTORS = (Factor("points", "what the match was worth"),)


@kernel
def per_game(team: Integers, state: Records) -> float:
    """Mean points per game of a team, as though everybody had once won and once lost before."""
    total = 0.0
    for i in range(len(team)):
        record = state[team[i]]
        total += (record.rating + 1.5) / (record.games + 1.0)
    return total / len(team)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: League) -> tuple[float, float]:
    """P(a finishes ahead of b), P(draw): by their points per game."""
    own, other = per_game(a, state), per_game(b, state)
    return own / (own + other), 0.0


@kernel
def update(
    h: Columns, m: int, state: Records, params: League, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Add each player's points for match m."""
    first, end = h.team_start[m], h.team_start[m + 1]
    for team in range(first, end):
        points = 0.0
        for rival in range(first, end):
            if rival != team:
                ahead = h.place[rival] - h.place[team]
                points += params.win if ahead > 0 else params.draw if ahead == 0 else 0.0
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            record = state[h.player[slot]]
            record.rating += points
            record.games += 1
            if len(factors):
                factors[slot].points = points


def because(change: Change, parameters: LeagueParameters) -> Reason | None:
    """The reason for a change that the result does not explain: points are never lost."""
    return None if change.moved else Reason("{result}, which brings no points, so {effect}.")


def newcomer(parameters: LeagueParameters) -> tuple[object, ...]:
    """The record of a player who has not played."""
    return (0.0, 0)


SYSTEM = System(
    name="league_points",
    title="points for wins and draws, as in a football league",
    source="this file",
    parameters=LeagueParameters,
    presets={"old": {"win": 2.0}},
    compile=lambda p: League(p.win, p.draw),
    state=STATE,
    newcomer=newcomer,
    start_at=as_shown(newcomer, lowest=lambda p: 0.0),
    move=move_shown(lowest=lambda p: 0.0),
    columns=fields("games"),
    factors=FACTORS,
    pair=pair,
    update=update,
    because=because,
)
