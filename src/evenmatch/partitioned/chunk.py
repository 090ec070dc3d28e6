"""Rows of whole matches -> a chunk of history, with players numbered over all chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, InputError, RowProblem
from evenmatch.history import Columns, Flags, History, Integers, ranges
from evenmatch.partitioned.names import Names
from evenmatch.partitioned.plain_rows import has_player_twice, plain_table
from evenmatch.rating import TEXT, SlotNames
from evenmatch.tables.build import assemble
from evenmatch.tables.cells import known_columns
from evenmatch.tables.partitions import Partition, opened
from evenmatch.tables.source import Source
from evenmatch.tables.table import COLUMNS, MatchTable
from evenmatch.times import FIRST_TIME, SECONDS, TimeFormat, iso_time

PIECE = 1 << 18  # rows


@dataclass(frozen=True)
class MatchRows:
    """Adjacent rows of a partition: whole matches, where the rows of a match are adjacent.

    first  index of the first row in the file
    share  of the partition read so far, including these rows
    """

    rows: pa.Table
    partition: Partition
    first: int
    share: float

    @property
    def source(self) -> Source:
        """The source of the rows, for messages."""
        lines = range(self.first + 1, self.first + len(self.rows) + 1)
        return Source(self.partition.address, f"{self.partition.name}, row", numbers=lines)

    @property
    def place(self) -> str:
        """The file and the rows checked so far, for messages about bad rows."""
        end = self.first + len(self.rows)
        return f"{self.partition.address} (rows {self.first + 1:,} to {end:,}; later rows were not checked)"


def read_rows(partition: Partition, piece: int, warned: set[tuple[str, ...]]) -> Iterator[MatchRows]:
    """Read the rows of a partition in order, about `piece` at a time. A match is never divided, however long it is.

    Raises UsageError for a missing file, InputError for one that is torn, is not Parquet, has no rows, lacks a column
    or names a ladder other than its folder's. Warns of unknown columns once per set of columns, see `warned`.
    """
    with opened(partition) as file:
        total = file.metadata.num_rows
        if (names := tuple(file.schema_arrow.names)) not in warned:
            warned.add(names)
            known_columns(file.schema_arrow.empty_table(), Source(partition.address))
        if not total:
            raise InputError(f"{partition.address} has no rows; expected one row per player and match")
        held: pa.Table | None = None  # rows of the last match so far, which may have more
        first = read = 0
        for batches in _batches(file, piece):
            rows = _without_ladder(pa.Table.from_batches(batches), partition)
            read += len(rows)
            rows = rows if held is None else pa.concat_tables([held, rows])
            ids = rows["match_id"].cast(pa.large_string())  # a category or a view has no index
            cut = pc.index(ids, ids[-1]).as_py() if ids[-1].is_valid else len(rows) - 1
            if cut:
                yield MatchRows(rows.slice(0, cut), partition, first, read / total)
            first, held = first + cut, rows.slice(cut)
        assert held is not None
        yield MatchRows(held, partition, first, 1.0)


def _batches(file: Any, piece: int) -> Iterator[list[pa.RecordBatch]]:  # noqa: ANN401 - pyarrow has no types
    held: list[pa.RecordBatch] = []
    count = 0
    columns = [name for name in file.schema_arrow.names if name in COLUMNS]
    for batch in file.iter_batches(piece, columns=columns, use_threads=False):
        held.append(batch)
        count += len(batch)
        if count >= piece:
            yield held
            held, count = [], 0
    if held:
        yield held


def _without_ladder(rows: pa.Table, partition: Partition) -> pa.Table:
    """Drop a column that repeats the ladder of the folder."""
    if not partition.ladder or "ladder" not in rows.column_names:
        return rows
    others = [name for name in pc.unique(rows["ladder"]).to_pylist() if str(name) != partition.ladder]
    if others:
        raise InputError(
            f"{partition.address}: a row has the ladder {others[0]!r}, the folder is of {partition.ladder!r}; "
            "expected the same"
        )
    return rows.drop_columns(["ladder"])


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole matches of one partition: M matches, T teams, S slots.

    history   with players and ladders numbered over all chunks
    match_id  text (M,);  team, player: dictionary-encoded text (T,), (S,)
    ladder    int32 (M,)  number of each match's ladder
    first     int64 (M,)  first row of each match, within `rows`
    players, ladders  the players and ladders found so far
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
        """Keep only these matches; the numbers of players and ladders stay."""
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


class Piece(NamedTuple):
    """Rows, their matches (None if all are bad), and the problems of the bad ones."""

    rows: MatchRows
    table: MatchTable | None
    problems: tuple[RowProblem, ...]


class ChunkBuilder:
    """Builds the chunks of one stream in order, and numbers its players and ladders."""

    def __init__(
        self, ladder: str = "", *, pool: bool = False, skip_bad: bool = False, form: TimeFormat = SECONDS
    ) -> None:
        """Start without players. ladder: of all matches, if not empty; pool: a player is the same on all ladders."""
        self.names = Names()
        self._names_by_ladder = Names()  # number the players under each ladder, where ladders are pooled
        self.pool, self.skip_bad, self.form = pool, skip_bad, form
        self.ladders: dict[str, int] = {ladder: 0} if ladder else {}
        self._of_folder = bool(ladder)
        self._last_time = FIRST_TIME

    def assemble(self, rows: MatchRows) -> Piece:
        """Group and check some rows. Raises BadRowsError with the bad rows of this piece."""
        table = plain_table(rows.rows, rows.source, self.form)
        return self._assemble(rows) if table is None else Piece(rows, table, ())

    def _assemble(self, rows: MatchRows) -> Piece:
        try:
            table = assemble(rows.rows, rows.source, skip_bad=self.skip_bad, form=self.form)
        except BadRowsError as error:
            if not self.skip_bad:
                raise BadRowsError(rows.place, error.problems) from None
            return Piece(rows, None, error.problems)
        return Piece(rows, table, table.skipped)

    def build(self, piece: Piece) -> Chunk:
        """Build the chunk of the next piece. Matches that are left out are listed in its `skipped`.

        Raises InputError if rows are not grouped or not in time order.
        """
        rows, table, problems = piece
        if table is None:
            return self._nothing(rows, problems)
        if self._of_folder:
            local = np.zeros(len(table.ladders), np.int32)
        else:
            local = np.array([self.ladders.setdefault(name, len(self.ladders)) for name in table.ladders], np.int32)
        owner = local[table.player_ladder]
        number = self.names.number(table.player, np.zeros_like(owner) if self.pool else owner)
        if has_player_twice(table.history.match_slots, number[table.history.columns.player]):
            return self.build(self._assemble(rows))  # which says so
        self._check_order(rows, table)
        columns, ladder = table.history.columns, local[table.ladder]
        numbered = columns._replace(player=number[columns.player], ladder=ladder + np.int32(1))
        if self.pool:
            offset = self._names_by_ladder.number(table.player, owner)[columns.player]
            numbered = numbered._replace(context=numbered.ladder, offset=offset)
        return Chunk(
            history=History(numbered),
            match_id=table.match_id,
            team=table.team,
            player=pa.DictionaryArray.from_arrays(pa.array(columns.player), table.player),
            ladder=ladder,
            first=table.row,
            rows=rows,
            players=self.names.count,
            ladders=tuple(self.ladders),
            skipped=table.skipped,
            skipped_matches=table.skipped_matches,
        )

    def _check_order(self, rows: MatchRows, table: MatchTable) -> None:
        """Check that the rows of each match are adjacent and that matches are in time order."""
        time, row = table.history.columns.time, table.row
        back = np.flatnonzero(np.diff(row) < 0)
        if len(back) or time[0] < self._last_time:
            late = int(back[0]) if len(back) else 0
            earlier = int(time[late + 1]) if len(back) else self._last_time
            raise InputError(
                f"{rows.partition.address}, row {rows.first + row[late] + 1}: played_at is "
                f"{iso_time(int(time[late]))}, the match before it has {iso_time(earlier)}; the partitions of "
                "a ladder, sorted by name, and the matches in them must be in time order"
            )
        apart = np.flatnonzero(np.diff(row) < np.diff(table.history.match_slots[:-1]))
        if len(apart):
            name, begin = table.match_id[int(apart[0])].as_py(), rows.first + int(row[apart[0]]) + 1
            raise InputError(
                f"{rows.partition.address}, row {begin}: the rows of match {name!r} have other matches between them; "
                "expected the rows of a match to be adjacent"
            )
        self._last_time = int(time[-1])

    def _nothing(self, rows: MatchRows, problems: tuple[RowProblem, ...]) -> Chunk:
        """A chunk whose matches are all bad."""
        none = {name: np.zeros(1 if name.endswith("_start") else 0, int) for name in Columns._fields}
        left_out = len({problem.match_id for problem in problems if problem.match_id is not None})
        texts, numbers = pa.array([], TEXT), np.empty(0, np.int32)
        first, ladders = np.empty(0, np.int64), tuple(self.ladders)
        names = (texts, texts, texts, numbers, first, rows, self.names.count, ladders)
        return Chunk(History(Columns(**none)), *names, problems, left_out)
