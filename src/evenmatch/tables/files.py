"""Read rows and write tables as CSV, Parquet or JSON Lines; the suffix of the path selects the format."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from evenmatch.errors import InputError, UsageError
from evenmatch.tables.csv_reader import read_csv
from evenmatch.tables.json_reader import read_json
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS
from evenmatch.whole_file import whole_file

FORMS = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_FORMAT_NAMES = {"csv": "CSV", "parquet": "Parquet", "jsonl": "JSON Lines"}


def form_of(path: Path) -> str:
    """The format for a suffix: csv, parquet or jsonl. Raises UsageError for an unknown suffix."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"{path}: suffix {path.suffix!r}; expected one of {', '.join(FORMS)}")
    return form


def read_rows(path: Path, name: str | None = None) -> tuple[pa.Table, Source]:
    """Read the rows of a file with all its columns, and their source.

    name  the name for messages if the data came from a pipe; the format is then detected from the contents
    Raises UsageError if the file cannot be opened, InputError if the contents do not match the suffix.
    """
    form = None if name else form_of(path)
    label = name or str(path)
    try:
        with path.open("rb") as file:
            head = file.read(4096).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not head.strip():
        raise InputError(f"{label} is empty; expected one row per player and match")
    detected = _detected_form(head, form)
    if form and detected != form:
        raise InputError(f"{label}: its suffix says {_FORMAT_NAMES[form]}, its contents are {_FORMAT_NAMES[detected]}")
    try:
        return {"csv": read_csv, "parquet": _read_parquet, "jsonl": read_json}[detected](path, label)
    except (pa.ArrowException, UnicodeError, OSError, csv.Error) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        origin = "the format of its suffix" if form else "the format detected from its first line"
        raise InputError(f"{label}: not readable as {_FORMAT_NAMES[detected]}, {origin}: {reason}") from error


def _detected_form(head: bytes, form: str | None) -> str:
    """The format of a file by its first bytes; `form` if they are ambiguous, the likeliest one if that is None."""
    first = head.lstrip().splitlines()[0]
    if head[:4] == b"PAR1":
        return "parquet"
    if first[:1] == b"{":
        return "jsonl"
    if b"match_id" in first and (b"," in first or form == "parquet"):
        return "csv"
    return form or ("csv" if first[:1] != b"[" and re.search(b"[,;\t|]", first) else "jsonl")


def _read_parquet(path: Path, name: str) -> tuple[pa.Table, Source]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - most commands do not need Parquet

    names = pq.read_schema(path).names
    known = [name for name in names if name in COLUMNS]
    # of a file with few columns the unknown ones are read too, so that a warning can name them
    return pq.ParquetFile(path).read(columns=known if len(names) > 3 * len(COLUMNS) else None), Source(name)


def check_writable(path: Path) -> None:
    """Raise UsageError early, before a long run, if a table cannot be written to this path."""
    form_of(path)
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise UsageError if this file cannot be written."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: cannot be written; expected a file in an existing, writable folder")


def write_arrow(table: pa.Table, path: Path) -> None:
    """Write a table atomically as CSV, Parquet or JSON Lines, according to the suffix.

    Times are ISO 8601 in UTC in the text formats. Raises UsageError if the path cannot be written, InputError if the
    format cannot hold a column.
    """
    form = form_of(path)
    writers: dict[str, Callable[[pa.Table, io.BufferedIOBase], None]] = {
        "csv": _write_csv,
        "parquet": _write_parquet,
        "jsonl": _write_jsonl,
    }
    with whole_file(path) as draft, draft.open("wb") as file:
        try:
            writers[form](table, file)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"{path}: {form} cannot hold this table: {error}") from error


def _write_parquet(table: pa.Table, file: io.BufferedIOBase) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - most commands do not need Parquet

    pq.write_table(table, file)


def _write_csv(table: pa.Table, file: io.BufferedIOBase) -> None:
    plain = texts(table)
    file.write((",".join(plain.column_names) + "\n").encode())
    start = file.tell()
    options = {"include_header": False, "batch_size": 65_536}
    try:
        pa_csv.write_csv(plain, file, pa_csv.WriteOptions(quoting_style="none", **options))
    except pa.ArrowInvalid:  # a cell contains a comma, a quote or a line break
        file.seek(start)
        file.truncate()
        pa_csv.write_csv(plain, file, pa_csv.WriteOptions(quoting_style="needed", **options))


def _write_jsonl(table: pa.Table, file: io.BufferedIOBase) -> None:
    for batch in texts(table).to_batches(max_chunksize=65_536):
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in batch.to_pylist())
        file.write(("\n".join(lines) + "\n").encode())


def texts(table: pa.Table) -> pa.Table:
    """Return the table with its times as ISO 8601 text ending in Z."""
    for index, name in enumerate(table.column_names):
        if pa.types.is_timestamp(table[name].type):
            table = table.set_column(index, name, iso_8601(table[name]))
    return table


def iso_8601(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as text: 2026-11-21T18:30:00Z, with microseconds only if any time of the column needs them."""
    naive = moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    with contextlib.suppress(pa.ArrowInvalid):  # raised if some have a fraction of a second
        naive = naive.cast(pa.timestamp("s"))
    return pc.strftime(naive, format="%Y-%m-%dT%H:%M:%SZ")
