"""History: matches in time order, as numeric columns for the rating kernels."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError, UsageError
from evenmatch.match import Match
from evenmatch.times import EPOCH

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Entries = NDArray[np.float32]
Times = NDArray[np.int64]
Flags = NDArray[np.bool_]
NO_ENTRIES: Entries = np.empty(0, np.float32)
UNKNOWN = "NaN: not known"
FloatOrNaN = Annotated[float, UNKNOWN]  # shown as null


class Columns(NamedTuple):
    """The read-only arrays of a History with M matches, T teams and S slots (one player in one match).

    time         int64   (M,)    microseconds since the Unix epoch, UTC, non-decreasing
    team_start   int32   (M+1,)  first team of each match
    place        int32   (T,)    finishing place, 1 is best; equal places are a draw
    team_score   float64 (T,)    NaN where not recorded
    slot_start   int32   (T+1,)  first slot of each team
    player       int32   (S,)    index of the rated player (a player on another ladder is another index)
    score, seconds, performance  float64 (S,)  NaN where not recorded
    quit         bool    (S,)    left early
    duration     float64 (M,)    seconds; if not recorded, the longest `seconds` of any player; NaN if neither is known
    keep         bool    (S,)    False: this player's state is restored after the update
    pool         int32   (M,)    index of the record that the match's ladder shares with other ladders
    ladder       int32   (M,)    index of the record that the ladder has to itself
                                 Both empty: all matches are on one ladder, with records 0 and 1.
    context      int32   (M·C,)  index of the ladder record of each match's value in each of C context columns
    offset       int32   (S·C,)  index of the record of each slot's player under each of these values
                                 Both empty: nothing is known about what a match was played on.
    entry        float32 (S,)    a number known about each slot's player before the first match, such as a seed; NaN if
                                 there is none, empty if nobody has one
    lengths      float64 (L,)    by record of a context value: log of the length that the value gives a match, NaN if it
                                 is no number; empty if none is. See `log_length`.
    """

    time: Times
    team_start: Integers
    place: Integers
    team_score: Floats
    slot_start: Integers
    player: Integers
    score: Floats
    seconds: Floats
    performance: Floats
    quit: Flags
    duration: Floats
    keep: Flags
    pool: Integers = np.empty(0, np.int32)
    ladder: Integers = np.empty(0, np.int32)
    context: Integers = np.empty(0, np.int32)
    offset: Integers = np.empty(0, np.int32)
    entry: Entries = NO_ENTRIES
    lengths: Floats = np.empty(0)


_TYPES = ["i8", "i4", "i4", "f8", "i4", "i4", "f8", "f8", "f8", "?", "f8", "?", "i4", "i4", "i4", "i4", "f4", "f8"]
_KINDS = dict(zip(Columns._fields, _TYPES, strict=True))


@dataclass(frozen=True, eq=False)
class History:
    """Validated, read-only columns of fixed types, so that each kernel compiles for a single signature."""

    columns: Columns

    def __post_init__(self) -> None:
        given = on_one_ladder(self.columns)
        frozen = Columns(**{name: _freeze(getattr(given, name), kind) for name, kind in _KINDS.items()})
        _check_shape(frozen)
        object.__setattr__(self, "columns", frozen)

    def __len__(self) -> int:
        return len(self.columns.time)

    @cached_property
    def players(self) -> int:
        """Number of rows that a state array needs: the highest player index plus one."""
        return int(self.columns.player.max(initial=-1)) + 1

    @cached_property
    def ladders(self) -> int:
        """Highest index of a ladder's record or of a context value's, at least 1; record 0 is shared."""
        return max(int(self.columns.ladder.max(initial=1)), int(self.columns.context.max(initial=1)))

    @cached_property
    def contexts(self) -> int:
        """Number of context columns."""
        return len(self.columns.context) // max(len(self), 1)

    @cached_property
    def offsets(self) -> int:
        """Number of records of players under a context value: the highest index plus one."""
        return int(self.columns.offset.max(initial=-1)) + 1

    @cached_property
    def largest(self) -> int:
        """Number of slots of the largest match."""
        if len(self) == 1:
            return len(self.columns.player)
        return int(np.diff(self.match_slots).max(initial=0))

    @cached_property
    def match_slots(self) -> Integers:
        """Index of the first slot of each match, int32 (M+1,)."""
        return self.columns.slot_start[self.columns.team_start]

    @cached_property
    def slot_match(self) -> Integers:
        """Index of the match of each slot, int32 (S,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.match_slots))

    @cached_property
    def slot_team(self) -> Integers:
        """Index of the team of each slot, over the whole history, int32 (S,)."""
        sizes = np.diff(self.columns.slot_start)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    def with_context(self, context: NDArray[np.integer], names: Mapping[int, str] | None = None) -> History:
        """Return the matches with context columns: int32 (M, C), indices of the records of values of these names."""
        values = context[self.slot_match]
        pairs = self.columns.player[:, None] * (np.int64(context.max(initial=0)) + 1) + values
        offset = np.unique(pairs, return_inverse=True)[1].astype(np.int32)
        names = names or {}
        lengths = np.full(1 + max(names, default=0), np.nan)
        lengths[list(names)] = [log_length(name) for name in names.values()]
        columns = self.columns._replace(context=context.ravel().astype(np.int32), offset=offset.ravel())
        return History(columns if np.isnan(lengths).all() else columns._replace(lengths=lengths))

    def take(self, matches: slice | NDArray[np.integer] | Flags) -> History:
        """Return only these matches, given by slice, ascending indices or mask; player indices do not change."""
        chosen = np.arange(len(self))[matches]
        c = self.columns
        teams = ranges(c.team_start, chosen)
        slots = ranges(c.slot_start, teams)
        return History(
            Columns(
                time=c.time[chosen],
                team_start=_offsets(np.diff(c.team_start)[chosen]),
                place=c.place[teams],
                team_score=c.team_score[teams],
                slot_start=_offsets(np.diff(c.slot_start)[teams]),
                player=c.player[slots],
                score=c.score[slots],
                seconds=c.seconds[slots],
                performance=c.performance[slots],
                quit=c.quit[slots],
                duration=c.duration[chosen],
                keep=c.keep[slots],
                pool=c.pool[chosen],
                ladder=c.ladder[chosen],
                context=rows_of(c.context, self.contexts, chosen),
                offset=rows_of(c.offset, self.contexts, slots),
                entry=rows_of(c.entry, int(len(c.entry) > 0), slots),
                lengths=c.lengths,
            )
        )

    @staticmethod
    def of(
        matches: Sequence[Match],
        number: Callable[[str, str], int],
        not_before: int | None = None,
    ) -> History:
        """Create a history from matches in time order.

        number      function of (ladder, player) that returns the player's index
        not_before  microseconds since the epoch; a match that ended earlier is dated to this time
        """
        time = [match.time if not_before is None else max(match.time, not_before) for match in matches]
        ladders: dict[str, int] = {}
        layout = _layout(
            [len(match.teams) for match in matches],
            [len(team.players) for match in matches for team in match.teams],
            [number(match.ladder, slot.player) for match in matches for team in match.teams for slot in team.players],
            [ladders.setdefault(match.ladder, len(ladders) + 1) for match in matches],
        )
        history = History._trusted(_columns(layout, matches, time))
        if any(later < earlier for earlier, later in pairwise(time)):
            raise InputError("the matches are not in time order")
        return history

    @staticmethod
    def of_match(match: Match, not_before: int) -> History:
        """Create a history of one match, its players numbered from 0 in the order of the match.

        not_before  microseconds since the epoch; a match that ended earlier is dated to this time
        """
        layout = _match_layout(tuple([len(team.players) for team in match.teams]))
        return History._trusted(_columns(layout, (match,), [max(match.time, not_before)]))

    @classmethod
    def _trusted(cls, columns: Columns) -> History:
        """Skip validation, which costs more than rating one match, for columns that are correct by construction."""
        history = object.__new__(cls)
        object.__setattr__(history, "columns", columns)
        return history


