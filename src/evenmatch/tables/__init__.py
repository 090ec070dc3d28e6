"""Recorded matches in and out: files, data frames and Match objects <-> MatchTable."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from evenmatch.errors import InputError, UsageError
from evenmatch.history import History
from evenmatch.match import Match
from evenmatch.tables.assemble import assemble
from evenmatch.tables.files import write_arrow
from evenmatch.tables.reading import read_matches
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS, MatchTable

__all__ = [
    "COLUMNS",
    "Frame",
    "MatchTable",
    "from_frame",
    "from_matches",
    "join",
    "read",
    "table_of",
    "write",
    "write_arrow",
]


class Frame(Protocol):
    """Any data frame that speaks the Arrow C stream: pandas, polars, duckdb, pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule with the stream (the Arrow PyCapsule interface)."""
        ...


def read(path: str | os.PathLike[str], *, skip_bad: bool = False) -> MatchTable:
    """The matches of a CSV, Parquet or JSON Lines file, in order of time, ties in the order of the file.

    skip_bad  leave out matches with a bad row (their reasons are in `.skipped`) instead of raising
    Raises UsageError for a path that is not there or of another suffix, InputError for a file that is empty, lacks a
    column or is not what its suffix says, BadRowsError with every bad row. Warns of columns it does not know.
    """
    return read_matches(Path(path), skip_bad=skip_bad)


def from_frame(frame: Frame, *, skip_bad: bool = False) -> MatchTable:
    """The matches of a data frame in the tidy long form; errors as for `read`, with rows counted from 1."""
    try:
        rows = pa.RecordBatchReader.from_stream(frame).read_all()
    except pa.ArrowException as error:  # for instance a pandas column of both numbers and text
        raise InputError(f"the data frame cannot be read as Arrow: {error}") from error
    return assemble(rows, Source("the data frame"), skip_bad=skip_bad)


def table_of(matches: MatchTable | Frame, *, skip_bad: bool = False) -> MatchTable:
    """A table of matches as it is; a data frame as `from_frame` reads it. Raises UsageError for anything else."""
    if isinstance(matches, MatchTable):
        return matches
    if hasattr(matches, "__arrow_c_stream__"):
        return from_frame(matches, skip_bad=skip_bad)
    kind = type(matches).__name__
    raise UsageError(f"matches are a {kind}; accepted are a table from evenmatch.read, or a data frame")


def from_matches(matches: Iterable[Match]) -> MatchTable:
    """A table of Match objects, in order of time, ties as given. Raises InputError for an id used twice."""
    listed = list(matches)
    if not listed:
        raise InputError("no matches were given; accepted are one or more")
    order = sorted(range(len(listed)), key=lambda number: listed[number].time)
    listed = [listed[number] for number in order]
    again = [match_id for match_id, count in Counter(match.id for match in listed).items() if count > 1]
    if again:
        raise InputError(f"match id {again[0]!r} is used more than once; accepted is once")
    numbers: dict[tuple[str, str], int] = {}
    history = History.of(listed, lambda ladder, player: numbers.setdefault((ladder, player), len(numbers)))
    ladders = list(dict.fromkeys(match.ladder for match in listed))
    code = {name: at for at, name in enumerate(ladders)}
    labels = [str(at) for match in listed for at in range(len(match.teams))]
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
    )


def join(*tables: MatchTable) -> MatchTable:
    """All these matches as one table, in order of time; players of the same ladder and name are the same.

    Raises InputError where a match id stands in two of them.
    """
    if not tables:
        raise InputError("no tables were given; accepted are one or more")
    rows = pa.concat_tables([table.to_arrow() for table in tables], promote_options="permissive")
    ids = pa.chunked_array([table.match_id for table in tables]).value_counts()
    again = [entry["values"] for entry in ids.to_pylist() if entry["counts"] > 1]
    if again:
        raise InputError(f"match id {again[0]!r} stands in more than one table; accepted is once")
    return assemble(rows, Source("the joined tables"))


def write(matches: MatchTable, path: str | os.PathLike[str]) -> None:
    """Write matches in the tidy long form, as CSV, Parquet or JSON Lines by the suffix; whole or not at all."""
    write_arrow(matches.to_arrow(), Path(path))
