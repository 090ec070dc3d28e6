"""The one loop over matches, bound to a system's kernels and compiled once per system."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenmatch.errors import EvenmatchWarning
from evenmatch.history import Columns, Flags, Floats, History, Integers
from evenmatch.systems.compiled import prefetch
from evenmatch.systems.fingerprint import fingerprint
from evenmatch.systems.system import Records, Rules, System

# Kernels allocate nothing, so the arrays' reference counts need no keeping: with it wager is eight times slower.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
# The bound system's kernels: `engine` puts them in the place of these names.
pair: Callable[..., tuple[float, float]]
update: Callable[..., None]
near: int  # as many records as the caches hold anyway

CACHE = 1 << 20  # bytes
STRETCH = 4096  # matches between two reports of progress, at the least
PAIRS = 1 << 16  # of teams, forecast between two calls of `watch`: they stay in the caches


def loop(
    h: Columns,
    start: int,
    stop: int,
    state: Records,
    params: NamedTuple,
    expected: Floats,
    before: Floats,
    after: Floats,
    factors: Records,
    scratch: Floats,
    saved: Records,
    forecasts: Floats,
) -> None:
    """Predict, then learn, each of the matches from `start` up to `stop`.

    before, after  float64 (S,), or empty where no journal is wanted; factors likewise
    saved           room for the states of one match's players, or empty where every slot has keep
    forecasts       float64 (P, 2)  win and draw for each pair of teams of these matches, or empty where not wanted
    """
    far = len(state) > near
    pair_index = 0  # of the next row of forecasts
    for m in range(start, stop):
        first, end = h.team_start[m], h.team_start[m + 1]
        low, high = h.slot_start[first], h.slot_start[end]
        size = high - low
        if far and high + 2 * size <= len(h.player):  # the next match but one: by then its players' records are here
            for slot in range(high + size, high + 2 * size):
                prefetch(state, h.player[slot])
        if end - first == 2:
            middle = h.slot_start[first + 1]
            win, draw = pair(h.player[low:middle], h.player[middle:high], True, h.time[m], state, params)
            expected[first] = win + 0.5 * draw
            expected[first + 1] = 1.0 - expected[first]
            if len(forecasts):
                forecasts[pair_index, 0] = win
                forecasts[pair_index, 1] = draw
                pair_index += 1
        else:
            pair_index = expect_all(h, m, state, params, expected, forecasts, pair_index)
        if len(before):
            for slot in range(low, high):
                before[slot] = state[h.player[slot]].rating
        if len(saved):
            for slot in range(low, high):
                saved[slot - low] = state[h.player[slot]]
        update(h, m, state, params, expected, factors, scratch)
        if len(saved):
            for slot in range(low, high):
                if not h.keep[slot]:
                    state[h.player[slot]] = saved[slot - low]
        if len(after):
            for slot in range(low, high):
                after[slot] = state[h.player[slot]].rating


def expect_all(
    h: Columns, m: int, state: Records, params: NamedTuple, expected: Floats, forecasts: Floats, pair_index: int
) -> int:
    """Expected scores of three teams or more: the mean over each team's rivals. Returns the index of the next pair."""
    first, end = h.team_start[m], h.team_start[m + 1]
    for team in range(first, end):
        expected[team] = 0.0
    for team in range(first, end):
        own = h.player[h.slot_start[team] : h.slot_start[team + 1]]
        total = expected[team]  # against the teams before it
        for rival in range(team + 1, end):
            theirs = h.player[h.slot_start[rival] : h.slot_start[rival + 1]]
            win, draw = pair(own, theirs, team == first, h.time[m], state, params)
            score = win + 0.5 * draw
            total += score
            expected[rival] += 1.0 - score
            if len(forecasts):
                forecasts[pair_index, 0] = win
                forecasts[pair_index, 1] = draw
                pair_index += 1
        expected[team] = total / (end - first - 1)
    return pair_index


