"""CSV, Parquet and JSON Lines: read rows, write tables. The suffix of the path says which."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from evenmatch.errors import InputError, Problem, UsageError
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


def read_rows(path: Path) -> tuple[pa.Table, Source]:
    """The rows of a file, columns as they are found, and where they came from.

    Raises UsageError where there is no such file, InputError where it does not hold what its suffix says.
    """
    form = form_of(path)
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not head.strip():
        raise InputError(f"{path} is empty; accepted is one row per player and match")
    held = "parquet" if head[:4] == b"PAR1" else "jsonl" if head.lstrip()[:1] == b"{" else "csv"
    if held != form and not (held == "csv" and form == "jsonl"):
        raise InputError(f"{path}: its suffix says {_CALLED[form]}, its contents are {_CALLED[held]}")
    try:
        return {"csv": _read_csv, "parquet": _read_parquet, "jsonl": _read_jsonl}[form](path)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        told = str(error).splitlines()[0]
        raise InputError(f"{path}: not readable as {_CALLED[form]}, as its suffix says: {told}") from error


def _read_csv(path: Path) -> tuple[pa.Table, Source]:
    broken: list[tuple[int | None, int, int, str]] = []

    def note(row: pa_csv.InvalidRow) -> str:
        broken.append((row.number, row.actual_columns, row.expected_columns, row.text))
        return "skip"

    def read(threads: bool) -> pa.Table:
        broken.clear()
        return pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(use_threads=threads),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(COLUMNS, pa.large_string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )

    rows = read(threads=True)
    if not broken:
        return rows, Source(str(path), "line", path, "csv")
    rows = read(threads=False)  # rows are numbered only when read by one thread
    position = rows.column_names.index("match_id") if "match_id" in rows.column_names else -1
    problems = []
    for number, actual, expected, text in broken:
        cells = next(csv.reader([text]), [])
        match_id = cells[position] if 0 <= position < len(cells) else None
        problems.append(Problem(number, match_id, f"{actual} columns; accepted are {expected}, as in the first line"))
    return rows, Source(str(path), "line", path, "csv", tuple(problems))


def _read_parquet(path: Path) -> tuple[pa.Table, Source]:
    rows = pq.read_table(path, columns=None if _few_columns(path) else list(COLUMNS))
    return rows, Source(str(path))


def _few_columns(path: Path) -> bool:
    """Whether the file has so few columns that the unknown ones may be read as well, to be named in a warning."""
    return len(pq.read_schema(path).names) <= 3 * len(COLUMNS)


def _read_jsonl(path: Path) -> tuple[pa.Table, Source]:
    source = Source(str(path), "line", path, "jsonl")
    texts = pa.schema([(name, pa.large_string()) for name in ("match_id", "ladder", "player")])
    try:
        options = pa_json.ParseOptions(explicit_schema=texts, newlines_in_values=False)
        return pa_json.read_json(path, parse_options=options), source
    except pa.ArrowInvalid:
        return _read_jsonl_by_line(path, source)  # numbers for names, or broken lines: find which


def _read_jsonl_by_line(path: Path, source: Source) -> tuple[pa.Table, Source]:
    broken, listed = [], []
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                cells = json.loads(text)
            except json.JSONDecodeError as error:
                broken.append(Problem(number, None, f"no JSON: {error.msg} at column {error.colno}"))
                continue
            if isinstance(cells, dict):
                listed.append(cells)
            else:
                broken.append(Problem(number, None, f"{text.strip()[:40]!r}; accepted is one JSON object per line"))
    names = dict.fromkeys(name for cells in listed for name in cells)
    rows = pa.table({name: pa.array([_text(cells.get(name)) for cells in listed], pa.large_string()) for name in names})
    return rows, Source(source.name, source.unit, path, "jsonl", tuple(broken))


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def check_writable(path: Path) -> None:
    """Raise UsageError now, and not after a long run, where a table could not be written to this path."""
    form_of(path)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: cannot be written; accepted is a file in a folder that exists and can be written to")


def write_arrow(table: pa.Table, path: Path) -> None:
    """Write a table as CSV, Parquet or JSON Lines, by the suffix; whole or not at all.

    Times are ISO 8601 in UTC in the text forms. Raises UsageError where the path cannot be written.
    """
    form = form_of(path)
    writers: dict[str, Callable[[pa.Table, io.BufferedIOBase], None]] = {
        "csv": _write_csv,
        "parquet": pq.write_table,
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
