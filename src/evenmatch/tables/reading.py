"""Read the matches of a file: canonical files as they are, others with a mapping."""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from evenmatch.errors import BadRowsError, EvenmatchWarning, InputError, UsageError
from evenmatch.tables.build import assemble
from evenmatch.tables.files import broken_records, csv_header, csv_rows, form_of, read_lines, read_rows
from evenmatch.tables.guess import Guess, guess
from evenmatch.tables.mapping import ROLES, FileMapping, file_column, long_rows, parts_of
from evenmatch.tables.source import PLAIN, Dialect, Source, long_cells
from evenmatch.tables.table import MatchTable
from evenmatch.times import format_named

NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
_HEAD = 1 << 20  # bytes from which the delimiter is guessed
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DELIMITERS = (",", ";", "\t", "|")


def read_matches(
    path: Path,
    name: str | None = None,
    *,
    skip_bad: bool = False,
    time_format: str | None = None,
    zone: str | None = None,
    columns: Mapping[str, str] | None = None,
    mapping: FileMapping | None = None,
    context: Sequence[str] = (),
) -> MatchTable:
    """Read the matches of a file, like `tables.read`; for `name` see files.read_rows."""
    if columns is not None or mapping is not None:
        raw = read_raw(path, name, mapping)
        split = split_columns(columns or {}, context)
        found = understood(raw, split.others, mapping, time_format, zone, split.context)
        return mapped(raw, found, split.context, skip_bad=skip_bad)
    form = format_named(time_format or "seconds", zone or "UTC")
    rows, source = read_rows(path, name, context)
    rows_only = [rows]
    del rows  # assemble then has the only reference, and frees each column after reading it
    try:
        skip = skip_bad and source.form != "jsonl"
        return assemble(rows_only.pop(), source, context, skip_bad=skip, form=form)
    except BadRowsError:
        if source.form != "jsonl":
            raise
    rows, source = read_lines(path, source.name)  # again line by line, for the line numbers in the messages
    return assemble(rows, source, context, skip_bad=skip_bad, form=form)


class SplitColumns(NamedTuple):
    """The file's column of each context column, and of each of our other columns."""

    context: Mapping[str, str]
    others: Mapping[str, str]


class RawFile(NamedTuple):
    """The rows of a file with its own columns.

    is_torn  some records of a CSV file have a wrong number of cells or are not in its encoding; they are not in `rows`
    """

    rows: pa.Table
    source: Source
    is_torn: bool = False


def read_raw(path: Path, name: str | None = None, mapping: FileMapping | None = None) -> RawFile:
    """Read the rows of a file; CSV as text, in the dialect of the mapping or a guessed one.

    Raises UsageError if the file cannot be opened, InputError if it cannot be read.
    """
    if (name is None and form_of(path) != "csv") or (name is not None and _is_packed(path)):
        return RawFile(*read_rows(path, name))
    label = name or str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    dialect = guess_dialect(data) if mapping is None else mapping.dialect
    del data
    try:
        header = csv_header(path, label, dialect)
        if not header:
            raise InputError(f"{label} is empty; expected a line with the names of the columns")
        rows, is_torn = csv_rows(path, header, dialect)
    except (pa.ArrowException, UnicodeError, LookupError, csv.Error) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{label}: not readable as CSV in {dialect.encoding}: {reason}") from error
    if not rows.num_rows and not is_torn:
        raise InputError(f"{label} has no rows; expected a row for each player of a match, or for each match")
    return RawFile(rows, Source(label, "line", path, dialect=dialect), is_torn)


def _is_packed(path: Path) -> bool:
    """Whether a file from a pipe is Parquet or JSON Lines."""
    with path.open("rb") as file:
        head = file.read(64).removeprefix(codecs.BOM_UTF8).lstrip()
    return head[:4] == b"PAR1" or head[:1] in (b"{", b"[")


def guess_dialect(data: bytes) -> Dialect:
    """Guess the encoding of a CSV file, by its byte order mark, else UTF-8, else Windows-1252; and its delimiter."""
    encoding = PLAIN.encoding
    if data[:2] in _UTF_16:
        encoding = _UTF_16[data[:2]]
    elif not data.startswith(codecs.BOM_UTF8):
        try:
            data.decode()
        except UnicodeDecodeError:
            # a file with valid sequences of several bytes is UTF-8 with some broken rows
            is_utf8 = re.search(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}", data) is not None
            encoding = PLAIN.encoding if is_utf8 else "cp1252"
    head = data[:_HEAD].decode(encoding, errors="ignore").lstrip("\ufeff")
    return Dialect(_delimiter(head), encoding)


