"""The one loop over matches, bound to a system's kernels and compiled once per system."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numba import njit

from evenmatch.errors import EvenmatchWarning
from evenmatch.history import Columns, Entries, Flags, Floats, History, Integers
from evenmatch.kernel_cache import use_installed
from evenmatch.systems import duel
from evenmatch.systems.compiled import kernel, prefetch, prefetch_first_line, unsigned
from evenmatch.systems.fingerprint import fingerprint
from evenmatch.systems.ladder_records import LadderRecords, copy_records
from evenmatch.systems.system import Records, Rules, System

# Kernels allocate nothing, so arrays need no reference counts; counting would make wager eight times slower.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
# The kernels of the bound system: `engine` replaces these names.
pair: Callable[..., tuple[float, float]]
update: Callable[..., None]
pair_alone: Callable[..., tuple[float, float]]
update_alone: Callable[..., None]
near: int  # how many records fit into the caches
learns: bool  # whether the system keeps records of ladders
predicts: bool  # whether `update` writes the expected scores of two teams
in_context: bool  # whether matches may have context columns
INT64 = cast("type[int]", np.int64)  # not a literal, for which numba would compile `expect_all` again

CACHE = 1 << 20  # bytes
STRETCH = 4096  # the fewest matches between two progress reports
PAIRS = 1 << 16  # pairs of teams forecast between two calls of `watch`; they fit into the caches


def loop(
    h: Columns,
    start: int,
    stop: int,
    state: Records,
    ladders: Records,
    offsets: Records,
    params: NamedTuple,
    expected: Floats,
    before: Floats,
    after: Floats,
    factors: Records,
    scratch: Floats,
    saved: Records,
    saved_ladders: Records,
    saved_offsets: Records,
    forecasts: Floats,
) -> None:
    """Predict each match from `start` up to `stop`, then learn from it.

    before, after   float64 (S,)  empty if no journal is wanted; `factors` too
    saved           room for the states of one match's players; empty if every slot has keep
    saved_ladders   room for the records of pool, ladder and context values, which a match without any keep leaves
                    unchanged; empty if `saved` is
    saved_offsets   like `saved`, for the players under each context value
    forecasts       float64 (P, 2)  win and draw for each pair of teams of these matches; empty if not wanted
    """
    far = len(state) > near
    pair_index = INT64(0)  # of the next row of forecasts
    contexts = len(h.context) // max(len(h.time), 1) if in_context else 0
    numbers = min(len(h.entry), 1)
    for m in range(start, stop):
        first, end = h.team_start[m], h.team_start[m + 1]
        low, high = h.slot_start[first], h.slot_start[end]
        size = high - low
        ladder = records_of(h, m, first, first + 1, contexts, numbers, ladders, offsets)
        if far and high + 2 * size <= len(h.player):  # prefetch two matches ahead, so that records arrive in time
            for slot in range(high + size, high + 2 * size):
                prefetch(state, h.player[slot])
                for index in range(slot * contexts, (slot + 1) * contexts):
                    prefetch_first_line(offsets, h.offset[index])
        if end - first == 2 and (len(forecasts) or not predicts):
            middle = h.slot_start[first + 1]
            win, draw = pair(h.player[low:middle], h.player[middle:high], True, True, h.time[m], state, ladder, params)
            expected[first] = win + 0.5 * draw
            expected[first + 1] = 1.0 - expected[first]
            if len(forecasts):
                forecasts[pair_index, 0] = win
                forecasts[pair_index, 1] = draw
                pair_index += 1
        elif end - first != 2:
            pair_index = expect_all(h, m, state, ladders, offsets, params, expected, forecasts, pair_index)
        if len(before):
            for slot in range(low, high):
                before[slot] = state[h.player[slot]].rating
        if len(saved):
            for slot in range(low, high):
                saved[slot - low] = state[h.player[slot]]
            if learns:
                saved_ladders[0] = ladders[ladder.pool]
                saved_ladders[1] = ladders[ladder.own]
                for column in range(contexts):
                    saved_ladders[2 + column] = ladders[ladder.values[column]]
                for index in range(low * contexts, high * contexts):
                    saved_offsets[index - low * contexts] = offsets[h.offset[index]]
        update(h, m, state, ladder, params, expected, factors, scratch)
        if len(saved):
            kept = False
            for slot in range(low, high):
                if h.keep[slot]:
                    kept = True
                else:
                    state[h.player[slot]] = saved[slot - low]
                    if learns:
                        for index in range(slot * contexts, (slot + 1) * contexts):
                            offsets[h.offset[index]] = saved_offsets[index - low * contexts]
            if learns and not kept:
                ladders[ladder.pool] = saved_ladders[0]
                ladders[ladder.own] = saved_ladders[1]
                for column in range(contexts):
                    ladders[ladder.values[column]] = saved_ladders[2 + column]
        if len(after):
            for slot in range(low, high):
                after[slot] = state[h.player[slot]].rating


def records_of(
    h: Columns, m: int, a: int, b: int, contexts: int, numbers: int, ladders: Records, offsets: Records
) -> LadderRecords:
    """The records that match m reads for its teams a and b. numbers: 1 if numbers are known about players, else 0."""
    return LadderRecords(
        ladders,
        h.pool[m],
        h.ladder[m],
        h.context[m * contexts : (m + 1) * contexts],
        offsets,
        h.offset[h.slot_start[a] * contexts : h.slot_start[a + 1] * contexts],
        h.offset[h.slot_start[b] * contexts : h.slot_start[b + 1] * contexts],
        h.entry[h.slot_start[a] * numbers : h.slot_start[a + 1] * numbers],
        h.entry[h.slot_start[b] * numbers : h.slot_start[b + 1] * numbers],
    )


def expect_all(
    h: Columns,
    m: int,
    state: Records,
    ladders: Records,
    offsets: Records,
    params: NamedTuple,
    expected: Floats,
    forecasts: Floats,
    pair_index: int,
) -> int:
    """Write the expected scores of three or more teams, means over their rivals; returns the next pair's index."""
    first, end = h.team_start[m], h.team_start[m + 1]
    contexts = len(h.context) // len(h.time) if in_context else 0
    numbers = min(len(h.entry), 1)
    for team in range(first, end):
        expected[team] = 0.0
    for team in range(first, end):
        own = h.player[h.slot_start[team] : h.slot_start[team + 1]]
        total = expected[team]  # against the teams before it
        for rival in range(team + 1, end):
            theirs = h.player[h.slot_start[rival] : h.slot_start[rival + 1]]
            ladder = records_of(h, m, team, rival, contexts, numbers, ladders, offsets)
            win, draw = pair(own, theirs, team == first, False, h.time[m], state, ladder, params)
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
    two: bool,
    now: int,
    state: Records,
    ladders: Records,
    values: Integers,
    offsets: Records,
    offset: Integers,
    entry: Entries,
    params: NamedTuple,
    forecasts: Floats,
) -> None:
    """Predict pairs of teams that have not played, writing win and draw of each pair to `forecasts`.

    two      whether their matches have two teams;  ladders  the records of the pool and of the ladder
    values   (C,) indices of the records of the context's values;  offset  (S·C,) indices into `offsets`
    entry    (S,) what is known about newcomers, see `Columns`
    """
    contexts, numbers = len(values), min(len(entry), 1)
    for p in range(len(first)):
        a, b = first[p], second[p]
        ladder = LadderRecords(
            ladders,
            0,
            1,
            values,
            offsets,
            offset[team_start[a] * contexts : team_start[a + 1] * contexts],
            offset[team_start[b] * contexts : team_start[b + 1] * contexts],
            entry[team_start[a] * numbers : team_start[a + 1] * numbers],
            entry[team_start[b] * numbers : team_start[b + 1] * numbers],
        )
        own, theirs = player[team_start[a] : team_start[a + 1]], player[team_start[b] : team_start[b + 1]]
        win, draw = pair(own, theirs, home[p], two, now, state, ladder, params)
        forecasts[p, 0] = win
        forecasts[p, 1] = draw


