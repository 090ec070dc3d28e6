"""Where rows came from: what to call it in messages, and which line a row stood on."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evenmatch.errors import Problem


@dataclass(frozen=True)
class Source:
    """Names a file or a frame in messages.

    unit     "line" for text files, "row" elsewhere; both count from 1
    path     of a text file whose lines can be counted
    form     "csv", "jsonl" or "" where rows are numbered as they come
    broken   lines that are no rows at all
    """

    name: str
    unit: str = "row"
    path: Path | None = None
    form: str = ""
    broken: tuple[Problem, ...] = ()

    def lines(self, rows: Sequence[int]) -> dict[int, int]:
        """The line of each of these rows (counted from 0); text files are read again up to the last of them."""
        if self.path is None or not rows:
            return {row: row + 1 for row in rows}
        wanted, last = set(rows), max(rows)
        return self._csv_lines(wanted, last) if self.form == "csv" else self._json_lines(wanted, last)

    def _csv_lines(self, wanted: set[int], last: int) -> dict[int, int]:
        assert self.path is not None
        found: dict[int, int] = {}
        with self.path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            reader = csv.reader(file)
            width = len(next(reader, []))
            row, end = 0, reader.line_num
            for cells in reader:
                start, end = end + 1, reader.line_num
                if len(cells) == width:  # blank lines and lines of another width are no rows
                    if row in wanted:
                        found[row] = start
                    row += 1
                if row > last:
                    break
        return found

    def _json_lines(self, wanted: set[int], last: int) -> dict[int, int]:
        assert self.path is not None
        broken = {problem.line for problem in self.broken}
        found: dict[int, int] = {}
        row = 0
        with self.path.open(encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if text.strip() and number not in broken:
                    if row in wanted:
                        found[row] = number
                    row += 1
                if row > last:
                    break
        return found
