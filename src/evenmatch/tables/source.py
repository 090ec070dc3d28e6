"""The source of rows: its name in messages and the line number of each row."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import RowProblem


class Dialect(NamedTuple):
    """How a CSV file separates its cells, and its encoding as Python names it."""

    delimiter: str = ","
    encoding: str = "utf-8-sig"

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, with or without a byte order mark."""
        return self.encoding.startswith("utf-8")


PLAIN = Dialect()


@dataclass(frozen=True)
class Source:
    """A file or data frame, as named in messages.

    unit     "line" for text files, "row" elsewhere; both count from 1
    path     of a text file; its lines are counted on request
    numbers  the line of every row, if already known
    broken   lines that are not valid rows
    form     "jsonl" for JSON Lines
    dialect  of a CSV file
    records  the record of each row, counted from 0, if a record of the file became several rows
    """

    name: str
    unit: str = "row"
    path: Path | None = None
    numbers: Sequence[int] | None = None
    broken: tuple[RowProblem, ...] = ()
    form: str = ""
    dialect: Dialect = PLAIN
    records: NDArray[np.int64] | None = None

    def lines(self, rows: Sequence[int]) -> dict[int, int]:
        """Map rows, counted from 0, to their lines. This reads a text file again, up to the last of these rows."""
        if self.records is not None:
            lines = replace(self, records=None).lines(sorted(set(self.records[list(rows)].tolist())))
            return {row: lines[int(self.records[row])] for row in rows}
        if self.numbers is not None:
            return {row: self.numbers[row] for row in rows}
        if self.path is None or not rows:
            return {row: row + 1 for row in rows}
        records = _json_records(self.path) if self.form == "jsonl" else _full_records(self.path, self.dialect)
        wanted, last, line_of = set(rows), max(rows), {}
        for row, line in enumerate(records):
            if row in wanted:
                line_of[row] = line
            if row == last:
                break
        return {row: line_of.get(row, row + 1) for row in rows}


def _json_records(path: Path) -> Iterator[int]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        yield from (line for line, text in enumerate(file, 1) if text.strip())


def _full_records(path: Path, dialect: Dialect) -> Iterator[int]:
    yield from (line for line, cells, width in csv_records(path, dialect=dialect) if len(cells) == width)


def csv_records(path: Path, errors: str = "replace", dialect: Dialect = PLAIN) -> Iterator[tuple[int, list[str], int]]:
    """(first line, cells, expected number of cells) of each CSV record, without the header and blank lines.

    errors  the handling of bytes that the encoding does not have, as in `bytes.decode`
    """
    with long_cells(), path.open(newline="", encoding=dialect.encoding, errors=errors) as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        end, width = 0, None
        for cells in reader:
            start, end = end + 1, reader.line_num
            if not cells:
                continue
            if width is None:
                width = len(cells)
            else:
                yield start, cells, width


def not_utf8(text: str) -> bytes | None:
    """The original bytes of a text read with errors="surrogateescape" if they are not UTF-8, else None."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape")
    return None


@contextmanager
def long_cells() -> Iterator[None]:
    """Allow the csv module to read cells of any length inside the block."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
