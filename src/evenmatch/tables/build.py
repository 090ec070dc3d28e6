"""Cells -> matches: group rows, sort matches, check that rows agree, derive places, and report every bad row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, InputError, RowProblem
from evenmatch.history import Columns, Flags, Floats, History, Integers, entries, fill_duration, ladder_indices
from evenmatch.tables import columns
from evenmatch.tables.cells import ColumnCells, known_columns, read_cells
from evenmatch.tables.columns import Faults, RowFault
from evenmatch.tables.source import Source
from evenmatch.tables.table import MatchTable
from evenmatch.times import SECONDS, TimeFormat, iso_time

Rows = NDArray[np.int64]


class TableBuild:
    """The rows in their final order with the boundaries of matches and teams; collects faults in `faults`."""

    def __init__(self, cells: ColumnCells, rows: Rows, faults: Faults, broken: Sequence[str] = ()) -> None:
        """Group and check the cells.

        rows    the row of each cell in the file;  faults  counts rows as the cells do
        broken  ids of matches with unreadable rows
        """
        self.cells, self.rows, self.faults = cells, rows, faults
        readable = np.flatnonzero((cells.match >= 0) & (cells.team >= 0))
        incomplete = np.flatnonzero(pc.is_in(cells.match_id, pa.array(broken, cells.match_id.type)).to_numpy(False))
        self.misread = np.union1d(cells.match[[fault.row for fault in faults.found]], incomplete)
        self._group(readable)
        self._check_agreement()
        self._check_duplicates()
        self._check_team_counts()
        self.place = self._places()

    def _group(self, readable: Rows) -> None:
        """Order rows by match (time, then first row), then by team (first row), then by row."""
        c, self.readable = self.cells, readable
        code = c.match[readable]
        first = self._first_rows(None)
        timed = self._first_rows(c.time != columns.UNREAD)
        self.reference = np.where(timed >= 0, timed, first)  # the row that gives the time of the match
        known = np.flatnonzero(first >= 0)
        by_time = known[np.argsort(c.time[self.reference[known]], kind="stable")]
        rank = np.empty(len(first), np.int64)
        rank[by_time] = np.arange(len(by_time))
        self.match_code, self.first = by_time, first[by_time]
        key = rank[code] * (len(c.teams) + 1) + c.team[readable]
        self.order = readable
        if (key[1:] < key[:-1]).any():
            order = np.argsort(rank[code], kind="stable")
            self.order, key = readable[order], key[order]
        if not _is_grouped(key):
            _, first_index, inverse = np.unique(key, return_index=True, return_inverse=True)
            order = np.argsort(first_index[inverse], kind="stable")
            self.order, key = self.order[order], key[order]
        rows = len(c.match)
        self.is_sorted = len(self.order) == rows and bool((self.order == np.arange(rows)).all())
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        self.slot_start = np.append(starts, len(key)).astype(np.int32)
        team_match = key[starts] // (len(c.teams) + 1)
        self.team_match = team_match.astype(np.int32)
        self.team_start = np.searchsorted(team_match, np.arange(len(by_time) + 1)).astype(np.int32)

    def _in_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the rows in slot order."""
        return values if self.is_sorted else values[self.order]

    def _first_rows(self, where: Flags | None) -> Rows:
        """The first row of each match (by code) among the rows selected by `where` (None: all); -1 if none."""
        first = np.full(len(self.cells.match_id), -1, np.int64)
        rows = (self.readable if where is None or where.all() else self.readable[where[self.readable]])[::-1]
        first[self.cells.match[rows]] = rows  # the last assignment wins
        return first

    def _slot_match(self) -> Integers:
        return np.repeat(self.team_match, np.diff(self.slot_start))

    def _check_agreement(self) -> None:
        """Check that the rows of a match agree on its time, ladder, duration and context; an empty cell agrees."""
        c = self.cells
        text: dict[str, Callable[[int], object]] = {
            "played_at": lambda row: iso_time(int(c.time[row])),
            "ladder": partial(_quoted, c.ladder, c.ladders),
            "duration": lambda row: f"{c.duration[row]:g}",
        }
        match = self.match_code[self._slot_match()]
        columns_of: dict[str, tuple[NDArray[Any], Flags]] = {
            "played_at": (c.time, c.time != columns.UNREAD),
            "ladder": (c.ladder, c.ladder >= 0),
        }
        if c.duration is not c.nothing:
            columns_of["duration"] = (c.duration, ~np.isnan(c.duration))
        for name, (code, values) in c.context.items():
            text[name] = partial(_quoted, code, values)
            columns_of[name] = (code, code >= 0)
        for name, (values, known) in columns_of.items():
            first = self._first_rows(known)[match]
            differ = self._in_order(known) & (first >= 0) & (self._in_order(values) != values[first])
            for row, other in zip(self.order[differ].tolist(), first[differ].tolist(), strict=True):
                fault = f"{name} is {text[name](row)}, an earlier row of the match has {text[name](other)}"
                self.faults.found.append(RowFault(row, f"{fault}; expected one {name} per match", "match"))

    def _match_durations(self) -> Floats:
        """Each match's duration, NaN if none of its rows has one."""
        if self.cells.duration is self.cells.nothing:
            return np.full(len(self.match_code), np.nan)
        first = self._first_rows(~np.isnan(self.cells.duration))[self.match_code]
        return np.where(first >= 0, self.cells.duration[first], np.nan)

    def _check_duplicates(self) -> None:
        c, match = self.cells, self._slot_match()
        key = match.astype(np.int64) * (len(c.players) + 1) + self._in_order(c.player)
        ordered = np.sort(key)
        if not (ordered[1:] == ordered[:-1]).any():
            return
        _, first_index, inverse = np.unique(key, return_index=True, return_inverse=True)
        repeated = np.flatnonzero((first_index[inverse] != np.arange(len(key))) & (c.player[self.order] >= 0))
        name = c.players
        self.faults.note(
            self.order[repeated],
            lambda row: f"player {name[int(c.player[row])].as_py()!r} is in this match twice; expected once",
        )

    def _check_team_counts(self) -> None:
        single = np.flatnonzero((np.diff(self.team_start) < 2) & ~np.isin(self.match_code, self.misread))
        self.faults.note(self.first[single], lambda _: "the match has only one team; expected two or more")

    def _one_per_team(self, what: str, values: Floats) -> Floats:
        """Return one value per team, NaN if none of its rows has one; rows that disagree are faults."""
        if values is self.cells.nothing:
            return np.full(len(self.team_match), np.nan)
        own = self._in_order(values)
        team = np.fmax.reduceat(own, self.slot_start[:-1]) if len(own) else own
        differ = np.flatnonzero(own < np.repeat(team, np.diff(self.slot_start)))
        fault = f"{what} differs between rows of the team; expected one {what} per team"
        self.faults.note(self.order[differ], lambda row: f"{what} is {values[row]:g}; {fault}", "team")
        return team

    def _places(self) -> Integers:
        """Each team's place, derived from the team scores in matches without places."""
        c = self.cells
        given = self._one_per_team("place", np.where(c.place > 0, c.place.astype(np.float64), np.nan))
        self.team_score = self._one_per_team("team_score", c.team_score)
        unplaced, unscored = np.isnan(given), np.isnan(self.team_score)
        matches = len(self.match_code)
        teams = np.diff(self.team_start)
        missing = np.bincount(self.team_match, unplaced, matches)
        some = (missing > 0) & (missing < teams)
        none = (missing == teams) & (np.bincount(self.team_match, unscored, matches) > 0)
        misread = np.isin(self.match_code, self.misread)
        self.faults.note(
            self.first[some & ~misread], lambda _: "place is missing for a team while another has one; give all or none"
        )
        self.faults.note(
            self.first[none & ~misread], lambda _: "place is missing and so is team_score; one of them is needed"
        )
        derive = np.flatnonzero((missing == teams)[self.team_match])
        if len(derive):
            given[derive] = _rank_by_score(self.team_match[derive], self.team_score[derive])
        return np.where(np.isnan(given), 0, given).astype(np.int32)

    def table(self, source: Source) -> MatchTable:
        """Return the finished table; call it only if there are no faults."""
        c, order = self.cells, self.order
        ladder = c.ladder[self.first]  # equal in all rows, as is the time
        code = self._in_order(c.player)
        if len(c.ladders) > 1:
            pairs, code = np.unique(self._in_order(c.ladder) * np.int64(len(c.players)) + code, return_inverse=True)
            player_ladder, name = np.divmod(pairs, len(c.players))
        else:
            name, player_ladder = np.arange(len(c.players)), np.zeros(len(c.players), np.int64)
        seconds = self._in_order(c.seconds)
        history = History(
            Columns(
                time=c.time[self.reference[self.match_code]],
                team_start=self.team_start,
                place=self.place,
                team_score=self.team_score,
                slot_start=self.slot_start,
                player=code.astype(np.int32),
                score=self._in_order(c.score),
                seconds=seconds,
                performance=self._in_order(c.performance),
                quit=self._in_order(c.quit),
                duration=fill_duration(self._match_durations(), seconds, self.slot_start[self.team_start]),
                keep=self._in_order(c.keep),
                pool=np.zeros(len(ladder), np.int32),
                ladder=ladder_indices(ladder),
                entry=entries(self._in_order(c.entry)),
            )
        )
        return MatchTable(
            history=history,
            match_id=c.match_id.take(pa.array(self.match_code)),
            ladder=ladder,
            ladders=tuple(c.ladders.to_pylist()),
            team=pa.DictionaryArray.from_arrays(pa.array(c.team[order[self.slot_start[:-1]]]), c.teams),
            player=c.players.take(pa.array(name)),
            player_ladder=player_ladder.astype(np.int32),
            row=self.rows[self.first],
            source=source,
        ).with_context({name: self._one_per_match(*cells) for name, cells in c.context.items()})

    def _one_per_match(self, code: Integers, values: pa.Array) -> pa.ChunkedArray:
        """The text of each match, null if all its cells are empty."""
        first = self._first_rows(code >= 0)[self.match_code]
        return pa.chunked_array([values.take(pa.array(code[first], mask=first < 0))])


