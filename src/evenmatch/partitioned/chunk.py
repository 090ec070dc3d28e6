"""Rows of whole matches -> a chunk of history, with players numbered over all chunks.

Rows that are plain (grouped, complete, of the usual types) go through kernels; all others through `tables.build`,
which reports every bad row. Both give the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.errors import BadRowsError, InputError, RowProblem
from evenmatch.history import Columns, Flags, Floats, History, Integers, Times, fill_duration, ranges
from evenmatch.partitioned.names import Names, compiled, hash_texts, run_starts, text_of
from evenmatch.rating import TEXT, SlotNames
from evenmatch.tables import columns
from evenmatch.tables.build import assemble
from evenmatch.tables.cells import FLAGS, NUMBERS, known_columns, or_default, read_number
from evenmatch.tables.columns import Faults
from evenmatch.tables.partitions import Partition, columns_to_read, opened
from evenmatch.tables.source import Source
from evenmatch.tables.table import MatchTable
from evenmatch.times import FIRST_TIME, SECONDS, TimeFormat, iso_time


class PieceCells:
    """The columns of a piece of rows, as arrays."""

    def __init__(self, rows: pa.Table) -> None:
        self.held: Mapping[str, pa.ChunkedArray] = dict(zip(rows.column_names, rows.columns, strict=True))
        self.count = len(rows)
        self.nothing = np.full(self.count, np.nan)

    @property
    def complete(self) -> bool:
        """Whether the needed columns have no empty cell and are of types that the kernels read."""
        needed = [self.held[name] for name in ("match_id", "played_at", "team", "player")]
        texts = [column for column in needed if column is not self.held["played_at"]]
        return all(column.null_count == 0 for column in needed) and all(_is_name(column.type) for column in texts)

    def matches(self) -> tuple[NDArray[np.int64] | None, pa.Array]:
        """The first row of each match, then the number of rows; and the matches' ids. None if one is empty."""
        text, held = text_of(self.held["match_id"])
        starts = np.empty(self.count + 1, np.int64)
        count = run_starts(held, starts)
        starts[count] = self.count
        starts = starts[: count + 1].copy()
        heads = text.take(pa.array(starts[:-1]))
        if (held.offsets[starts[:-1] + 1] == held.offsets[starts[:-1]]).any():
            return None, heads
        return starts, heads

    def team_labels(self, names: Names) -> NDArray[np.int64] | None:
        """A number for each row's team, equal where the labels are; None if a label is empty."""
        column = self.held["team"]
        if pa.types.is_dictionary(column.type):
            encoded = one_dictionary(column)
            if "" in encoded.dictionary.to_pylist() or len(pc.unique(encoded.dictionary)) < len(encoded.dictionary):
                return None
            return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, held = text_of(column)
        if (held.offsets[1:] == held.offsets[:-1]).any():
            return None
        hashes = np.empty(self.count, np.uint64)
        hash_texts(held, names.key, names.key2, hashes)
        return hashes.view(np.int64)

    def places(self, faults: Faults) -> Integers:
        """The place of each row, 0 for an empty cell."""
        column = self.held["place"]
        if column.type == pa.int32() and not column.null_count and pc.min(column).as_py() > 0:
            values: Integers = column.to_numpy()
            return values
        return columns.places(column, faults)

    def numbers(self, faults: Faults) -> dict[str, Floats]:
        """The optional columns of numbers; `nothing` for those that are absent."""
        return {
            name: read_number(self.held[name], name, faults) if name in self.held else self.nothing for name in NUMBERS
        }

    def flags(self, name: str, faults: Faults) -> Flags:
        """A column of flags."""
        if name not in self.held:
            return np.full(self.count, FLAGS[name])
        return columns.flags(self.held[name], name, FLAGS[name], faults)


