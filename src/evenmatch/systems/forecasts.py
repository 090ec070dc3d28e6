"""Odds of future matches, from a system's `pair`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import NO_ENTRIES, Entries, Flags, Floats
from evenmatch.systems.loop import engine
from evenmatch.systems.system import Records, Rules


class LineUpTeams(NamedTuple):
    """Teams as columns. start: (T+1,) first player of each team; player: (S,) their indices in the state."""

    start: NDArray[np.integer]
    player: NDArray[np.integer]


class LineUpContext(NamedTuple):
    """What a line-up plays on: C context values; what is known about its S players under them, and as newcomers.

    values   uint32 (C,)  indices of the values' records;  offset  uint32 (S·C,)  indices into `offsets`
    entry    float32 (S,)  see `history.Columns`; empty: nothing is known
    """

    values: NDArray[np.uint32]
    offsets: Records
    offset: NDArray[np.uint32]
    entry: Entries = NO_ENTRIES


NO_CONTEXT = np.empty(0, np.uint32)


def forecasts(
    rules: Rules,
    state: Records,
    teams: LineUpTeams,
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    home: Flags,
    now: int,
    *,
    ladders: Records | None = None,
    two: bool = True,
    context: LineUpContext | None = None,
) -> Floats:
    """P(the first team of a pair finishes ahead of the second) and P(they draw); float64 (P, 2).

    first, second  (P,) indices into the teams;  now  microseconds
    home           bool (P,)  whether the first is the first-listed team of its match
    ladders        the records of the pool and of the ladder; None: before the first match
    two            whether the matches have two teams
    context        what they are played on; None: nothing is known
    """
    columns = (*teams, first, second)
    start, player, a, b = (np.ascontiguousarray(column, np.uint32) for column in columns)
    predicted = np.empty((len(a), 2))
    known = LineUpContext(NO_CONTEXT, rules.offsets(0), NO_CONTEXT) if context is None else context
    engine(rules.system).forecast(
        *(start, player, a, b, np.asarray(home, np.bool_), two, np.int64(now), state),
        *(rules.ladders() if ladders is None else ladders, *known, rules.compiled, predicted),
    )
    return predicted


def line_up_forecasts(
    rules: Rules,
    state: Records,
    teams: LineUpTeams,
    count: int,
    now: int,
    ladders: Records | None = None,
    context: LineUpContext | None = None,
) -> Floats:
    """The forecasts of all pairs of teams of M matches of `count` teams each; float64 (M, P, 2).

    The pairs of a match are in the order (0, 1), (0, 2) … (1, 2) …; now: microseconds.
    ladders, context  as for `forecasts`
    """
    a, b = np.triu_indices(count, 1)
    base = np.arange(0, len(teams.start) - 1, count)[:, None]
    first, second = (base + a).ravel(), (base + b).ravel()
    home = np.tile(a == 0, len(base))
    predicted = forecasts(
        rules, state, teams, first, second, home, now, ladders=ladders, two=count == 2, context=context
    )
    return predicted.reshape(len(base), len(a), 2)


def odds(
    rules: Rules, state: Records, a: list[int], b: list[int], home: bool, now: int, ladders: Records | None = None
) -> tuple[float, float]:
    """P(the players `a` finish ahead of the players `b`) and P(they draw); indices into the state, microseconds.

    home  whether `a` is the first-listed team of the match
    """
    teams = LineUpTeams(np.array([0, len(a), len(a) + len(b)]), np.array([*a, *b]))
    first, second = np.zeros(1, int), np.ones(1, int)
    ((win, draw),) = forecasts(rules, state, teams, first, second, np.array([home]), now, ladders=ladders)
    return float(win), float(draw)
