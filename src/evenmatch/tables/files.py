"""CSV, Parquet and JSON Lines: read rows, write tables. The suffix of the path says which."""

from __future__ import annotations

import codecs
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
from evenmatch.tables.source import Source, csv_records
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
    held = _held(head, form)
    if held != form:
        raise InputError(f"{path}: its suffix says {_CALLED[form]}, its contents are {_CALLED[held]}")
    try:
        return {"csv": _read_csv, "parquet": _read_parquet, "jsonl": _read_jsonl}[form](path)
    except (pa.ArrowException, UnicodeError, OSError, csv.Error) as error:
        told = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: not readable as {_CALLED[form]}, as its suffix says: {told}") from error


def _held(head: bytes, form: str) -> str:
    """The form of a file by its first bytes; `form` where they do not tell."""
    first = head.removeprefix(codecs.BOM_UTF8).lstrip().splitlines()[0]
    if head[:4] == b"PAR1":
        return "parquet"
    if first[:1] == b"{":
        return "jsonl"
    return "csv" if (form == "parquet" and b"match_id" in first) or (b"match_id" in first and b"," in first) else form


def _read_csv(path: Path) -> tuple[pa.Table, Source]:
    ragged = 0

    def note(_: pa_csv.InvalidRow) -> str:
        nonlocal ragged
        ragged += 1
        return "skip"

    rows = pa_csv.read_csv(
        path,
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(COLUMNS, pa.large_string()), strings_can_be_null=True, null_values=[""]
        ),
    )
    names = rows.column_names
    at = names.index("match_id") if "match_id" in names else len(names)
    broken = [
        Problem(
            line,
            cells[at] if at < len(cells) else None,
            f"{len(cells)} columns; accepted are {width}, as in the first line",
        )
        for line, cells, width in (csv_records(path) if ragged else ())
        if len(cells) != width
    ]
    return rows, Source(str(path), "line", path, broken=tuple(broken))


def _read_parquet(path: Path) -> tuple[pa.Table, Source]:
    names = pq.read_schema(path).names
    known = [name for name in names if name in COLUMNS]
    # where there are few columns, the unknown ones are read as well, to be named in a warning
    return pq.ParquetFile(path).read(columns=known if len(names) > 3 * len(COLUMNS) else None), Source(str(path))


def _read_jsonl(path: Path) -> tuple[pa.Table, Source]:
    texts = pa.schema([(name, pa.large_string()) for name in ("match_id", "ladder", "player", "team")])
    try:
        options = pa_json.ParseOptions(explicit_schema=texts, newlines_in_values=False)
        rows = pa_json.read_json(path, parse_options=options)
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return read_json_lines(path)  # numbers for names, or broken lines: find which
    absent = [name for name in texts.names if rows[name].null_count == len(rows)]
    return rows.drop_columns(absent), Source(str(path), "line", path, form="jsonl")


def read_json_lines(path: Path) -> tuple[pa.Table, Source]:
    """The rows of a JSON Lines file one by one, each with its line; slow, and told of every broken line."""
    broken, listed, numbers = [], [], []
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            cells = None
            try:
                cells = json.loads(text)
                json.dumps(cells, ensure_ascii=False).encode()  # refuses half a surrogate pair
            except (ValueError, RecursionError) as error:
                told = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
                match_id = cells.get("match_id") if isinstance(cells, dict) else None
                broken.append(Problem(number, match_id if isinstance(match_id, str) else None, f"no JSON: {told}"))
                continue
            if isinstance(cells, dict):
                listed.append(cells)
                numbers.append(number)
            else:
                broken.append(Problem(number, None, f"{text.strip()[:40]!r}; accepted is one JSON object per line"))
    names = dict.fromkeys(name for cells in listed for name in cells)
    rows = pa.table({name: pa.array([_text(cells.get(name)) for cells in listed], pa.large_string()) for name in names})
    return rows, Source(str(path), "line", path, numbers, tuple(broken))


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


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
