"""The typed cells of rows in the tidy long form."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenmatch.errors import EvenmatchWarning, InputError, MissingColumnsError, UsageError
from evenmatch.history import Flags, Floats, Integers, Times
from evenmatch.match import HIGHEST_ENTRY
from evenmatch.tables import columns
from evenmatch.tables.columns import Extent, Faults
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS, NEEDED
from evenmatch.times import SECONDS, TimeFormat

NUMBERS: Mapping[str, tuple[float, float, bool, Extent]] = {
    # lowest, highest, whether NaN is an empty cell, and what a value belongs to
    "team_score": (-math.inf, math.inf, True, "team"),
    "score": (-math.inf, math.inf, True, "row"),
    "seconds": (0.0, math.inf, False, "row"),
    "performance": (-1.0, 1.0, True, "row"),
    "duration": (0.0, math.inf, True, "match"),
    "entry": (-HIGHEST_ENTRY, HIGHEST_ENTRY, True, "row"),
}
FLAGS = {"quit": False, "keep": True}  # what an empty cell means
_INDEX = r"__index_level_\d+__$"  # the index of a pandas frame, not a column of the user


@dataclass
class ColumnCells:
    """The typed cells of N rows; empty cells are -1, 0 or NaN. An absent numeric column is `nothing`, all NaN."""

    match: Integers
    match_id: pa.Array
    time: Times
    ladder: Integers
    ladders: pa.Array
    team: Integers
    teams: pa.Array
    player: Integers
    players: pa.Array
    place: Integers
    team_score: Floats
    score: Floats
    seconds: Floats
    performance: Floats
    duration: Floats
    quit: Flags
    keep: Flags
    entry: Floats
    context: Mapping[str, tuple[Integers, pa.Array]]  # by context column, the codes and what they stand for
    nothing: Floats


def known_columns(rows: pa.Table, source: Source, context: Sequence[str] = ()) -> pa.Table:
    """Check the columns and unify text types; warns of unknown columns.

    Raises UsageError for a column that cannot be context, InputError for missing or repeated columns.
    """
    for name in context:
        if name in COLUMNS:
            raise UsageError(f"context column {name!r} has a meaning of its own; expected another column")
    rows = rows.drop_columns([name for name in rows.column_names if re.match(_INDEX, name)])
    present = rows.column_names
    repeated = sorted({name for name in present if present.count(name) > 1})
    if repeated:
        raise InputError(f"{source.name} has the column {repeated[0]!r} more than once; expected once")
    missing = [name for name in NEEDED if name not in present]
    if not missing and "place" not in present and "team_score" not in present:
        missing = ["place (or team_score)"]
    if missing:
        hint = ""
        if len(present) == 1 and any(mark in present[0] for mark in ";\t|"):
            hint = "; the columns must be separated by commas"
        elif "player" in missing:
            hint = "; from_wide reads a row for each match"
        listed = ", ".join(repr(name) for name in present[:20])
        plural = "s" if len(missing) > 1 else ""
        raise MissingColumnsError(
            f"{source.name} lacks the column{plural} {', '.join(missing)}; it has {listed or 'none'}{hint}"
        )
    absent = next((name for name in context if name not in present), None)
    if absent is not None:
        raise InputError(f"{source.name} has no column {absent!r}; it has {', '.join(map(repr, present[:20]))}")
    extra = [name for name in present if name not in COLUMNS and name not in context]
    if extra:
        plural = "s" if len(extra) > 1 else ""
        listed = ", ".join(repr(name) for name in extra)
        warnings.warn(f"{source.name}: unknown column{plural} {listed} not read", EvenmatchWarning, stacklevel=5)
    return columns.plain(rows)


def read_cells(
    rows: dict[str, pa.ChunkedArray],
    count: int,
    faults: Faults,
    form: TimeFormat = SECONDS,
    context: Sequence[str] = (),
) -> ColumnCells:
    """Read every known column of `count` rows; absent ones are empty. Removes each column from `rows`."""
    nan = np.full(count, np.nan)
    present = set(rows)

    def number(name: str) -> Floats:
        return read_number(rows.pop(name), name, faults) if name in present else nan

    def flag(name: str) -> Flags:
        if name not in present:
            return np.full(count, FLAGS[name])
        return columns.flags(rows.pop(name), name, FLAGS[name], faults)

    match, match_id = columns.names(rows.pop("match_id"), "match_id", faults, in_runs=True)
    team, teams = columns.names(rows.pop("team"), "team", faults)
    player, players = columns.names(rows.pop("player"), "player", faults)
    if "ladder" in present:
        ladder, ladders = columns.names(or_default(rows.pop("ladder")), "ladder", faults, per="match")
    else:
        ladder, ladders = np.zeros(count, np.int32), pa.array(["default"])
    pa.default_memory_pool().release_unused()  # otherwise Arrow keeps the memory of the text columns, most of the total
    return ColumnCells(
        match=match,
        match_id=match_id,
        time=columns.times(rows.pop("played_at"), faults, form),
        ladder=ladder,
        ladders=ladders,
        team=team,
        teams=teams,
        player=player,
        players=players,
        place=columns.places(rows.pop("place"), faults) if "place" in present else np.zeros(count, np.int32),
        team_score=number("team_score"),
        score=number("score"),
        seconds=number("seconds"),
        performance=number("performance"),
        duration=number("duration"),
        quit=flag("quit"),
        keep=flag("keep"),
        entry=number("entry"),
        context={name: columns.names(rows.pop(name), name, Faults()) for name in context},
        nothing=nan,
    )


def read_number(column: pa.ChunkedArray, name: str, faults: Faults) -> Floats:
    """The numbers of an optional column, NaN for an empty cell."""
    low, high, nan_is_empty, per = NUMBERS[name]
    return columns.numbers(column, name, low, high, faults, nan_is_empty=nan_is_empty, per=per)


def or_default(ladder: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ladder names; an empty cell is the ladder "default"."""
    try:
        return ladder.cast(pa.large_string()).fill_null("default")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"column ladder contains {ladder.type}; expected text or whole numbers") from error