def one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column of several dictionaries as one array with one."""
    combined = column.unify_dictionaries().combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _is_name(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))


Rows = NDArray[np.int64]
LARGEST = 256  # slots of a match whose pairs are compared here


@compiled
def find_teams(match_row: Rows, label: NDArray[np.int64], team_start: Integers, slot_start: Integers) -> int:
    """Find the teams: runs of equal labels in a match. Returns their number.

    match_row  int64 (M + 1,)  first row of each match, then the number of rows;  label  int64 (S,)
    team_start int32 (M + 1,) and slot_start (S + 1,) are written
    -1 if a match has one team only, more than LARGEST, or a team whose rows are apart.
    """
    teams = 0
    for m in range(len(match_row) - 1):
        first = teams
        team_start[m] = first
        for row in range(match_row[m], match_row[m + 1]):
            if row > match_row[m] and label[row] == label[row - 1]:
                continue
            if teams - first >= LARGEST:
                return -1
            for other in range(first, teams):
                if label[slot_start[other]] == label[row]:
                    return -1
            slot_start[teams] = row
            teams += 1
        if teams - first < 2:
            return -1
    team_start[len(match_row) - 1] = teams
    slot_start[teams] = match_row[len(match_row) - 1]
    return teams


@compiled
def has_one_time(match_row: Rows, time: Times) -> bool:
    """Whether the rows of each match have one time, and no match is earlier than the one before it."""
    for m in range(len(match_row) - 1):
        first = match_row[m]
        if m > 0 and time[first] < time[first - 1]:
            return False
        for row in range(first + 1, match_row[m + 1]):
            if time[row] != time[first]:
                return False
    return True


@compiled
def has_one_label(match_row: Rows, label: Integers) -> bool:
    """Whether the rows of each match have one label."""
    for m in range(len(match_row) - 1):
        for row in range(match_row[m] + 1, match_row[m + 1]):
            if label[row] != label[row - 1]:
                return False
    return True


@compiled
def has_player_twice(match_row: Rows, player: Integers) -> bool:
    """Whether a player is in a match twice, or a match has more than LARGEST slots."""
    for m in range(len(match_row) - 1):
        if match_row[m + 1] - match_row[m] > LARGEST:
            return True
        for row in range(match_row[m], match_row[m + 1]):
            for other in range(match_row[m], row):
                if player[other] == player[row]:
                    return True
    return False


@compiled
def first_of_each(start: Integers, values: Floats, out: Floats) -> bool:
    """Write the number of each group of rows, NaN where none of its rows has one; False if rows of a group differ."""
    for group in range(len(out)):
        out[group] = np.nan
        for row in range(start[group], start[group + 1]):
            if not np.isnan(values[row]):
                if np.isnan(out[group]):
                    out[group] = values[row]
                elif out[group] != values[row]:
                    return False
    return True


@compiled
def places_of_teams(slot_start: Integers, place: Integers, out: Integers) -> bool:
    """Write the place of each team; False if its rows differ or have none (below 1)."""
    for team in range(len(out)):
        first = slot_start[team]
        out[team] = place[first]
        for row in range(first, slot_start[team + 1]):
            if place[row] != place[first] or place[row] < 1:
                return False
    return True


@compiled
def count_activity(
    match_slots: Integers, time: Times, player: Integers, quit_: Flags, keep: Flags, seen: NDArray[np.void]
) -> None:
    """Add the matches to the records of their players (see activity.SEEN)."""
    for m in range(len(time)):
        for slot in range(match_slots[m], match_slots[m + 1]):
            own = seen[player[slot]]
            own.appearances += 1
            if keep[slot]:
                own.matches += 1
                own.last_played = time[m]
                if not quit_[slot]:
                    own.completed += 1
                    own.last_completed = time[m]


@compiled
def count_before(match_slots: Integers, player: Integers, played: Rows, fewest: Rows) -> None:
    """Write the number of earlier matches of the least experienced player of each match.

    played  int64 (P,)  matches of each player so far; counted on
    """
    for m in range(len(fewest)):
        least = played[player[match_slots[m]]]
        for slot in range(match_slots[m], match_slots[m + 1]):
            least = min(least, played[player[slot]])
            played[player[slot]] += 1
        fewest[m] = least


PIECE = 1 << 20  # rows; row groups are read whole up to twice as many


@dataclass(frozen=True)
class MatchRows:
    """Adjacent rows of a partition: whole matches, where the rows of a match are adjacent.

    first  the row of the file, counted from 0, that is the first here
    share  of the partition that has been read with them
    """

    rows: pa.Table
    partition: Partition
    first: int
    share: float

    @property
    def source(self) -> Source:
        """The rows' place in the file, for messages."""
        lines = range(self.first + 1, self.first + len(self.rows) + 1)
        return Source(self.partition.address, f"{self.partition.name}, row", numbers=lines)

    def slice(self, start: int, count: int | None = None) -> MatchRows:
        """Some of the rows."""
        return MatchRows(self.rows.slice(start, count), self.partition, self.first + start, self.share)


