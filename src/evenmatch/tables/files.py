"""Read rows and write tables as CSV, Parquet or JSON Lines; the suffix of the path selects the format."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from evenmatch.errors import InputError, RowProblem, UsageError
from evenmatch.tables.source import PLAIN, Dialect, Source, csv_records, long_cells, not_utf8
from evenmatch.tables.table import COLUMNS
from evenmatch.whole_file import whole_file

_SHOWN = 40  # bytes of a cell shown in a message
_ROWS = 65_536  # rows written at a time


def read_csv(path: Path, name: str, also: Sequence[str] = ()) -> tuple[pa.Table, Source]:
    """Read the rows; rows with a wrong number of cells or invalid UTF-8 go to `broken` of the source."""
    header, known = csv_header(path, name), (*COLUMNS, *also)
    rows, is_torn = csv_rows(path, known)
    broken = tuple(broken_records(path, header, {column: column for column in known})) if is_torn else ()
    return rows, Source(name, "line", path, broken=broken)


def csv_rows(path: Path, texts: Iterable[str], dialect: Dialect = PLAIN) -> tuple[pa.Table, bool]:
    """Read the rows of a CSV file, and whether some were left out because they are broken.

    texts  the columns to read as text
    """
    if dialect.is_utf8:
        with contextlib.suppress(pa.ArrowInvalid):  # Arrow has no line numbers and cannot show a row of invalid UTF-8
            return _rows(path, texts, dialect, skip=False), False
    text = path.read_bytes().decode(dialect.encoding, errors="replace").encode()
    if not dialect.is_utf8:
        with contextlib.suppress(pa.ArrowInvalid):
            return _rows(pa.BufferReader(text), texts, dialect, skip=False), False
    return _rows(pa.BufferReader(text), texts, dialect, skip=True), True


def _rows(file: Path | pa.BufferReader, texts: Iterable[str], dialect: Dialect, *, skip: bool) -> pa.Table:
    return pa_csv.read_csv(
        file,
        parse_options=pa_csv.ParseOptions(
            delimiter=dialect.delimiter,
            newlines_in_values=True,
            invalid_row_handler=(lambda _: "skip") if skip else None,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(texts, pa.large_string()), strings_can_be_null=True, null_values=[""]
        ),
    )


def csv_header(path: Path, name: str, dialect: Dialect = PLAIN) -> list[str]:
    """The column names. Raises InputError if they are not UTF-8."""
    with long_cells(), path.open(newline="", encoding=dialect.encoding, errors="surrogateescape") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        cells = next((cells for cells in reader if cells), [])
        line = reader.line_num
    wrong = next((raw for cell in cells if (raw := not_utf8(cell)) is not None), None)
    if wrong is not None:
        raise InputError(f"{name}: line {line}: {wrong[:_SHOWN]!r} is not UTF-8; expected CSV in UTF-8")
    return cells


def broken_records(
    path: Path, header: list[str], ours: Mapping[str, str], dialect: Dialect = PLAIN
) -> Iterator[RowProblem]:
    """Lines with more or fewer cells than the first line, or with invalid UTF-8 in a column that is read.

    ours  our name of each column of the file that is read
    """
    places = [place for place, column in enumerate(header) if ours.get(column) == "match_id"]
    for line, cells, width in csv_records(path, "surrogateescape" if dialect.is_utf8 else "replace", dialect):
        match_id = _readable(cells[places[0]]) if places and places[0] < len(cells) else None
        if len(cells) != width:
            reason = f"{len(cells)} columns; expected {width}, as in the first line"
            yield RowProblem(line, match_id, reason)
            continue
        for column, cell in zip(header, cells, strict=True):
            raw = not_utf8(cell)
            if raw is not None and column in ours:
                reason = f"{column} is {raw[:_SHOWN]!r}, which is not UTF-8; expected a file in UTF-8"
                yield RowProblem(line, match_id, reason)


def _readable(cell: str) -> str:
    """The cell with every invalid byte replaced, as in the rows."""
    return cell.encode(errors="surrogateescape").decode(errors="replace")


def read_json(path: Path, name: str, also: Sequence[str] = ()) -> tuple[pa.Table, Source]:
    """Read the rows of a JSON Lines file with Arrow; if that fails, with the slower `read_lines`."""
    texts = ["match_id", "ladder", "player", "team"]
    try:
        rows = _json_rows(path, texts)
        dated = [name for name in also if name in rows.column_names and pa.types.is_timestamp(rows[name].type)]
        if dated:  # Arrow takes texts such as 2026-01-01 for times
            texts += dated
            rows = _json_rows(path, texts)
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return read_lines(path, name)  # numbers as names, or invalid lines: find them
    absent = [name for name in texts if rows[name].null_count == len(rows)]
    return rows.drop_columns(absent), Source(name, "line", path, form="jsonl")


def _json_rows(path: Path, texts: Sequence[str]) -> pa.Table:
    """The rows; texts: the columns that are text whatever they look like."""
    schema = pa.schema([(name, pa.large_string()) for name in texts])
    return pa_json.read_json(path, parse_options=pa_json.ParseOptions(explicit_schema=schema, newlines_in_values=False))


def read_lines(path: Path, name: str) -> tuple[pa.Table, Source]:
    """Read a JSON Lines file line by line, with line numbers and every invalid line; slow."""
    broken, listed, numbers = [], [], []
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            cells, reason = _cells(text.strip())
            if reason is None:
                listed.append(cells)
                numbers.append(number)
            else:
                match_id = cells.get("match_id")
                broken.append(
                    RowProblem(number, _readable_text(match_id) if isinstance(match_id, str) else None, reason)
                )
    names = dict.fromkeys(name for cells in listed for name in cells)
    rows = pa.table({name: pa.array([_text(cells.get(name)) for cells in listed], pa.large_string()) for name in names})
    return rows, Source(name, "line", path, numbers, tuple(broken))


def _cells(text: str) -> tuple[dict[str, object], str | None]:
    """The cells of a line, and the reason if it is not a valid row, else None."""
    raw = not_utf8(text)
    shown = repr(text[:_SHOWN] if raw is None else raw[:_SHOWN])
    detail = ""
    try:
        cells = json.loads(text)
        if isinstance(cells, dict):
            json.dumps(cells, ensure_ascii=False).encode()  # rejects a lone surrogate
            return cells, None
    except UnicodeEncodeError:
        if raw is not None:
            return cells, f"{shown} is not UTF-8; expected a file in UTF-8"
        return cells, f"{shown} contains half of a surrogate pair; expected valid Unicode"
    except json.JSONDecodeError as error:
        detail = f" ({error.msg.removesuffix(' at')} at column {error.colno})"
    except (ValueError, RecursionError) as error:  # too many digits, too deep
        detail = f" ({error})"
    return {}, f"{shown} is not a JSON object{detail}; expected one per line"


def _readable_text(text: str) -> str:
    return text.encode(errors="surrogatepass").decode(errors="replace")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


FORMS = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_FORMAT_NAMES = {"csv": "CSV", "parquet": "Parquet", "jsonl": "JSON Lines"}


def form_of(path: Path) -> str:
    """The format for a suffix: csv, parquet or jsonl. Raises UsageError for an unknown suffix."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"{path}: suffix {path.suffix!r}; expected one of {', '.join(FORMS)}")
    return form