def forecast(
    team_start: Integers,
    player: Integers,
    first: Integers,
    second: Integers,
    home: Flags,
    now: int,
    state: Records,
    params: NamedTuple,
    forecasts: Floats,
) -> None:
    """Predict pairs of teams that have not played: write win and draw of each pair to `forecasts`."""
    for p in range(len(first)):
        a, b = first[p], second[p]
        own, theirs = player[team_start[a] : team_start[a + 1]], player[team_start[b] : team_start[b + 1]]
        win, draw = pair(own, theirs, home[p], now, state, params)
        forecasts[p, 0] = win
        forecasts[p, 1] = draw


@dataclass(frozen=True)
class Engine:
    """A system's compiled functions: `replay` is the loop, `forecast` is its `pair` over many pairs of teams."""

    replay: Callable[..., None]
    forecast: Callable[..., None]


@cache
def engine(system: System) -> Engine:
    """The loop bound to this system's kernels; machine code is cached on disk for later processes."""
    # numba links globals statically, inlines them and caches the result; kernels passed as arguments or closed over
    # would be compiled again in every process. It does not notice an edited callee, so the name carries a hash of
    # every kernel's code.
    tag = f"{system.name}_{fingerprint(system)[:12]}"
    scope: dict[str, object] = {"range": range, "len": len, "pair": system.pair, "update": system.update}
    scope |= {"prefetch": prefetch, "near": CACHE // system.state.itemsize}
    scope["expect_all"] = njit(**_OPTIONS)(_rename(expect_all, f"expect_all_{tag}", scope))
    return Engine(_compile(_rename(loop, f"loop_{tag}", scope)), _compile(_rename(forecast, f"forecast_{tag}", scope)))


def _rename(function: Callable[..., Any], name: str, scope: dict[str, object]) -> Callable[..., Any]:
    """A copy of a function under another name and with globals of its own."""
    assert isinstance(function, types.FunctionType)
    scope = {**scope, "__name__": __name__, "__file__": __file__}
    copy = types.FunctionType(function.__code__, scope, name)
    copy.__qualname__, copy.__module__ = name, __name__
    return copy


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        compiled: Callable[..., Any] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError as error:  # neither the package's folder nor the user's cache folder can be written
        warnings.warn(
            f"compiled kernels cannot be cached, each process compiles them again: {error}", EvenmatchWarning, 3
        )
        compiled = njit(**_OPTIONS)(function)
    return compiled


class LineUpTeams(NamedTuple):
    """Teams as columns. start: (T+1,) first player of each team; player: (S,) their indices in the state."""

    start: NDArray[np.integer]
    player: NDArray[np.integer]


@dataclass(frozen=True)
class Journal:
    """The effect of each slot's match on its player: shown rating before and after, float64 (S,), and factors (S,)."""

    before: Floats
    after: Floats
    factors: Records


@dataclass(frozen=True)
class Replay:
    """The result of rating a history.

    state     a record per player
    expected  float64 (T,)  each team's expected score, predicted before its match was rated
    """

    state: Records
    expected: Floats
    journal: Journal | None


def unsigned(h: Columns) -> Columns:
    """The same columns, indices as unsigned numbers: an index that may be negative costs a test at every access."""
    return h._replace(
        team_start=h.team_start.view(np.uint32),
        slot_start=h.slot_start.view(np.uint32),
        player=h.player.view(np.uint32),
    )


def replay(
    rules: Rules,
    history: History,
    state: Records,
    *,
    journal: bool = False,
    progress: Callable[[int], None] | None = None,
    watch: Callable[[int, int, Floats], None] | None = None,
) -> Replay:
    """Rate a history from this state (which stays as it was); assumes that `rules.system.refusals` names no match.

    progress  called from time to time with the number of matches rated so far
    watch     called with (start, stop, forecasts) for one stretch of matches after the other: float64 (P, 2), the
              probabilities of a win of the first and of a draw, for each pair of teams of these matches, pairs of a
              match in the order (0, 1), (0, 2) … (1, 2) …; the array is used again, so copy what is needed longer
    """
    system, h = rules.system, unsigned(history.columns)
    slots = len(h.player) if journal else 0
    state = state.copy()
    expected = np.empty(len(h.place))
    before, after = np.empty(slots), np.empty(slots)
    factors = np.zeros(slots, system.factor_type)
    scratch = np.empty((history.largest if system.scratch_columns else 0, system.scratch_columns))
    saved = np.empty(0 if h.keep.all() else history.largest, system.state)
    params, run = rules.compiled, engine(system).replay
    step = max(STRETCH, len(history) // 100) if progress else max(1, len(history))
    ends = stretches(history) if watch else [*range(step, len(history), step), len(history)][: len(history)]
    forecasts = np.empty((0, 2))
    start = 0
    for stop in ends:
        if watch:
            pairs = pair_count(history, start, stop)
            if len(forecasts) < pairs:
                forecasts = np.empty((pairs, 2))
        run(h, start, stop, state, params, expected, before, after, factors, scratch, saved, forecasts)
        if watch:
            watch(start, stop, forecasts[:pairs])
        if progress:
            progress(stop)
        start = stop
    return Replay(state, expected, Journal(before, after, factors) if journal else None)


def load(rules: Rules) -> None:
    """Load the loop of these rules' system, or compile it the first time, by a call without matches."""
    system, none = rules.system, np.empty(0)
    empty = History(Columns(*(np.zeros(1 if name.endswith("_start") else 0, int) for name in Columns._fields)))
    factors, saved = np.zeros(0, system.factor_type), np.empty(0, system.state)
    scratch, forecasts = np.empty((0, system.scratch_columns)), np.empty((0, 2))
    journal = (none, none, none, factors, scratch)
    engine(system).replay(unsigned(empty.columns), 0, 0, rules.newcomers(0), rules.compiled, *journal, saved, forecasts)


def pair_count(history: History, start: int, stop: int) -> int:
    """The number of pairs of teams in these matches."""
    teams = np.diff(history.columns.team_start[start : stop + 1]).astype(np.int64)
    return int((teams * (teams - 1) // 2).sum())


def stretches(history: History) -> list[int]:
    """The ends of stretches of matches with about PAIRS pairs of teams each."""
    teams = np.diff(history.columns.team_start).astype(np.int64)
    number = np.cumsum(teams * (teams - 1) // 2) // PAIRS
    return [*(np.flatnonzero(np.diff(number)) + 1).tolist(), len(teams)][: len(teams)]


def forecasts(
    rules: Rules,
    state: Records,
    teams: LineUpTeams,
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    home: Flags,
    now: int,
) -> Floats:
    """P(the first team of a pair finishes ahead of the second) and P(they draw); float64 (P, 2).

    first, second  (P,) indices into the teams;  now  microseconds
    home           bool (P,)  whether the first is the first-listed team of its match
    """
    columns = (*teams, first, second)
    start, player, a, b = (np.ascontiguousarray(column, np.uint32) for column in columns)
    predicted = np.empty((len(a), 2))
    engine(rules.system).forecast(
        start, player, a, b, np.asarray(home, np.bool_), np.int64(now), state, rules.compiled, predicted
    )
    return predicted


def line_up_forecasts(rules: Rules, state: Records, teams: LineUpTeams, count: int, now: int) -> Floats:
    """The forecasts of all pairs of teams of M matches of `count` teams each; float64 (M, P, 2).

    Pairs of a match are in the order (0, 1), (0, 2) … (1, 2) …; now: microseconds.
    """
    a, b = np.triu_indices(count, 1)
    base = np.arange(0, len(teams.start) - 1, count)[:, None]
    first, second = (base + a).ravel(), (base + b).ravel()
    return forecasts(rules, state, teams, first, second, np.tile(a == 0, len(base)), now).reshape(len(base), len(a), 2)


def odds(rules: Rules, state: Records, a: list[int], b: list[int], home: bool, now: int) -> tuple[float, float]:
    """P(the players `a` finish ahead of the players `b`) and P(they draw); indices into the state, microseconds.

    home  whether `a` is the first-listed team of the match
    """
    teams = LineUpTeams(np.array([0, len(a), len(a) + len(b)]), np.array([*a, *b]))
    ((win, draw),) = forecasts(rules, state, teams, np.zeros(1, int), np.ones(1, int), np.array([home]), now)
    return float(win), float(draw)
