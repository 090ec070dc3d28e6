"""Rows of whole matches -> a chunk of history, with players numbered over all chunks.

Rows that are plain (grouped, complete, of the usual types) go through kernels; all others through `tables.assemble`,
which reports every bad row. Both give the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, InputError, RowProblem
from evenmatch.history import Columns, Flags, Floats, History, Integers, fill_duration, ranges
from evenmatch.partitioned import shape
from evenmatch.partitioned.names import Names
from evenmatch.partitioned.piece_cells import PieceCells, one_dictionary
from evenmatch.partitioned.rows import MatchRows
from evenmatch.partitioned.text import run_starts, text_of
from evenmatch.rating import TEXT, SlotNames
from evenmatch.tables import columns
from evenmatch.tables.assemble import assemble
from evenmatch.tables.cells import or_default
from evenmatch.tables.columns import Faults
from evenmatch.tables.table import MatchTable
from evenmatch.times import FIRST_TIME, SECONDS, TimeFormat, iso_time


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole matches of one partition: M matches, T teams, S slots.

    history   its players and ladders are numbered over all chunks
    match_id  text (M,);  team: text (T,);  player: text (S,)
    ladder    int32 (M,)  number of each match's ladder
    first     int64 (M,)  first row of each match, within `rows`
    players, ladders  how many there are so far
    skipped   why matches of these rows are left out, and `skipped_matches` how many
    """

    history: History
    match_id: pa.Array
    team: pa.Array
    player: pa.Array
    ladder: Integers
    first: NDArray[np.int64]
    rows: MatchRows
    players: int
    ladders: tuple[str, ...]
    skipped: tuple[RowProblem, ...] = ()
    skipped_matches: int = 0

    def __len__(self) -> int:
        return len(self.history)

    def take(self, chosen: Flags) -> Chunk:
        """Only these matches; the numbers of players and ladders stay."""
        if chosen.all():
            return self
        matches = np.flatnonzero(chosen)
        teams = ranges(self.history.columns.team_start, matches)
        slots = ranges(self.history.columns.slot_start, teams)
        return replace(
            self,
            history=self.history.take(matches),
            match_id=self.match_id.take(pa.array(matches)),
            team=self.team.take(pa.array(teams)),
            player=self.player.take(pa.array(slots)),
            ladder=self.ladder[matches],
            first=self.first[matches],
        )

    def names(self) -> SlotNames:
        """The names of the chunk's matches, for the journal."""
        ladder = pa.array(self.ladders, TEXT).take(pa.array(self.ladder))
        return SlotNames(self.match_id, ladder, self.player.cast(TEXT), self.team)


