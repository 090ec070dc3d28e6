"""Convert rows of the tidy long form to a MatchTable and report every bad row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from evenmatch.errors import BadRowsError, InputError, RowProblem
from evenmatch.history import Flags
from evenmatch.tables.build import TableBuild
from evenmatch.tables.cells import known_columns, read_cells
from evenmatch.tables.columns import Faults
from evenmatch.tables.source import Source
from evenmatch.tables.table import MatchTable
from evenmatch.times import SECONDS, TimeFormat


def assemble(rows: pa.Table, source: Source, *, skip_bad: bool = False, form: TimeFormat = SECONDS) -> MatchTable:
    """Build the matches of these rows, in time order, ties in row order.

    form  what numbers in `played_at` mean
    Raises InputError if a required column is missing or there are no rows, BadRowsError with all bad rows if there are
    any; with `skip_bad` their matches are left out instead and listed in `skipped`.
    """
    if source.broken and not rows.column_names:  # no readable row: naming missing columns would not help
        raise BadRowsError(source.name, source.broken, all_bad=True)
    rows = known_columns(rows, source)
    if not rows.num_rows and not source.broken:
        raise InputError(f"{source.name} has no rows; expected one row per player and match")
    faults = Faults()
    count, by_name = rows.num_rows, _columns(rows)
    if not skip_bad:
        del rows  # read_cells frees each column after reading it: ten million rows take 1.5 GB
    cells = read_cells(by_name, count, faults, form)
    incomplete = [problem.match_id for problem in source.broken if problem.match_id is not None]
    build = TableBuild(cells, np.arange(count), faults, incomplete)
    problems, bad = _problems(build, source)
    if not problems:
        return build.table(source)
    good = np.flatnonzero(~bad[cells.match] & (cells.match >= 0))
    if not skip_bad or not len(good):
        raise BadRowsError(source.name, problems, all_bad=not len(good))
    clean = Faults()
    build = TableBuild(read_cells(_columns(rows.take(pa.array(good))), len(good), clean, form), good, clean)
    left_out = len({problem.match_id for problem in problems if problem.match_id is not None})
    return replace(build.table(source), skipped=tuple(problems), skipped_matches=left_out)


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(rows.column_names, rows.columns, strict=True))


def _problems(build: TableBuild, source: Source) -> tuple[list[RowProblem], Flags]:
    """The faults with line and match, in line order; and a mask of the matches (by code) with a fault.

    A value that rows of a match or a team repeat is one fault, at the first of them.
    """
    c = build.cells
    bad = np.zeros(len(c.match_id) + 1, bool)  # the last entry is for rows without a match
    listed: dict[tuple[str, int, int], tuple[int, int, str]] = {}
    for row, reason, per in sorted(build.faults.found):
        code = int(c.match[row])
        bad[code] = True
        owner = {"match": -1, "team": int(c.team[row])}.get(per, row) if code >= 0 else row
        listed.setdefault((f"{per} {reason}", code, owner), (row, code, reason))
    lines = source.lines([row for row, _, _ in listed.values()])
    problems = [
        RowProblem(lines[row], c.match_id[code].as_py() if code >= 0 else None, reason, source.unit)
        for row, code, reason in listed.values()
    ]
    by_id = {name: code for code, name in enumerate(c.match_id.to_pylist())} if source.broken else {}
    for broken in source.broken:
        code = by_id.get(broken.match_id, -1) if broken.match_id is not None else -1
        bad[code] = True
        problems.append(broken)
    problems.sort(key=lambda problem: problem.line or 0)
    return problems, bad
