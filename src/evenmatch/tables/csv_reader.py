"""The raw rows of a CSV file, and its lines that are not valid rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from evenmatch.errors import InputError, RowProblem
from evenmatch.tables.source import Source, csv_records, long_cells, not_utf8
from evenmatch.tables.table import COLUMNS

_SHOWN = 40  # bytes of a cell shown in a message


def read_csv(path: Path, name: str) -> tuple[pa.Table, Source]:
    """Read the rows; rows with a wrong number of cells or invalid UTF-8 go to `broken` of the source."""
    header = _header(path, name)
    try:
        return _rows(path, skip=False), Source(name, "line", path)
    except pa.ArrowInvalid:  # Arrow gives no line numbers and cannot show a row of invalid UTF-8
        broken = tuple(_broken(path, header))
    text = pa.BufferReader(path.read_bytes().decode(errors="replace").encode())
    return _rows(text, skip=True), Source(name, "line", path, broken=broken)


def _rows(file: Path | pa.BufferReader, *, skip: bool) -> pa.Table:
    return pa_csv.read_csv(
        file,
        parse_options=pa_csv.ParseOptions(
            newlines_in_values=True, invalid_row_handler=(lambda _: "skip") if skip else None
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(COLUMNS, pa.large_string()), strings_can_be_null=True, null_values=[""]
        ),
    )


def _header(path: Path, name: str) -> list[str]:
    """The column names. Raises InputError if they are not UTF-8."""
    with long_cells(), path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        reader = csv.reader(file)
        cells = next((cells for cells in reader if cells), [])
        line = reader.line_num
    wrong = next((raw for cell in cells if (raw := not_utf8(cell)) is not None), None)
    if wrong is not None:
        raise InputError(f"{name}: line {line}: {wrong[:_SHOWN]!r} is not UTF-8; expected CSV in UTF-8")
    return cells


def _broken(path: Path, header: list[str]) -> list[RowProblem]:
    """Lines with more or fewer cells than the first line, or with invalid UTF-8 in a known column."""
    id_column = header.index("match_id") if "match_id" in header else len(header)
    problems = []
    for line, cells, width in csv_records(path, errors="surrogateescape"):
        match_id = _readable(cells[id_column]) if id_column < len(cells) else None
        if len(cells) != width:
            reason = f"{len(cells)} columns; expected {width}, as in the first line"
            problems.append(RowProblem(line, match_id, reason))
            continue
        for column, cell in zip(header, cells, strict=True):
            raw = not_utf8(cell)
            if raw is not None and column in COLUMNS:
                reason = f"{column} is {raw[:_SHOWN]!r}, which is not UTF-8; expected a file in UTF-8"
                problems.append(RowProblem(line, match_id, reason))
    return problems


def _readable(cell: str) -> str:
    """The cell with every invalid byte replaced, as in the rows."""
    return cell.encode(errors="surrogateescape").decode(errors="replace")