def without_ladder_pair(
    a: Integers, b: Integers, home: bool, two: bool, now: int, state: Records, ladder: LadderRecords, params: NamedTuple
) -> tuple[float, float]:
    """`pair` for a system that learns nothing about ladders."""
    return pair_alone(a, b, home, now, state, params)


def without_ladder_update(
    h: Columns,
    m: int,
    state: Records,
    ladder: LadderRecords,
    params: NamedTuple,
    expected: Floats,
    factors: Records,
    scratch: Floats,
) -> None:
    """`update` for a system that learns nothing about ladders."""
    update_alone(h, m, state, params, expected, factors, scratch)


class Engine(NamedTuple):
    """A system's compiled functions: `replay` is the loop, `forecast` is its `pair` over many pairs of teams.

    replay_in_context  the loop for matches with context columns; each of the two is compiled when it first runs
    nothing_saved      empty `saved`, `saved_ladders` and `saved_offsets` for the loop, if every slot has keep
    """

    replay: Callable[..., None]
    replay_in_context: Callable[..., None]
    forecast: Callable[..., None]
    nothing_saved: tuple[Records, Records, Records]


@cache
def engine(system: System) -> Engine:
    """The loop bound to this system's kernels, or the plain one; machine code is cached on disk for later processes."""
    nothing_saved = (np.empty(0, system.state), np.empty(0, system.ladder_type), np.empty(0, system.offset_type))
    if system.methods is not None:
        return Engine(duel.replay, duel.replay, duel.forecast, nothing_saved)
    # numba links globals statically, inlines them and caches the result. It would compile kernels that are arguments
    # or closures again in every process. It does not notice an edited callee, so the name contains a hash of the code
    # of all kernels.
    tag = f"{system.name}_{fingerprint(system)[:12]}"
    scope: dict[str, object] = {"range": range, "len": len, "pair": system.pair, "update": system.update}
    scope |= {
        "prefetch": prefetch,
        "prefetch_first_line": prefetch_first_line,
        "INT64": INT64,
        "near": CACHE // system.state.itemsize,
        "LadderRecords": LadderRecords,
        "max": max,
        "predicts": system.predicts,
        "learns": system.ladder is not None,
    }
    if system.ladder is None:
        alone: dict[str, object] = {"pair_alone": system.pair, "update_alone": system.update}
        scope["pair"] = kernel(_rename(without_ladder_pair, f"pair_{tag}", alone))
        scope["update"] = kernel(_rename(without_ladder_update, f"update_{tag}", alone))
    plain = _compile_loop(tag, scope, in_context=False)
    return Engine(
        plain,
        plain if system.ladder is None else _compile_loop(f"{tag}_in_context", scope, in_context=True),
        _compile(_rename(forecast, f"forecast_{tag}", scope)),
        nothing_saved,
    )