def _quoted(code: Integers, values: pa.Array, row: int) -> str:
    return repr(values[int(code[row])].as_py())


def _is_grouped(key: Rows) -> bool:
    """Whether equal keys are contiguous."""
    heads = key[np.flatnonzero(np.diff(key, prepend=-1))]
    if (heads[1:] > heads[:-1]).all():
        return True
    ordered = np.sort(heads)
    return not (ordered[1:] == ordered[:-1]).any()


def _rank_by_score(match: Integers, score: Floats) -> Floats:
    """Place of each team within its match, the best score first, equal scores sharing a place."""
    order = np.lexsort((-score, match))
    starts = np.diff(match[order], prepend=-1) != 0
    ordered = score[order]
    new = starts | np.append(True, ordered[1:] != ordered[:-1])[: len(order)]
    index = np.arange(len(order))
    first = np.maximum.accumulate(np.where(starts, index, 0))
    shared = np.maximum.accumulate(np.where(new, index, 0))
    places = np.empty(len(order))
    places[order] = shared - first + 1
    return places


def assemble(
    rows: pa.Table,
    source: Source,
    context: Sequence[str] = (),
    *,
    skip_bad: bool = False,
    form: TimeFormat = SECONDS,
    faults: Faults | None = None,
) -> MatchTable:
    """Build the matches of these rows, in time order, ties in row order.

    context  the columns that say what matches were played on
    form     what numbers in `played_at` mean
    faults   faults of the rows that are already known
    Raises UsageError for a column that cannot be context, InputError if a required column is missing or there are no
    rows, BadRowsError with all bad rows if there are any; with `skip_bad` their matches are left out instead and listed
    in `skipped`.
    """
    if source.broken and not rows.column_names:  # no readable row: naming missing columns would not help
        raise BadRowsError(source.name, source.broken, all_bad=True)
    context = tuple(dict.fromkeys(context))
    rows = known_columns(rows, source, context)
    if not rows.num_rows and not source.broken:
        raise InputError(f"{source.name} has no rows; expected one row per player and match")
    faults = Faults() if faults is None else faults
    count, by_name = rows.num_rows, _columns(rows)
    if not skip_bad:
        del rows  # read_cells frees each column after reading it: ten million rows take 1.5 GB
    cells = read_cells(by_name, count, faults, form, context)
    incomplete = [problem.match_id for problem in source.broken if problem.match_id is not None]
    build = TableBuild(cells, np.arange(count), faults, incomplete)
    problems, bad = _problems(build, source)
    if not problems:
        return build.table(source)
    good = np.flatnonzero(~bad[cells.match] & (cells.match >= 0))
    if not skip_bad or not len(good):
        raise BadRowsError(source.name, problems, all_bad=not len(good))
    clean = Faults()
    cells = read_cells(_columns(rows.take(pa.array(good))), len(good), clean, form, context)
    build = TableBuild(cells, good, clean)
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