def read_rows(path: Path, name: str | None = None, also: Sequence[str] = ()) -> tuple[pa.Table, Source]:
    """Read the rows of a file with all its columns, and their source.

    name  the name for messages if the data came from a pipe; the format is then detected from the contents
    also  columns of the file that are wanted besides ours
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
        return {"csv": read_csv, "jsonl": read_json, "parquet": _read_parquet}[detected](path, label, also)
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


def _read_parquet(path: Path, name: str, also: Sequence[str]) -> tuple[pa.Table, Source]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - most commands do not need Parquet

    names = pq.read_schema(path).names
    known = [name for name in names if name in COLUMNS or name in also]
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
    with whole_file(path) as draft, draft.open("wb") as file:
        try:
            write_parts([table], table.schema, form, file)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"{path}: {form} cannot hold this table: {error}") from error


def write_parts(parts: Iterable[pa.Table], schema: pa.Schema, form: str, file: io.BufferedIOBase) -> None:
    """Write tables with these columns one after another as csv, parquet or jsonl."""
    if form == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 - most commands do not need Parquet

        with pq.ParquetWriter(file, schema) as writer:
            for part in parts:
                writer.write_table(part)
        return
    if form == "csv":
        file.write((",".join(schema.names) + "\n").encode())
    append = _append_csv if form == "csv" else _append_jsonl
    for part in parts:
        append(texts(part), file)


def _append_csv(plain: pa.Table, file: io.BufferedIOBase) -> None:
    start = file.tell()
    options = {"include_header": False, "batch_size": _ROWS}
    try:
        pa_csv.write_csv(plain, file, pa_csv.WriteOptions(quoting_style="none", **options))
    except pa.ArrowInvalid:  # a cell contains a comma, a quote or a line break
        file.seek(start)
        file.truncate()
        pa_csv.write_csv(plain, file, pa_csv.WriteOptions(quoting_style="needed", **options))


def _append_jsonl(plain: pa.Table, file: io.BufferedIOBase) -> None:
    for batch in plain.to_batches(max_chunksize=_ROWS):
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in batch.to_pylist()]
        file.write("".join(f"{line}\n" for line in lines).encode())


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