def microseconds(moment: datetime | np.datetime64) -> int:
    """A time in microseconds since the Unix epoch; without a time zone, it counts as UTC. Raises UsageError."""
    if isinstance(moment, np.datetime64):
        return int(moment.astype("datetime64[us]").astype(np.int64))
    if not isinstance(moment, datetime):
        raise UsageError(f"the time is {moment!r}; expected a datetime or a numpy.datetime64")
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def on_one_ladder(c: Columns) -> Columns:
    """The same columns, with the ladder columns filled in if they are empty."""
    if len(c.ladder) or not len(c.time):
        return c
    return c._replace(pool=np.zeros(len(c.time), np.int32), ladder=np.ones(len(c.time), np.int32))


def ladder_indices(codes: NDArray[np.integer]) -> Integers:
    """The record index of each match's ladder, counted from 1 in order of first appearance."""
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first)] = np.arange(1, len(first) + 1)
    return number[code]


def renumbered(c: Columns) -> tuple[Columns, NDArray[np.int64]]:
    """Number the records of ladders from 1 in order of first appearance, then those of other context values.

    Returns the columns and the former number of each record.
    """
    _, first = np.unique(c.ladder, return_index=True)
    ladders = c.ladder[np.sort(first)].astype(np.int64)
    former = np.concatenate((ladders, np.setdiff1d(c.context, ladders)))
    number = np.zeros(int(former.max(initial=0)) + 1, np.int32)
    number[former] = np.arange(1, len(former) + 1)
    lengths = c.lengths[[0, *former]] if len(c.lengths) else c.lengths
    return c._replace(ladder=number[c.ladder], context=number[c.context], lengths=lengths), former


