"""Import and export of recorded matches: files, data frames and Match objects <-> MatchTable."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from evenmatch.errors import InputError, UsageError
from evenmatch.history import History
from evenmatch.match import Match
from evenmatch.tables.build import assemble
from evenmatch.tables.files import write_arrow
from evenmatch.tables.mapping import FileMapping
from evenmatch.tables.reading import RawFile, mapped, read_matches, split_columns, understood
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS, MatchTable
from evenmatch.times import format_named

__all__ = [
    "COLUMNS",
    "FileMapping",
    "Frame",
    "MatchTable",
    "from_frame",
    "from_matches",
    "from_wide",
    "join",
    "read",
    "table_of",
    "write",
    "write_arrow",
]


class Frame(Protocol):
    """Any data frame with the Arrow C stream interface: pandas, polars, duckdb, pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule with the stream (Arrow PyCapsule interface)."""
        ...


def read(
    path: str | os.PathLike[str],
    *,
    skip_bad: bool = False,
    time_format: str | None = None,
    zone: str | None = None,
    columns: Mapping[str, str] | None = None,
    mapping: FileMapping | str | os.PathLike[str] | None = None,
    context: Sequence[str] = (),
) -> MatchTable:
    """Read the matches of a CSV, Parquet or JSON Lines file, in time order, ties in file order.

    skip_bad     leave out matches with a bad row (reasons in `.skipped`) instead of raising
    time_format  what numbers in `played_at` mean: seconds (the default), milliseconds, microseconds or nanoseconds
                 since 1970, or spreadsheet, days as a spreadsheet counts them; or a strptime pattern
    zone         the zone of times that name none, UTC by default
    columns      which column of the file to read as each of ours, and as each context column with another name;
                 delimiter, encoding and the rest are guessed from the file
    mapping      what the file means, as a FileMapping or the path of a saved one; the other options change it
    context      columns that say what a match was played on, such as its map, surface or format; at most four
    Raises UsageError for a missing file, unknown suffix or time format, InputError for a file that is empty, lacks a
    required column or does not match its suffix, BadRowsError with every bad row. Unknown columns cause a warning.
    """
    if mapping is not None and not isinstance(mapping, FileMapping):
        mapping = FileMapping.load(Path(mapping))
    return read_matches(
        Path(path),
        skip_bad=skip_bad,
        time_format=time_format,
        zone=zone,
        columns=columns,
        mapping=mapping,
        context=context,
    )


def from_frame(
    frame: Frame,
    *,
    skip_bad: bool = False,
    time_format: str | None = None,
    zone: str | None = None,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
) -> MatchTable:
    """Read the matches of a data frame in the tidy long form; options and errors as for `read`, rows count from 1."""
    form = format_named(time_format or "seconds", zone or "UTC")
    try:
        rows = pa.RecordBatchReader.from_stream(frame).read_all()
    except pa.ArrowException as error:  # for instance a pandas column that mixes numbers and text
        raise InputError(f"the data frame cannot be read as Arrow: {error}") from error
    raw = RawFile(rows, Source("the data frame"))
    if columns is None:
        return assemble(raw.rows, raw.source, context, skip_bad=skip_bad, form=form)
    split = split_columns(columns, context)
    found = understood(raw, split.others, None, time_format, zone, split.context)
    return mapped(raw, found, split.context, skip_bad=skip_bad)


def from_wide(
    frame: Frame,
    *,
    winner: str,
    loser: str,
    date: str,
    columns: Mapping[str, str] | None = None,
    time_format: str | None = None,
    zone: str | None = None,
    skip_bad: bool = False,
) -> MatchTable:
    """Read the matches of a data frame with a row per match.

    winner, loser, date  the columns with the winner or winners, the loser or losers, and the time
    columns              further ones of ours, such as {"draw": "tied", "match_id": "game"}; home_score is the score of
                         the winner, and away_score that of the loser
    No side is at home: about half of the matches list the loser first.
    The other options and errors are those of `from_frame`.
    """
    named = {"winner": winner, "loser": loser, "played_at": date, **(columns or {})}
    return from_frame(frame, columns=named, time_format=time_format, zone=zone, skip_bad=skip_bad)


def table_of(matches: MatchTable | Frame, *, skip_bad: bool = False) -> MatchTable:
    """Return a MatchTable unchanged and convert a data frame with `from_frame`; UsageError for anything else."""
    if isinstance(matches, MatchTable):
        return matches
    if hasattr(matches, "__arrow_c_stream__"):
        return from_frame(matches, skip_bad=skip_bad)
    kind = type(matches).__name__
    raise UsageError(f"the matches are a {kind}; expected a table from evenmatch.read, or a data frame")


def from_matches(matches: Iterable[Match]) -> MatchTable:
    """Create a table from Match objects, in time order, ties as given; the columns of their contexts in order of use.

    Raises InputError for a duplicate id, UsageError if the contexts have more than four columns.
    """
    listed = list(matches)
    if not listed:
        raise InputError("no matches were given; expected one or more")
    order = sorted(range(len(listed)), key=lambda index: listed[index].time)
    listed = [listed[index] for index in order]
    duplicates = [match_id for match_id, count in Counter(match.id for match in listed).items() if count > 1]
    if duplicates:
        raise InputError(f"match id {duplicates[0]!r} is used more than once; expected once")
    numbers: dict[tuple[str, str], int] = {}
    history = History.of(listed, lambda ladder, player: numbers.setdefault((ladder, player), len(numbers)))
    ladders = list(dict.fromkeys(match.ladder for match in listed))
    code = {name: index for index, name in enumerate(ladders)}
    context = {
        name: pa.chunked_array([pa.array([match.context.get(name, "") for match in listed], pa.large_string())])
        for name in dict.fromkeys(name for match in listed for name in match.context)
    }
    labels = [str(team) for match in listed for team in range(len(match.teams))]
    return MatchTable(
        history=history,
        match_id=pa.array([match.id for match in listed], pa.large_string()),
        ladder=np.array([code[match.ladder] for match in listed], np.int32),
        ladders=tuple(ladders),
        team=pa.array(labels, pa.large_string()).dictionary_encode(),
        player=pa.array([player for _, player in numbers], pa.large_string()),
        player_ladder=np.array([code[ladder] for ladder, _ in numbers], np.int32),
        row=np.array(order, np.int64),
        source=Source("the matches"),
    ).with_context(context)


def join(*tables: MatchTable) -> MatchTable:
    """Combine tables into one, in time order; equal player names on the same ladder are the same player.

    Raises InputError if two tables have the same match id.
    """
    if not tables:
        raise InputError("no tables were given; expected one or more")
    rows = pa.concat_tables([table.to_arrow() for table in tables], promote_options="permissive")
    ids = pa.chunked_array([table.match_id for table in tables]).value_counts()
    duplicates = [entry["values"] for entry in ids.to_pylist() if entry["counts"] > 1]
    if duplicates:
        raise InputError(f"match id {duplicates[0]!r} is in more than one table; expected once")
    context = dict.fromkeys(column.name for table in tables for column in table.context if column.name != "ladder")
    return assemble(rows, Source("the joined tables"), list(context))


def write(table: MatchTable | Frame, path: str | os.PathLike[str]) -> None:
    """Write matches in the tidy long form, or any data frame, atomically, as CSV, Parquet or JSON Lines by the suffix.

    Raises UsageError for another suffix or a path that cannot be written, InputError if the file's format cannot hold
    a column.
    """
    if isinstance(table, MatchTable):
        rows = table.to_arrow()
    elif hasattr(table, "__arrow_c_stream__"):
        rows = pa.RecordBatchReader.from_stream(table).read_all()
    else:
        raise UsageError(f"cannot write a {type(table).__name__}; expected a table of matches or a data frame")
    write_arrow(rows, Path(path))
