"""Reading starting ratings from a file with the columns player and rating."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from evenmatch.cli.shared.input_files import ladder_within
from evenmatch.errors import BadRowsError, InputError, RowProblem

if TYPE_CHECKING:
    import pyarrow as pa

    from evenmatch.systems.system import Rules
    from evenmatch.tables.source import Source


def read_ratings(
    path: Path,
    called: str | None,
    ladder: str,
    from_ladder: str | None,
    rules: Rules,
    *,
    skip_bad: bool = False,
) -> tuple[dict[str, float], list[RowProblem]]:
    """The rating of each player, and the bad rows that `skip_bad` left out.

    called  the name of the file in messages, if not its path
    rules   the rules of the ladder; a rating that its system does not allow is a bad row
    Of several ladders in the file, one is chosen by input_files.ladder_within. Raises InputError for a file without the
    columns or rows, BadRowsError with all bad rows.
    """
    from evenmatch.tables.files import read_rows

    rows, source = read_rows(path, called)
    if source.broken and not rows.column_names:
        raise BadRowsError(source.name, source.broken, all_bad=True)
    if not {"player", "rating"} <= set(rows.column_names):
        columns = ", ".join(rows.column_names[:20])
        raise InputError(f"{source.name} has the columns {columns}; expected player and rating")
    numbers = _of_ladder(rows, source, ladder, from_ladder)
    chosen, problems = _read(rows, source, numbers, rules)
    problems = sorted([*source.broken, *problems], key=lambda problem: problem.line or 0)
    if problems and (not skip_bad or not chosen):
        raise BadRowsError(source.name, problems, all_bad=not chosen)
    if not chosen:
        raise InputError(f"{source.name} has no rows; expected one row per player")
    return chosen, problems


def _of_ladder(rows: pa.Table, source: Source, ladder: str, from_ladder: str | None) -> list[int]:
    """The numbers of the rows of the chosen ladder; all if the file has no column ladder."""
    names = [str(name) for name in rows["ladder"].to_pylist()] if "ladder" in rows.column_names else []
    if not names:
        return list(range(rows.num_rows))
    chosen = ladder_within(list(dict.fromkeys(names)), ladder, from_ladder, source.name)
    return [number for number, name in enumerate(names) if name == chosen]


def _read(
    rows: pa.Table, source: Source, numbers: list[int], rules: Rules
) -> tuple[dict[str, float], list[RowProblem]]:
    players, ratings = rows["player"].to_pylist(), rows["rating"].to_pylist()
    chosen: dict[str, float] = {}
    wrong: list[tuple[int, str]] = []
    for number in numbers:
        player, rating = players[number], _number(ratings[number])
        if player is None or str(player) == "":
            wrong.append((number, "player is empty; expected a name"))
        elif rating is None:
            wrong.append((number, f"rating of {player!r} is {ratings[number]!r}; expected a finite number"))
        elif str(player) in chosen:
            wrong.append((number, f"player {player!r} is listed twice; expected one row per player"))
        elif (reason := _refusal(rating, rules)) is not None:
            wrong.append((number, f"player {player!r}, {reason}"))
        else:
            chosen[str(player)] = rating
    lines = source.lines([number for number, _ in wrong]) if wrong else {}
    return chosen, [RowProblem(lines[number], None, reason, source.unit) for number, reason in wrong]


def _refusal(rating: float, rules: Rules) -> str | None:
    """The reason why the system does not allow a rating; None if it does."""
    try:
        rules.system.start_at(rating, rules.parameters)
    except InputError as error:
        return str(error)
    return None


def _number(value: object) -> float | None:
    """The value as a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