def _compile_loop(tag: str, scope: dict[str, object], *, in_context: bool) -> Callable[..., None]:
    """The loop; without context columns, numba removes the code for them, which would take a tenth of the time."""
    scope = {**scope, "in_context": in_context}
    scope["records_of"] = kernel(_rename(records_of, f"records_of_{tag}", scope))
    scope["expect_all"] = njit(**_OPTIONS)(_rename(expect_all, f"expect_all_{tag}", scope))
    return _compile(_rename(loop, f"loop_{tag}", scope))


def _rename(function: Callable[..., Any], name: str, scope: dict[str, object]) -> Callable[..., Any]:
    """A copy of a function with another name and its own globals."""
    assert isinstance(function, types.FunctionType)
    scope = {**scope, "__name__": __name__, "__file__": __file__}
    copy = types.FunctionType(function.__code__, scope, name)
    copy.__qualname__, copy.__module__ = name, __name__
    return copy


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        compiled: Callable[..., Any] = use_installed(njit(cache=True, **_OPTIONS)(function))
    except RuntimeError as error:  # neither the package's folder nor the user's cache folder can be written
        warnings.warn(
            f"compiled kernels cannot be cached, so each process compiles them again: {error}", EvenmatchWarning, 3
        )
        compiled = njit(**_OPTIONS)(function)
    return compiled


class Journal(NamedTuple):
    """The effect of each slot's match on the player: shown rating before and after, float64 (S,), and factors (S,)."""

    before: Floats
    after: Floats
    factors: Records


class Replay(NamedTuple):
    """The result of rating a history.

    state     a record per player
    expected  float64 (T,)  each team's expected score, predicted before its match was rated
    ladders   what was learned about the ladders: the records of their pool, of each ladder and of context values
    offsets   what was learned about the players under each context value
    """

    state: Records
    expected: Floats
    journal: Journal | None
    ladders: Records
    offsets: Records


