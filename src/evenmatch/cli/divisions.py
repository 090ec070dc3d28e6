"""The divisions table of a ladder, from a small CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

from evenmatch.errors import InputError, UsageError
from evenmatch.standings.division import Division, checked


def read_divisions(path: Path) -> tuple[Division, ...]:
    """Divisions from a CSV file with the columns name and lowest, in rising order.

    Raises UsageError where the file cannot be read, InputError where it holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; accepted is CSV with the columns name and lowest") from error
    reader = csv.DictReader(text.splitlines())
    if not {"name", "lowest"} <= set(reader.fieldnames or ()):
        raise InputError(f"{path} has the columns {', '.join(reader.fieldnames or ())}; accepted are name and lowest")
    divisions = []
    for row in reader:
        try:
            divisions.append(Division(row["name"].strip(), int(row["lowest"])))
        except (ValueError, TypeError, AttributeError):
            raise InputError(
                f"{path}, line {reader.line_num}: lowest is {row['lowest']!r}; accepted is a whole percentile, 1 to 100"
            ) from None
    try:
        return checked(divisions)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