def _delimiter(head: str) -> str:
    """The delimiter that divides most records into as many cells as the header, more than one if possible."""
    best, most = PLAIN.delimiter, 0.0
    for mark in _DELIMITERS:
        with long_cells():
            try:
                widths = [
                    len(cells) for cells in csv.reader(head.splitlines(keepends=True)[:500], delimiter=mark) if cells
                ]
            except csv.Error:
                continue
        if widths and widths[0] > 1:
            share = Counter(widths)[widths[0]] / len(widths)
            if share * (1 + widths[0] / 100) > most:
                best, most = mark, share * (1 + widths[0] / 100)
    return best


def split_columns(columns: Mapping[str, str], context: Sequence[str]) -> SplitColumns:
    """Split what `columns` says about context columns from the rest.

    Raises UsageError if a column of the file is both.
    """
    own = {ours: theirs for ours, theirs in columns.items() if ours in context and ours not in ROLES}
    others = {ours: theirs for ours, theirs in columns.items() if ours not in own}
    named = {name: own.get(name, name) for name in context}
    read = {part: ours for ours, theirs in others.items() for part in parts_of(theirs)}
    twice = next((part for theirs in named.values() for part in parts_of(theirs) if part in read), None)
    if twice is not None:
        raise UsageError(f"the column {twice!r} is read as {read[twice]} and as context; expected one")
    return SplitColumns(named, others)


def guessed(
    raw: RawFile,
    columns: Mapping[str, str] | None,
    mapping: FileMapping | None,
    time_format: str | None,
    zone: str | None,
    context: Mapping[str, str] = NO_COLUMNS,
) -> Guess:
    """The meaning of a file: the given mapping with what else is given, or a guess.

    context  the file's column of each context column; these have no other meaning
    """
    taken = {part for theirs in context.values() for part in (theirs, *parts_of(theirs))}
    if mapping is None:
        others = [place for place, name in enumerate(raw.rows.column_names) if name not in taken]
        rows = raw.rows.select(others)
        return guess(rows, raw.source.dialect, columns=columns, time_format=time_format, zone=zone)
    changed = replace(
        mapping,
        columns={**mapping.columns, **(columns or {})},
        time_format=time_format or mapping.time_format,
        zone=zone or mapping.zone,
    )
    unread = [name for name in raw.rows.column_names if name not in changed.read and name not in taken]
    return Guess(changed, tuple(unread))


def understood(
    raw: RawFile,
    columns: Mapping[str, str],
    mapping: FileMapping | None,
    time_format: str | None,
    zone: str | None,
    context: Mapping[str, str] = NO_COLUMNS,
) -> FileMapping:
    """The mapping with which to read a file. Warns of columns that are not read; UsageError if a question is open."""
    found = guessed(raw, columns, mapping, time_format, zone, context)
    if found.question:
        raise UsageError(f"{raw.source.name}: {found.question}")
    if found.unread:
        names = f"column{'s' if len(found.unread) > 1 else ''} {', '.join(map(repr, found.unread))}"
        warnings.warn(f"{raw.source.name}: {names} not read", EvenmatchWarning, stacklevel=4)
    return found.mapping


def mapped(
    raw: RawFile, mapping: FileMapping, context: Mapping[str, str] = NO_COLUMNS, *, skip_bad: bool = False
) -> MatchTable:
    """Read the matches of these rows with a mapping; errors as for `tables.read`.

    context  the file's column of each context column
    """
    rows, faults, records = long_rows(raw.rows, mapping, raw.source.name)
    source = raw.source
    if raw.is_torn and source.path is not None:
        header = csv_header(source.path, source.name, source.dialect)
        read = mapping.read | {part: name for name, theirs in context.items() for part in parts_of(theirs)}
        torn = broken_records(source.path, header, read, source.dialect)
        source = replace(source, broken=(*source.broken, *torn))
    form = format_named(mapping.time_format, mapping.zone)
    for name, theirs in context.items():
        cells = file_column(raw.rows, theirs, source.name)
        rows = rows.append_column(name, cells if records is None else cells.take(pa.array(records)))
    source = replace(source, records=records)
    return assemble(rows, source, tuple(context), skip_bad=skip_bad, form=form, faults=faults)