def replay(
    rules: Rules,
    history: History,
    state: Records,
    ladders: Records | None = None,
    offsets: Records | None = None,
    *,
    journal: bool = False,
    in_place: bool = False,
    progress: Callable[[int], None] | None = None,
    watch: Callable[[int, int, Floats], None] | None = None,
) -> Replay:
    """Rate a history from this state, which is not changed; assumes that `rules.system.refusals` names no match.

    ladders   what was learned about the ladders before (the records are not changed); None: nothing
    offsets   what was learned about the players under context values (not changed); None: nothing
    in_place  change `state`, `ladders` and `offsets` themselves, if they are copies or much larger than the history
    progress  called from time to time with the number of matches rated so far
    watch     called with (start, stop, forecasts) for each stretch of matches in turn: float64 (P, 2), win and draw
              probabilities for each pair of teams of these matches, the pairs of a match in the order (0, 1), (0, 2)
              … (1, 2) …; the array is reused, so copy what you need later
    """
    system, h = rules.system, unsigned(history.columns)
    slots = len(h.player) if journal else 0
    state = state if in_place else copy_records(state)
    if ladders is None:
        ladders = rules.ladders(history.ladders)
    elif not in_place:
        ladders = copy_records(ladders)
    if history.contexts:
        rules.with_lengths(ladders, h.lengths)
    if offsets is None:
        offsets = rules.offsets(history.offsets)
    elif not in_place:
        offsets = copy_records(offsets)
    expected = np.empty(len(h.place))
    before, after = np.empty(slots), np.empty(slots)
    factors = np.zeros(slots, system.factor_type)
    scratch = np.empty((history.largest if system.scratch_columns else 0, system.scratch_columns))
    params, compiled = rules.compiled, engine(system)
    run = compiled.replay_in_context if history.contexts else compiled.replay
    saved = compiled.nothing_saved
    if not h.keep.all():
        saved = (
            np.empty(history.largest, system.state),
            np.empty(2 + history.contexts, system.ladder_type),
            np.empty(history.largest * history.contexts, system.offset_type),
        )
    step = max(STRETCH, len(history) // 100) if progress else max(1, len(history))
    ends = stretches(history) if watch else [*range(step, len(history), step), len(history)][: len(history)]
    forecasts = np.empty((0, 2))
    start = 0
    for stop in ends:
        if watch:
            pairs = pair_count(history, start, stop)
            if len(forecasts) < pairs:
                forecasts = np.empty((pairs, 2))
        room = (expected, before, after, factors, scratch, *saved)
        run(h, start, stop, state, ladders, offsets, params, *room, forecasts)
        if watch:
            watch(start, stop, forecasts[:pairs])
        if progress:
            progress(stop)
        start = stop
    return Replay(state, expected, Journal(before, after, factors) if journal else None, ladders, offsets)


def load(rules: Rules, *, in_context: bool = False) -> None:
    """Load the loop of these rules' system, or compile it the first time, by rating no matches.

    in_context  the loop for matches with context columns
    """
    system, none = rules.system, np.empty(0)
    empty = History(Columns(*(np.zeros(1 if name.endswith("_start") else 0, int) for name in Columns._fields)))
    compiled = engine(system)
    run = compiled.replay_in_context if in_context else compiled.replay
    scratch, forecasts = np.empty((0, system.scratch_columns)), np.empty((0, 2))
    journal = (none, none, none, np.zeros(0, system.factor_type), scratch, *compiled.nothing_saved)
    records = (rules.newcomers(0), rules.ladders(), rules.offsets(0))
    run(unsigned(empty.columns), 0, 0, *records, rules.compiled, *journal, forecasts)


def pair_count(history: History, start: int, stop: int) -> int:
    """The number of pairs of teams in these matches."""
    teams = np.diff(history.columns.team_start[start : stop + 1]).astype(np.int64)
    return int((teams * (teams - 1) // 2).sum())


def stretches(history: History) -> list[int]:
    """The ends of stretches of matches with about PAIRS pairs of teams each."""
    teams = np.diff(history.columns.team_start).astype(np.int64)
    number = np.cumsum(teams * (teams - 1) // 2) // PAIRS
    return [*(np.flatnonzero(np.diff(number)) + 1).tolist(), len(teams)][: len(teams)]
