"""Rows of the tidy long form -> MatchTable: group, order, derive, and find every bad row."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, EvenmatchWarning, InputError, Problem
from evenmatch.history import Columns, Flags, Floats, History, Integers, Times, fill_duration
from evenmatch.tables import columns
from evenmatch.tables.columns import Faults, datetime_text
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS, NEEDED, MatchTable

Rows = NDArray[np.int64]


@dataclass
class Cells:
    """The typed cells of N rows; -1, 0 or NaN where empty."""

    match: Integers
    match_id: pa.Array
    time: Times
    ladder: Integers
    ladders: pa.Array
    team: Integers
    teams: pa.Array
    player: Integers
    players: pa.Array
    place: Integers
    team_score: Floats
    score: Floats
    seconds: Floats
    performance: Floats
    duration: Floats
    quit: Flags
    keep: Flags


def assemble(rows: pa.Table, source: Source, *, skip_bad: bool = False) -> MatchTable:
    """The matches in these rows, in order of time, ties in the order of the rows.

    Raises InputError where a needed column is missing or there are no rows, BadRowsError (with all of them) where a row
    is bad, unless `skip_bad`: then their matches are left out, and `skipped` says which and why.
    """
    _check_columns(rows.column_names, source)
    if not rows.num_rows and not source.broken:
        raise InputError(f"{source.name} has no rows; accepted is one row per player and match")
    faults = Faults()
    cells = read_cells(rows, faults)
    kept = np.arange(rows.num_rows)
    build = Build(cells, kept, faults)
    problems, bad = _problems(build, source)
    if not problems:
        return build.table(source)
    if not skip_bad:
        raise BadRowsError(source.name, problems)
    good = np.flatnonzero(~bad[cells.match] & (cells.match >= 0))
    if not len(good):
        raise BadRowsError(source.name, problems)
    clean = Faults()
    build = Build(read_cells(rows.take(pa.array(good)), clean), good, clean)
    left_out = len({problem.match_id for problem in problems if problem.match_id is not None})
    return replace(build.table(source), skipped=tuple(problems), skipped_matches=left_out)


def read_cells(rows: pa.Table, faults: Faults) -> Cells:
    """Every known column of the table, typed; what is absent is empty."""
    nan = np.full(rows.num_rows, np.nan)
    present = set(rows.column_names)

    def number(what: str, low: float = -math.inf, high: float = math.inf, *, nan_is_empty: bool = True) -> Floats:
        if what not in present:
            return nan
        return columns.numbers(rows[what], what, low, high, faults, nan_is_empty=nan_is_empty)

    def flag(what: str, default: bool) -> Flags:
        if what not in present:
            return np.full(rows.num_rows, default)
        return columns.flags(rows[what], what, default, faults)

    match, match_id = columns.names(rows["match_id"], "match_id", faults)
    team, teams = columns.names(rows["team"], "team", faults)
    player, players = columns.names(rows["player"], "player", faults)
    if "ladder" in present:
        ladder, ladders = columns.names(rows["ladder"].cast(pa.large_string()).fill_null("default"), "ladder", faults)
    else:
        ladder, ladders = np.zeros(rows.num_rows, np.int32), pa.array(["default"])
    return Cells(
        match=match,
        match_id=match_id,
        time=columns.times(rows["played_at"], faults),
        ladder=ladder,
        ladders=ladders,
        team=team,
        teams=teams,
        player=player,
        players=players,
        place=columns.places(rows["place"], faults) if "place" in present else np.zeros(rows.num_rows, np.int32),
        team_score=number("team_score"),
        score=number("score"),
        seconds=number("seconds", 0, nan_is_empty=False),
        performance=number("performance", -1, 1),
        duration=number("duration", 0),
        quit=flag("quit", default=False),
        keep=flag("keep", default=True),
    )


class Build:
    """The rows in their final order, with the boundaries of matches and teams; notes faults as it goes."""

    def __init__(self, cells: Cells, rows: Rows, faults: Faults) -> None:
        """`rows` are where the cells stood in the file, `faults` count rows as the cells do."""
        self.cells, self.rows, self.faults = cells, rows, faults
        readable = np.flatnonzero((cells.match >= 0) & (cells.team >= 0))
        self._group(readable)
        self._check_agreement()
        self._check_twice()
        self._check_sides()
        self.place = self._places()

    def _group(self, readable: Rows) -> None:
        """Order rows by match (by time, then by first row), then by team (by its first row), then as they stood."""
        c = self.cells
        code = c.match[readable]
        first = np.full(len(c.match_id), -1, np.int64)
        first[code[::-1]] = readable[::-1]  # the last assignment wins: the first row of each match
        known = np.flatnonzero(first >= 0)
        by_time = known[np.argsort(c.time[first[known]], kind="stable")]
        rank = np.empty(len(first), np.int64)
        rank[by_time] = np.arange(len(by_time))
        self.match_code, self.first = by_time, first[by_time]
        key = rank[code] * (len(c.teams) + 1) + c.team[readable]
        order = _stable_order(rank[code])
        self.order, key = readable[order], key[order]
        if not _is_grouped(key):
            _, at, inverse = np.unique(key, return_index=True, return_inverse=True)
            order = np.argsort(at[inverse], kind="stable")
            self.order, key = self.order[order], key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        self.slot_start = np.append(starts, len(key)).astype(np.int32)
        team_match = key[starts] // (len(c.teams) + 1)
        self.team_match = team_match.astype(np.int32)
        self.team_start = np.searchsorted(team_match, np.arange(len(by_time) + 1)).astype(np.int32)

    def _slot_match(self) -> Integers:
        return np.repeat(self.team_match, np.diff(self.slot_start))

    def _check_agreement(self) -> None:
        """Rows of one match must agree on what belongs to the match."""
        c = self.cells
        first = self.first[self._slot_match()]
        shown: dict[str, Callable[[int], object]] = {
            "played_at": lambda row: datetime_text(int(c.time[row])),
            "ladder": lambda row: repr(c.ladders[int(c.ladder[row])].as_py()),
            "duration": lambda row: c.duration[row],
        }
        for what, values in (("played_at", c.time), ("ladder", c.ladder), ("duration", c.duration)):
            here, there = values[self.order], values[first]
            differ = here != there
            if what == "duration":
                differ &= ~(np.isnan(here) & np.isnan(there))
            for row, other in zip(self.order[differ].tolist(), first[differ].tolist(), strict=True):
                said = f"{what} is {shown[what](row)}, in the match's first row it is {shown[what](other)}"
                self.faults.found.append((row, f"{said}; accepted is one {what} per match"))

    def _check_twice(self) -> None:
        c, match = self.cells, self._slot_match()
        key = match.astype(np.int64) * (len(c.players) + 1) + c.player[self.order]
        ordered = np.sort(key)
        if not (np.diff(ordered) == 0).any():
            return
        _, at, inverse = np.unique(key, return_index=True, return_inverse=True)
        again = np.flatnonzero((at[inverse] != np.arange(len(key))) & (c.player[self.order] >= 0))
        name = c.players
        self.faults.note(
            self.order[again],
            lambda row: f"player {name[int(c.player[row])].as_py()!r} stands in this match twice; accepted is once",
        )

    def _check_sides(self) -> None:
        single = np.flatnonzero(np.diff(self.team_start) < 2)
        self.faults.note(self.first[single], lambda _: "the match has one team only; accepted are two or more")

    def _one_per_team(self, what: str, values: Floats) -> Floats:
        """The team's value where some of its rows name it (NaN is unnamed); rows that disagree are faults."""
        own = values[self.order]
        team = np.fmax.reduceat(own, self.slot_start[:-1]) if len(own) else own
        differ = np.flatnonzero(own < np.repeat(team, np.diff(self.slot_start)))
        said = f"{what} differs between rows of the team; accepted is one {what} per team"
        self.faults.note(self.order[differ], lambda row: f"{what} is {values[row]:g}; {said}")
        return team

    def _places(self) -> Integers:
        """Each team's place, from the teams' scores in matches where none is named."""
        c = self.cells
        told = self._one_per_team("place", np.where(c.place > 0, c.place.astype(np.float64), np.nan))
        self.team_score = self._one_per_team("team_score", c.team_score)
        unplaced, unscored = np.isnan(told), np.isnan(self.team_score)
        matches = len(self.match_code)
        teams = np.diff(self.team_start)
        missing = np.bincount(self.team_match, unplaced, matches)
        some = (missing > 0) & (missing < teams)
        none = (missing == teams) & (np.bincount(self.team_match, unscored, matches) > 0)
        misread = np.isin(self.match_code, self.cells.match[[row for row, _ in self.faults.found]])
        self.faults.note(
            self.first[some & ~misread], lambda _: "place is missing for a team while another has one; give all or none"
        )
        self.faults.note(
            self.first[none & ~misread], lambda _: "place is missing and so is team_score; one of them is needed"
        )
        derive = np.flatnonzero((missing == teams)[self.team_match])
        if len(derive):
            told[derive] = _rank_by_score(self.team_match[derive], self.team_score[derive])
        return np.where(np.isnan(told), 0, told).astype(np.int32)

    def table(self, source: Source) -> MatchTable:
        """The matches, once there are no faults."""
        c, order = self.cells, self.order
        ladder = c.ladder[self.first]
        code = c.player[order].astype(np.int64)
        if len(c.ladders) > 1:
            pairs, code = np.unique(c.ladder[order] * np.int64(len(c.players)) + code, return_inverse=True)
            player_ladder, name = np.divmod(pairs, len(c.players))
        else:
            name, player_ladder = np.arange(len(c.players)), np.zeros(len(c.players), np.int64)
        seconds = c.seconds[order]
        history = History(
            Columns(
                time=c.time[self.first],
                team_start=self.team_start,
                place=self.place,
                team_score=self.team_score,
                slot_start=self.slot_start,
                player=code.astype(np.int32),
                score=c.score[order],
                seconds=seconds,
                performance=c.performance[order],
                quit=c.quit[order],
                duration=fill_duration(c.duration[self.first], seconds, self.slot_start[self.team_start]),
                keep=c.keep[order],
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
        )


def _problems(build: Build, source: Source) -> tuple[list[Problem], Flags]:
    """Every fault with its line and match, in order of line; and which matches (by code) have one."""
    c = build.cells
    bad = np.zeros(len(c.match_id) + 1, bool)  # the last is for rows without a match
    found = sorted(build.faults.found)
    lines = source.lines([row for row, _ in found])
    problems = []
    for row, reason in found:
        code = int(c.match[row])
        bad[code] = True
        match_id = c.match_id[code].as_py() if code >= 0 else None
        problems.append(Problem(lines[row], match_id, reason, source.unit))
    by_id = {name: code for code, name in enumerate(c.match_id.to_pylist())} if source.broken else {}
    for broken in source.broken:
        code = by_id.get(broken.match_id, -1) if broken.match_id is not None else -1
        bad[code] = True
        problems.append(broken)
    problems.sort(key=lambda problem: problem.line or 0)
    return problems, bad


def _check_columns(found: list[str], source: Source) -> None:
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise InputError(f"{source.name} has the column {twice[0]!r} more than once; accepted is once")
    missing = [name for name in NEEDED if name not in found]
    if not missing and "place" not in found and "team_score" not in found:
        missing = ["place (or team_score)"]
    if missing:
        hint = ""
        if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
            hint = "; the columns must be separated by commas"
        listed = ", ".join(repr(name) for name in found[:20])
        plural = "s" if len(missing) > 1 else ""
        raise InputError(
            f"{source.name} lacks the column{plural} {', '.join(missing)}; it has {listed or 'none'}{hint}"
        )
    extra = [name for name in found if name not in COLUMNS]
    if extra:
        plural = "s" if len(extra) > 1 else ""
        listed = ", ".join(repr(name) for name in extra)
        warnings.warn(f"{source.name}: unknown column{plural} {listed} not read", EvenmatchWarning, stacklevel=4)


def _stable_order(rank: Rows) -> Rows:
    if (np.diff(rank) >= 0).all():
        return np.arange(len(rank))
    return np.argsort(rank, kind="stable")


def _is_grouped(key: Rows) -> bool:
    """Whether equal keys all stand side by side."""
    heads = key[np.flatnonzero(np.diff(key, prepend=-1))]
    ordered = np.sort(heads)
    return not (np.diff(ordered) == 0).any()


def _rank_by_score(match: Integers, score: Floats) -> Floats:
    """Place of each team within its match, the best score first, equal scores sharing a place."""
    order = np.lexsort((-score, match))
    starts = np.diff(match[order], prepend=-1) != 0
    new = starts | (np.diff(score[order], prepend=np.nan) != 0)
    at = np.arange(len(order))
    first = np.maximum.accumulate(np.where(starts, at, 0))
    shared = np.maximum.accumulate(np.where(new, at, 0))
    places = np.empty(len(order))
    places[order] = shared - first + 1
    return places
