"""CSV, Parquet and JSON Lines: read rows, write tables. The suffix of the path says which."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from evenmatch.errors import InputError, UsageError
from evenmatch.tables.csv_rows import read_csv
from evenmatch.tables.json_rows import read_json
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS

FORMS = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_CALLED = {"csv": "CSV", "parquet": "Parquet", "jsonl": "JSON Lines"}


def form_of(path: Path) -> str:
    """ "csv", "parquet" or "jsonl" by the suffix. Raises UsageError for another one."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"{path}: suffix {path.suffix!r}; accepted are {', '.join(FORMS)}")
    return form


def read_rows(path: Path, name: str | None = None) -> tuple[pa.Table, Source]:
    """The rows of a file, columns as they are found, and where they came from.

    name  what messages call it, for what was read from a pipe: then its contents alone say which form it has
    Raises UsageError where there is no such file, InputError where it does not hold what its suffix says.
    """
    form = None if name else form_of(path)
    called = name or str(path)
    try:
        with path.open("rb") as file:
            head = file.read(4096).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not head.strip():
        raise InputError(f"{called} is empty; accepted is one row per player and match")
    held = _held(head, form)
    if form and held != form:
        raise InputError(f"{called}: its suffix says {_CALLED[form]}, its contents are {_CALLED[held]}")
    try:
        return {"csv": read_csv, "parquet": _read_parquet, "jsonl": read_json}[held](path, called)
    except (pa.ArrowException, UnicodeError, OSError, csv.Error) as error:
        told = (str(error) or type(error).__name__).splitlines()[0]
        why = "as its suffix says" if form else "as which it begins"
        raise InputError(f"{called}: not readable as {_CALLED[held]}, {why}: {told}") from error


def _held(head: bytes, form: str | None) -> str:
    """The form of a file by its first bytes; `form` where they do not tell, and without one the likeliest."""
    first = head.lstrip().splitlines()[0]
    if head[:4] == b"PAR1":
        return "parquet"
    if first[:1] == b"{":
        return "jsonl"
    if b"match_id" in first and (b"," in first or form == "parquet"):
        return "csv"
    return form or ("csv" if first[:1] != b"[" and re.search(b"[,;\t|]", first) else "jsonl")


def _read_parquet(path: Path, name: str) -> tuple[pa.Table, Source]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - most commands need no Parquet

    names = pq.read_schema(path).names
    known = [name for name in names if name in COLUMNS]
    # where there are few columns, the unknown ones are read as well, to be named in a warning
    return pq.ParquetFile(path).read(columns=known if len(names) > 3 * len(COLUMNS) else None), Source(name)


def check_writable(path: Path) -> None:
    """Raise UsageError now, and not after a long run, where a table could not be written to this path."""
    form_of(path)
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise UsageError where no file of this name can be written."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: cannot be written; accepted is a file in a folder that exists and can be written to")


def write_arrow(table: pa.Table, path: Path) -> None:
    """Write a table as CSV, Parquet or JSON Lines, by the suffix; whole or not at all.

    Times are ISO 8601 in UTC in the text forms. Raises UsageError where the path cannot be written.
    """
    form = form_of(path)
    writers: dict[str, Callable[[pa.Table, io.BufferedIOBase], None]] = {
        "csv": _write_csv,
        "parquet": _write_parquet,
        "jsonl": _write_jsonl,
    }
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            writers[form](table, file)
        mask = os.umask(0)
        os.umask(mask)
        Path(draft).chmod(0o666 & ~mask)
        Path(draft).replace(path)
    except BaseException as error:
        Path(draft).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
        raise


def _write_parquet(table: pa.Table, file: io.BufferedIOBase) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - most commands need no Parquet

    pq.write_table(table, file)


def _write_csv(table: pa.Table, file: io.BufferedIOBase) -> None:
    plain = texts(table)
    file.write((",".join(plain.column_names) + "\n").encode())
    start = file.tell()
    options = {"include_header": False, "batch_size": 65_536}
    try:
        pa_csv.write_csv(plain, file, pa_csv.WriteOptions(quoting_style="none", **options))
    except pa.ArrowInvalid:  # a cell holds a comma, a quote or a line end
        file.seek(start)
        file.truncate()
        pa_csv.write_csv(plain, file, pa_csv.WriteOptions(quoting_style="needed", **options))


def _write_jsonl(table: pa.Table, file: io.BufferedIOBase) -> None:
    for batch in texts(table).to_batches(max_chunksize=65_536):
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in batch.to_pylist())
        file.write(("\n".join(lines) + "\n").encode())


def texts(table: pa.Table) -> pa.Table:
    """The table with its times as ISO 8601 text ending in Z."""
    for at, name in enumerate(table.column_names):
        if pa.types.is_timestamp(table[name].type):
            table = table.set_column(at, name, iso_8601(table[name]))
    return table


def iso_8601(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as text: 2026-11-21T18:30:00Z, with microseconds only where a time of the column has any."""
    naive = moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    with contextlib.suppress(pa.ArrowInvalid):  # raised where some have a fraction of a second
        naive = naive.cast(pa.timestamp("s"))
    return pc.strftime(naive, format="%Y-%m-%dT%H:%M:%SZ")