_LENGTH = re.compile(
    r"(?:(?:bo|best.of|ft|first.to|race.to)[ _-]?)?(\d+(?:\.\d+)?)(?:[ _-]?min(?:utes)?)?", re.IGNORECASE
)


def log_length(value: str) -> float:
    """The log of the length that a value such as "5", "bo5", "best of 5" or "90 min" gives a match; NaN for others."""
    found = _LENGTH.fullmatch(value.strip())
    length = float(found[1]) if found else 0.0
    return math.log(length) if length > 0.0 else math.nan


def rows_of(flat: NDArray[Any], columns: int, rows: NDArray[np.integer]) -> NDArray[Any]:
    """These rows of a table that is stored row after row."""
    return flat.reshape(-1, columns)[rows].ravel() if columns else flat


def entries(numbers: Sequence[float] | NDArray[np.floating]) -> Entries:
    """The column `entry` of slots with these numbers; NaN: none is known."""
    column = np.array(numbers, np.float32)
    return NO_ENTRIES if np.isnan(column).all() else column


def fill_duration(duration: Floats, seconds: Floats, match_slots: Integers) -> Floats:
    """Replace NaN durations by the longest `seconds` of any player of the match."""
    if not len(duration) or not np.isnan(duration).any():
        return duration
    longest = np.fmax.reduceat(seconds, match_slots[:-1])
    return np.where(np.isnan(duration), longest, duration)


def team_results(team_start: Integers, place: Integers) -> Floats:
    """The result of every team: the mean over its rivals of 1 for a win, 0.5 for a draw and 0 for a loss.

    team_start  (M + 1,)  first team of each match;  place  (T,)  1 is best
    By sorting, O(T log T): free-for-alls have thousands of teams.
    """
    if len(team_start) == 2:  # lists are several times as fast for a single match
        return np.array(match_results(place.tolist()))
    teams = np.diff(team_start)
    key = np.repeat(np.arange(len(teams), dtype=np.int64) << 32, teams) + place  # by match, then by place
    ordered = np.sort(key)
    first, end = np.searchsorted(ordered, key), np.searchsorted(ordered, key, side="right")
    behind = np.repeat(team_start[1:], teams) - end
    results: Floats = (behind + 0.5 * (end - first - 1)) / np.repeat(teams - 1, teams)
    return results


def match_results(place: list[int]) -> list[float]:
    """The results of the teams of one match, as in `team_results`."""
    ordered, rivals = sorted(place), len(place) - 1
    ends = [(bisect_left(ordered, own), bisect_right(ordered, own)) for own in place]
    return [(rivals + 1 - end + 0.5 * (end - first - 1)) / rivals for first, end in ends]


