"""Ratings to start from, out of a file with the columns player and rating."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from evenmatch.errors import BadRowsError, InputError, Problem, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from evenmatch.tables.source import Source


def read_ratings(path: Path, ladder: str, *, skip_bad: bool = False) -> tuple[dict[str, float], list[Problem]]:
    """The rating of each player, and the bad rows where `skip_bad` leaves them out.

    Of a file with several ladders those of this one. Raises InputError where the file holds something else,
    BadRowsError with every bad row.
    """
    from evenmatch.tables.files import read_rows

    rows, source = read_rows(path)
    if not {"player", "rating"} <= set(rows.column_names):
        found = ", ".join(rows.column_names[:20])
        raise InputError(f"{path} has the columns {found}; accepted are player and rating")
    numbers = list(range(rows.num_rows))
    if "ladder" in rows.column_names:
        names = [str(name) for name in rows["ladder"].to_pylist()]
        if len(set(names)) > 1:
            numbers = [number for number in numbers if names[number] == ladder]
            if not numbers:
                listed = ", ".join(sorted(set(names))[:20])
                raise UsageError(f"{path} has the ladders {listed}, and none is {ladder!r}; accepted is one of them")
    chosen, problems = _read(rows, source, numbers)
    problems = [*source.broken, *problems]
    if problems and (not skip_bad or not chosen):
        raise BadRowsError(str(path), problems, all_bad=not chosen)
    if not chosen:
        raise InputError(f"{path} has no rows; accepted is a row per player")
    return chosen, problems


def _read(rows: pa.Table, source: Source, numbers: list[int]) -> tuple[dict[str, float], list[Problem]]:
    players, ratings = rows["player"].to_pylist(), rows["rating"].to_pylist()
    chosen: dict[str, float] = {}
    wrong: list[tuple[int, str]] = []
    for number in numbers:
        player, rating = players[number], _number(ratings[number])
        if player is None or str(player) == "":
            wrong.append((number, "player is empty; accepted is any text"))
        elif rating is None:
            wrong.append((number, f"rating of {player!r} is {ratings[number]!r}; accepted is a finite number"))
        elif str(player) in chosen:
            wrong.append((number, f"player {player!r} stands here a second time; accepted is one row per player"))
        else:
            chosen[str(player)] = rating
    lines = source.lines([number for number, _ in wrong]) if wrong else {}
    return chosen, [Problem(lines[number], None, reason, source.unit) for number, reason in wrong]


def _number(value: object) -> float | None:
    """The value as a finite number; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
