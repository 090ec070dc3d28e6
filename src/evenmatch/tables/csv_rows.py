"""Rows of a CSV file as they stand, and the lines that are no rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from evenmatch.errors import InputError, Problem
from evenmatch.tables.source import Source, csv_records, long_cells, not_utf8
from evenmatch.tables.table import COLUMNS

_SHOWN = 40  # bytes of a cell


def read_csv(path: Path, name: str) -> tuple[pa.Table, Source]:
    """The rows that have as many cells as the first line; the others, and what is not UTF-8, are told as broken."""
    header = _header(path, name)
    try:
        return _rows(path, skip=False), Source(name, "line", path)
    except pa.ArrowInvalid:  # Arrow names no line; and it must not be asked to show us a row that is no text
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
    """The names of the columns. Raises InputError where they are not UTF-8: then the file is no text of ours."""
    with long_cells(), path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        reader = csv.reader(file)
        cells = next((cells for cells in reader if cells), [])
        line = reader.line_num
    wrong = next((raw for cell in cells if (raw := not_utf8(cell)) is not None), None)
    if wrong is not None:
        raise InputError(f"{name}: line {line}: {wrong[:_SHOWN]!r} is not UTF-8; accepted is CSV in UTF-8")
    return cells


def _broken(path: Path, header: list[str]) -> list[Problem]:
    """The lines with more or fewer cells than the first one, and those with a known column that is not UTF-8."""
    at = header.index("match_id") if "match_id" in header else len(header)
    found = []
    for line, cells, width in csv_records(path, errors="surrogateescape"):
        match_id = _readable(cells[at]) if at < len(cells) else None
        if len(cells) != width:
            reason = f"{len(cells)} columns; accepted are {width}, as in the first line"
            found.append(Problem(line, match_id, reason))
            continue
        for column, cell in zip(header, cells, strict=True):
            raw = not_utf8(cell)
            if raw is not None and column in COLUMNS:
                reason = f"{column} is {raw[:_SHOWN]!r}, which is not UTF-8; accepted is a file in UTF-8"
                found.append(Problem(line, match_id, reason))
    return found


def _readable(cell: str) -> str:
    """The cell as it stands in the rows, where every wrong byte is replaced."""
    return cell.encode(errors="surrogateescape").decode(errors="replace")