class PartitionReader:
    """Reads partitions one after the other; warns of unknown columns once."""

    def __init__(self, piece: int = PIECE) -> None:
        self.piece = piece
        self._known: set[tuple[str, ...]] = set()

    def read(self, partition: Partition) -> Iterator[MatchRows]:
        """The rows of a partition in order. A match is never divided, however long it is.

        Raises UsageError for a missing file, InputError for one that is torn, is not Parquet or lacks a column.
        """
        held: list[MatchRows] = []  # the last match so far, which the next piece may continue
        for piece in self._pieces(partition):
            rest = piece
            if held:
                more = _run_length(piece.rows["match_id"], held[0].rows["match_id"][0])
                if more:
                    held.append(piece.slice(0, more))
                if more == len(piece.rows):
                    continue
                yield _joined(held)
                rest = piece.slice(more)
            cut = len(rest.rows) - _run_length(rest.rows["match_id"], rest.rows["match_id"][-1], backwards=True)
            if cut:
                yield rest.slice(0, cut)
            held = [rest.slice(cut)]
        if held:
            yield _joined(held)

    def _pieces(self, partition: Partition) -> Iterator[MatchRows]:
        with opened(partition) as file:
            names = tuple(file.schema_arrow.names)
            if names not in self._known:
                known_columns(file.schema_arrow.empty_table(), Source(partition.address))
                self._known.add(names)
            chosen = columns_to_read(names)
            first, total = 0, max(1, file.metadata.num_rows)
            for rows in _row_groups(file, self.piece, chosen):
                if len(rows):
                    yield MatchRows(_checked(rows, partition), partition, first, (first + len(rows)) / total)
                first += len(rows)
            if first == 0:
                raise InputError(f"{partition.address} has no rows; expected one row per player and match")


def _row_groups(file: Any, piece: int, columns: list[str] | None) -> Iterator[pa.Table]:  # noqa: ANN401 - pyarrow has no types
    """The rows of the file: a large row group in parts, small ones together."""
    together: list[int] = []
    sizes = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
    held = 0
    for index, size in enumerate(sizes):
        if together and held + size > piece:
            yield file.read_row_groups(together, columns=columns, use_threads=False)
            together, held = [], 0
        if size > 2 * piece:
            for batch in file.iter_batches(piece, row_groups=[index], columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch])
        else:
            together.append(index)
            held += size
    if together:
        yield file.read_row_groups(together, columns=columns, use_threads=False)


def _checked(rows: pa.Table, partition: Partition) -> pa.Table:
    """The rows without a column that repeats the ladder of the folder."""
    if not partition.ladder or "ladder" not in rows.column_names:
        return rows
    others = [name for name in pc.unique(rows["ladder"]).to_pylist() if str(name) != partition.ladder]
    if others:
        raise InputError(
            f"{partition.address}: a row has the ladder {others[0]!r}, the folder is of {partition.ladder!r}; "
            "expected the same"
        )
    return rows.drop_columns(["ladder"])


def _run_length(ids: pa.ChunkedArray, wanted: pa.Scalar, *, backwards: bool = False) -> int:
    """The number of rows at the begin (or at the end) of the column that are equal to `wanted`; empty ones are not."""
    size, window = len(ids), 64
    if not wanted.is_valid:
        return int(backwards)
    while True:
        part = ids.slice(max(0, size - window)) if backwards else ids.slice(0, window)
        equal = pc.fill_null(pc.equal(part, wanted), False).to_pylist()
        run = next((index for index, same in enumerate(reversed(equal) if backwards else equal) if not same), None)
        if run is not None or window >= size:
            return len(equal) if run is None else run
        window *= 8


def _joined(parts: list[MatchRows]) -> MatchRows:
    rows = pa.concat_tables([part.rows for part in parts]) if len(parts) > 1 else parts[0].rows
    return MatchRows(rows, parts[0].partition, parts[0].first, parts[-1].share)


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
        if match_row is None or label is None or not has_one_time(match_row, time):
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
        if player is None or has_player_twice(match_row, player):
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
        if faults.found or not has_one_label(match_row, local):
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
    count = find_teams(match_row, label, team_start, slot_start)
    slot_start, team_place = slot_start[: count + 1].copy(), np.empty(max(0, count), np.int32)
    is_plain = count > 0 and places_of_teams(slot_start, place, team_place)
    return _Teams(team_start, slot_start, team_place) if is_plain else None


def _per_group(start: Integers, values: Floats, nothing: Floats) -> Floats | None:
    """The number of each team or match from its rows; None if they differ."""
    out = np.full(len(start) - 1, np.nan)
    return out if values is nothing or first_of_each(start, values, out) else None
