"""Reading the divisions of a ladder from a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

from evenmatch.errors import InputError, UsageError
from evenmatch.standings.division import Division, checked
from evenmatch.tables.source import long_cells


def read_divisions(path: Path) -> tuple[Division, ...]:
    """Divisions from a CSV file with the columns name and lowest (percentile), in rising order.

    Raises UsageError if the file cannot be read, InputError if its contents are invalid.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; expected CSV with the columns name and lowest") from error
    try:
        divisions = _rows(text, path)
    except csv.Error as error:
        raise InputError(f"{path} is not readable as CSV: {error}; expected the columns name and lowest") from error
    try:
        return checked(divisions)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _rows(text: str, path: Path) -> list[Division]:
    with long_cells():
        reader = csv.DictReader(text.splitlines())
        columns = list(reader.fieldnames or ())
        if not {"name", "lowest"} <= set(columns):
            raise InputError(f"{path} has the columns {', '.join(columns)}; expected name and lowest")
        divisions = []
        for row in reader:
            name, lowest = row["name"], row["lowest"]
            if name is None or lowest is None or not lowest.strip().isdecimal():
                expected = "a whole percentile, 1 to 100"
                raise InputError(f"{path}, line {reader.line_num}: lowest is {lowest!r}; expected {expected}")
            divisions.append(Division(name.strip(), int(lowest)))
    return divisions
