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


def assemble(rows: pa.Table, source: Source, *, skip_bad: bool = False) -> MatchTable:
    """Build the matches of these rows, in time order, ties in row order.

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
    cells = read_cells(by_name, count, faults)
    incomplete = [problem.match_id for problem in source.broken if problem.match_id is not None]
    build = TableBuild(cells, np.arange(count), faults, incomplete)
    problems, bad = _problems(build, source)
    if not problems:
        return build.table(source)
    good = np.flatnonzero(~bad[cells.match] & (cells.match >= 0))
    if not skip_bad or not len(good):
        raise BadRowsError(source.name, problems, all_bad=not len(good))
    clean = Faults()
    build = TableBuild(read_cells(_columns(rows.take(pa.array(good))), len(good), clean), good, clean)
    left_out = len({problem.match_id for problem in problems if problem.match_id is not None})
    return replace(build.table(source), skipped=tuple(problems), skipped_matches=left_out)


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(rows.column_names, rows.columns, strict=True))


def _problems(build: TableBuild, source: Source) -> tuple[list[RowProblem], Flags]:
    """Every fault with its line and match, in line order; and a mask of the matches (by code) with a fault."""
    c = build.cells
    bad = np.zeros(len(c.match_id) + 1, bool)  # the last entry is for rows without a match
    faults = sorted(build.faults.found)
    lines = source.lines([row for row, _ in faults])
    problems = []
    for row, reason in faults:
        code = int(c.match[row])
        bad[code] = True
        match_id = c.match_id[code].as_py() if code >= 0 else None
        problems.append(RowProblem(lines[row], match_id, reason, source.unit))
    by_id = {name: code for code, name in enumerate(c.match_id.to_pylist())} if source.broken else {}
    for broken in source.broken:
        code = by_id.get(broken.match_id, -1) if broken.match_id is not None else -1
        bad[code] = True
        problems.append(broken)
    problems.sort(key=lambda problem: problem.line or 0)
    return problems, bad