class ChunkBuilder:
    """Builds the chunks of one stream, in order; keeps the numbers of players and ladders, and the last time."""

    def __init__(
        self,
        names_file: Path,
        ladder: str = "",
        *,
        pool: bool = False,
        skip_bad: bool = False,
        form: TimeFormat = SECONDS,
    ) -> None:
        """Begin. ladder: of all matches, if not empty; pool: players are the same on all ladders."""
        self.names = Names(names_file)
        self.pool, self.skip_bad, self.form = pool, skip_bad, form
        self.ladders: dict[str, int] = {ladder: 0} if ladder else {}
        self._of_folder = bool(ladder)
        self._last_time = FIRST_TIME
        self._last_match = ""

    def build(self, rows: MatchRows) -> Chunk:
        """The chunk of these rows, without matches that are left out (see `skipped`).

        Raises BadRowsError with the bad rows of this chunk, InputError where rows are not grouped or out of order.
        """
        chunk = self._plain(rows)
        if chunk is None:
            chunk = self._general(rows)
        if len(chunk):
            self._check_order(chunk)
        return chunk

    def _check_order(self, chunk: Chunk) -> None:
        time = chunk.history.columns.time
        if time[0] < self._last_time:
            self._out_of_order(chunk.rows, int(chunk.first[0]), int(time[0]), self._last_time)
        self._last_time = int(time[-1])

    @staticmethod
    def _out_of_order(rows: MatchRows, row: int, time: int, earlier: int) -> None:
        raise InputError(
            f"{rows.partition.address}, row {rows.first + row + 1}: played_at is {iso_time(time)}, the match "
            f"before it has {iso_time(earlier)}; partitions of a ladder must be in order of time when sorted by "
            "name, and the matches in them as well"
        )

    def _ladder_codes(self, local: Integers, names: pa.Array) -> Integers:
        """Numbers over all chunks of ladders that are numbered within this one."""
        code = [self.ladders.setdefault(name, len(self.ladders)) for name in names.to_pylist()]
        return np.array(code, np.int32)[local]

    def _owner(self, ladder: Integers) -> Integers:
        """The ladder that a player's name belongs to, for each row or for all of them."""
        return np.zeros(1, np.int32) if self.pool or len(self.ladders) == 1 else ladder

    def _general(self, rows: MatchRows) -> Chunk:
        try:
            table = assemble(rows.rows, rows.source, skip_bad=self.skip_bad, form=self.form)
        except BadRowsError as error:
            if self.skip_bad:
                return self._nothing(rows, error.problems)
            end = rows.first + len(rows.rows)
            raise BadRowsError(
                f"{rows.partition.address} (rows {rows.first + 1:,} to {end:,}; what follows was not checked)",
                error.problems,
            ) from None
        self._check_grouping(rows, table)
        if self._of_folder:
            local = np.zeros(len(table.ladders), np.int32)
        else:
            local = self._ladder_codes(np.arange(len(table.ladders), dtype=np.int32), pa.array(table.ladders, TEXT))
        text, held = text_of(table.player)
        number = self.names.number(text, held, self._owner(local[table.player_ladder]))
        assert number is not None, "assemble reports empty names"
        c, ladder = table.history.columns, local[table.ladder]
        history = History(c._replace(player=number[c.player], ladder=ladder + np.int32(1)))
        return Chunk(
            history=history,
            match_id=table.match_id,
            team=table.team,
            player=table.player.take(pa.array(c.player)),
            ladder=ladder,
            first=table.row,
            rows=rows,
            players=self.names.count,
            ladders=tuple(self.ladders),
            skipped=table.skipped,
            skipped_matches=table.skipped_matches,
        )

    def _nothing(self, rows: MatchRows, problems: tuple[RowProblem, ...]) -> Chunk:
        none = {name: np.zeros(1 if name.endswith("_start") else 0, int) for name in Columns._fields}
        left_out = len({problem.match_id for problem in problems if problem.match_id is not None})
        texts = pa.array([], TEXT)
        empty, ladders = np.empty(0, np.int64), tuple(self.ladders)
        numbers, players = np.empty(0, np.int32), self.names.count
        nothing = History(Columns(**none))
        return Chunk(nothing, texts, texts, texts, numbers, empty, rows, players, ladders, problems, left_out)

    def _check_grouping(self, rows: MatchRows, table: MatchTable) -> None:
        """Check that rows of a match are adjacent and matches in order of time, which `assemble` does not ask for."""
        ids = rows.rows["match_id"].cast(TEXT).fill_null("")
        text, held = text_of(ids)
        starts = np.empty(len(text), np.int64)
        starts = starts[: run_starts(held, starts)]
        heads = text.take(pa.array(starts)).dictionary_encode()
        again = np.flatnonzero(np.diff(heads.indices.to_numpy(), prepend=-1) < 1)  # numbers of new ids ascend
        if len(again):
            number = heads.indices[int(again[0])].as_py()
            name, row = heads.dictionary[number].as_py(), int(starts[again[0]])
            if name:
                raise InputError(
                    f"{rows.partition.address}, row {rows.first + row + 1}: match {name!r} has rows before that are "
                    "not adjacent to this one; expected the rows of a match one after the other"
                )
        back = np.flatnonzero(np.diff(table.row) < 0)
        if len(back):
            time, late = table.history.columns.time, int(back[0])
            self._out_of_order(rows, int(table.row[late]), int(time[late]), int(time[late + 1]))

    def _plain(self, rows: MatchRows) -> Chunk | None:
        """The chunk of rows in which everything is plain; None if anything is not, for `_general` to say what."""
        cells, faults = PieceCells(rows.rows), Faults()
        if not cells.complete or "place" not in cells.held:
            return None
        match_row, ids = cells.matches()
        label = cells.team_labels(self.names)
        time = columns.times(cells.held["played_at"], faults, self.form)
        place = cells.places(faults)
        if match_row is None or label is None or not shape.has_one_time(match_row, time):
            return None
        teams = _teams(match_row, label, place)
        ladder = self._plain_ladders(cells, match_row)
        if teams is None or ladder is None:
            return None
        numbers = cells.numbers(faults)
        seconds, match_slots = numbers["seconds"], match_row.astype(np.int32)
        team_score = _per_group(teams.slot_start, numbers["team_score"], cells.nothing)
        duration = _per_group(match_slots, numbers["duration"], cells.nothing)
        quit_, keep = cells.flags("quit", faults), cells.flags("keep", faults)
        if faults.found or team_score is None or duration is None:
            return None
        names, player = self._numbered(cells.held["player"], self._owner(ladder))
        if player is None or shape.has_player_twice(match_row, player):
            return None
        first = match_row[:-1]
        own = ladder[first] if len(ladder) > 1 else np.zeros(len(first), np.int32)
        history = History(
            Columns(
                time=time[first],
                team_start=teams.team_start,
                place=teams.place,
                team_score=team_score,
                slot_start=teams.slot_start,
                player=player,
                score=numbers["score"],
                seconds=seconds,
                performance=numbers["performance"],
                quit=quit_,
                duration=duration if seconds is cells.nothing else fill_duration(duration, seconds, match_slots),
                keep=keep,
                pool=np.zeros(len(first), np.int32),
                ladder=own + np.int32(1),
            )
        )
        team = cells.held["team"].take(pa.array(teams.slot_start[:-1])).combine_chunks()
        return Chunk(history, ids, team, names, own, first, rows, self.names.count, tuple(self.ladders))

    def _numbered(self, column: pa.ChunkedArray, owner: Integers) -> tuple[pa.Array, Integers | None]:
        """The names of a column as one array, and their numbers; of a dictionary each name is looked up once."""
        if not pa.types.is_dictionary(column.type) or len(owner) > 1:
            names, text = text_of(column)
            return names, self.names.number(names, text, owner)
        encoded = one_dictionary(column)
        used = pc.unique(encoded.indices)  # in order of first appearance
        names, text = text_of(encoded.dictionary.take(used))
        numbers = None if names.null_count else self.names.number(names, text, owner)
        if numbers is None:
            return encoded, None
        number = np.empty(len(encoded.dictionary), np.int32)
        number[used.to_numpy()] = numbers
        return encoded, number[encoded.indices.to_numpy()]

    def _plain_ladders(self, cells: PieceCells, match_row: NDArray[np.int64]) -> Integers | None:
        """The ladder of each row, or of all of them; None if rows of a match differ or it is not text."""
        if "ladder" not in cells.held:
            self.ladders.setdefault("default", 0)
            return np.full(1, 0 if self._of_folder else self.ladders["default"], np.int32)
        faults = Faults()
        local, names = columns.names(or_default(cells.held["ladder"]), "ladder", faults)
        if faults.found or not shape.has_one_label(match_row, local):
            return None
        return self._ladder_codes(local, names)


class _Teams(NamedTuple):
    """First team of each match, first slot of each team (see history.Columns), place of each team."""

    team_start: Integers
    slot_start: Integers
    place: Integers


def _teams(match_row: NDArray[np.int64], label: NDArray[np.int64], place: Integers) -> _Teams | None:
    """The teams of the matches; None if they are not plain."""
    team_start, slot_start = np.empty(len(match_row), np.int32), np.empty(len(label) + 1, np.int32)
    count = shape.find_teams(match_row, label, team_start, slot_start)
    slot_start, team_place = slot_start[: count + 1].copy(), np.empty(max(0, count), np.int32)
    is_plain = count > 0 and shape.places_of_teams(slot_start, place, team_place)
    return _Teams(team_start, slot_start, team_place) if is_plain else None


def _per_group(start: Integers, values: Floats, nothing: Floats) -> Floats | None:
    """The number of each team or match from its rows; None if they differ."""
    out = np.full(len(start) - 1, np.nan)
    return out if values is nothing or shape.first_of_each(start, values, out) else None