def ranges(start: NDArray[np.integer], chosen: NDArray[np.integer]) -> NDArray[np.int64]:
    """Indices of the members of the chosen groups; group g is start[g] up to start[g + 1]."""
    first = start[chosen].astype(np.int64)
    size = start[chosen + 1] - first
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    members: NDArray[np.int64] = np.arange(total) + np.repeat(first - (ends - size), size)
    return members


class _Layout(NamedTuple):
    """The read-only columns that depend only on team sizes and ladders."""

    team_start: Integers
    slot_start: Integers
    player: Integers
    pool: Integers
    ladder: Integers


def _layout(teams: list[int], sizes: list[int], player: list[int], ladder: list[int]) -> _Layout:
    """The layout for the number of teams in each match and of players in each team."""
    lists = ([0, *accumulate(teams)], [0, *accumulate(sizes)], player, [0] * len(teams), ladder)
    layout = _Layout(*(np.array(numbers, np.int32) for numbers in lists))
    for array in layout:
        array.setflags(write=False)
    return layout


@lru_cache(maxsize=64)
def _match_layout(sizes: tuple[int, ...]) -> _Layout:
    """The layout of one match, with players numbered in order. Cached, because live matches use only a few layouts."""
    return _layout([len(sizes)], list(sizes), list(range(sum(sizes))), [1])


def _columns(layout: _Layout, matches: Sequence[Match], time: list[int]) -> Columns:
    """The read-only columns of matches with this layout that ended at these times."""
    nan = np.nan
    teams = [team for match in matches for team in match.teams]
    slots = [slot for team in teams for slot in team.players]
    columns = Columns(
        np.array(time, np.int64),
        layout.team_start,
        np.array([place for match in matches for place in match.places], np.int32),
        np.array([nan if team.score is None else team.score for team in teams], np.float64),
        layout.slot_start,
        layout.player,
        np.array([nan if slot.score is None else slot.score for slot in slots], np.float64),
        np.array([nan if slot.seconds is None else slot.seconds for slot in slots], np.float64),
        np.array([nan if slot.performance is None else slot.performance for slot in slots], np.float64),
        np.array([slot.quit for slot in slots], np.bool_),
        np.array([_duration(match) for match in matches], np.float64),
        np.array([slot.keep for slot in slots], np.bool_),
        layout.pool,
        layout.ladder,
        entry=entries([nan if slot.entry is None else slot.entry for slot in slots]),
    )
    for array in columns:
        array.setflags(write=False)
    return columns


def _duration(match: Match) -> float:
    if match.duration is not None:
        return match.duration
    seconds = [slot.seconds for team in match.teams for slot in team.players if slot.seconds is not None]
    return max(seconds, default=np.nan)


def _offsets(sizes: NDArray[np.integer]) -> Integers:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _freeze(array: NDArray[Any], kind: str) -> NDArray[Any]:
    frozen = np.ascontiguousarray(array, kind).view()
    frozen.flags.writeable = False
    return frozen


def _check_shape(c: Columns) -> None:
    matches, teams, slots = len(c.time), len(c.place), len(c.player)
    sizes = {
        "team_start": matches + 1,
        **dict.fromkeys(("duration", "pool", "ladder"), matches),
        "team_score": teams,
        "slot_start": teams + 1,
        **dict.fromkeys(("score", "seconds", "performance", "quit", "keep"), slots),
    }
    contexts = len(c.context) // max(matches, 1)
    sizes |= {"context": contexts * matches, "offset": contexts * slots, "entry": slots if len(c.entry) else 0}
    for name, size in sizes.items():
        if len(getattr(c, name)) != size:
            raise InputError(f"column {name} has {len(getattr(c, name))} entries; expected {size}")
    for name, start, total, least in (("team_start", c.team_start, teams, 2), ("slot_start", c.slot_start, slots, 1)):
        if start[0] != 0 or start[-1] != total or (np.diff(start) < least).any():
            raise InputError(f"{name} must run from 0 to {total} in steps of at least {least}")
    earlier = np.flatnonzero(np.diff(c.time) < 0)
    if len(earlier):
        raise InputError(f"match {earlier[0] + 1} is earlier than the one before it; matches must be in time order")
