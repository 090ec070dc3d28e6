"""Rate partitions and write ratings and journals, partitioned in the same way.

Each file is written completely or not at all, to a folder or an object store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenmatch.compile_notice import load_kernels
from evenmatch.errors import RatingRangeError, RowProblem, UsageError
from evenmatch.history import Flags, Integers, Times
from evenmatch.partitioned.chunk import Chunk
from evenmatch.partitioned.stream import Selection, Stream, chosen_partitions, stream, streams_of
from evenmatch.rating import RatedPlayers, journal_rows
from evenmatch.standings.activity import NEVER, Activity
from evenmatch.standings.division import DIVISIONS, Division
from evenmatch.systems import loop
from evenmatch.systems.compiled import cached
from evenmatch.systems.ladder_records import with_records
from evenmatch.systems.loop import Replay
from evenmatch.systems.system import Records, Rules
from evenmatch.tables.partitions import Partition, file_system, is_url
from evenmatch.whole_file import whole_file

SEEN = np.dtype(  # 32 bytes, half a line of the cache
    [(name, "i4") for name in ("appearances", "matches", "completed", "unused")]
    + [(name, "i8") for name in ("last_played", "last_completed")]
)
_ROOM = 1 << 12  # players


@cached
def count_activity(
    match_slots: Integers, time: Times, player: Integers, quit_: Flags, keep: Flags, seen: Records
) -> None:
    """Add the matches to the SEEN records of their players."""
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


class PlayerRecords:
    """The states of the players of one stream, and the records of its ladders; rates chunk by chunk."""

    def __init__(self, by: Rules) -> None:
        """Start with newcomers."""
        self.by = by
        self._state, self._seen = by.newcomers(_ROOM), _unseen(_ROOM)
        self._learned, self._offsets = by.ladders(), by.offsets(0)
        self._last = np.empty(0, np.int64)
        self._matches = np.empty(0, np.int64)
        self.ladders: tuple[str, ...] = ()

    def rate(self, chunk: Chunk, *, journal: bool) -> Replay:
        """Rate the matches of a chunk, which must be the next one.

        Raises RatingRangeError, naming player and rows, if a rating leaves the range of the system.
        """
        self._make_room(chunk)
        c = chunk.history.columns
        state = self._state[: chunk.players]
        records = (state, self._learned, self._offsets)
        result = loop.replay(self.by, chunk.history, *records, journal=journal, in_place=True)
        count_activity(chunk.history.match_slots, c.time, c.player, c.quit, c.keep, self._seen)
        self._last[chunk.ladder] = c.time  # ascending: of equal indices the last counts
        self._matches += np.bincount(chunk.ladder, minlength=len(self._matches))
        self._check_range(chunk)
        return result

    def _make_room(self, chunk: Chunk) -> None:
        self._state = with_records(self._state, chunk.players, self.by.newcomers)
        self._seen = with_records(self._seen, chunk.players, _unseen)
        self._learned = with_records(self._learned, chunk.history.ladders + 1, self.by.ladders)
        self._offsets = with_records(self._offsets, chunk.history.offsets, self.by.offsets)
        more = len(chunk.ladders) - len(self._last)
        if more:
            self._last = np.concatenate((self._last, np.zeros(more, np.int64)))
            self._matches = np.concatenate((self._matches, np.zeros(more, np.int64)))
        self.ladders = chunk.ladders

    def _check_range(self, chunk: Chunk) -> None:
        player = chunk.history.columns.player
        if np.isfinite(self._state["rating"][: chunk.players]).all():
            return
        slot = int(np.flatnonzero(~np.isfinite(self._state["rating"][player]))[0])
        low = chunk.rows.first
        raise RatingRangeError(
            f"the rating of {chunk.player[slot].as_py()!r} leaves the range of {self.by.system.name} in "
            f"{chunk.rows.partition.address}, rows {low + 1:,} to {low + len(chunk.rows.rows):,}; nothing was rated"
        )

    def matches_of(self) -> list[int]:
        """The number of rated matches on each ladder."""
        counts: list[int] = self._matches.tolist()
        return counts

    def rated(self, names: pa.Array, ladder: np.ndarray) -> RatedPlayers:
        """Return every player with a match. names, ladder: of all players, by number."""
        played = self._played(len(names))
        kept = np.flatnonzero(played)
        is_whole = len(kept) == len(names)
        seen = self._seen[: len(names)] if is_whole else self._seen[kept]
        return RatedPlayers(
            rules=self.by,
            state=self._state[: len(names)] if is_whole else self._state[kept],
            activity=Activity(
                *(seen[name].astype(np.int64) for name in ("matches", "completed", "last_played", "last_completed"))
            ),
            player=names if is_whole else names.take(pa.array(kept)),
            player_ladder=ladder if is_whole else ladder[kept],
            ladders=self.ladders,
            last=self._last,
        )

    def _played(self, count: int) -> Flags:
        played: Flags = self._seen["appearances"][:count] > 0
        return played


def _unseen(count: int) -> Records:
    return np.full(count, np.array((0, 0, 0, 0, NEVER, NEVER), SEEN))


MANIFEST = "manifest.json"


class Results:
    """The files of one result. The result is complete only once it has a manifest."""

    def __init__(self, address: str) -> None:
        """Set the folder or URL; nothing is created yet."""
        self.address = address.rstrip("/")
        self.written: list[dict[str, object]] = []

    def check_new(self) -> None:
        """Raise UsageError if the place is not empty."""
        if is_url(self.address):
            system, path = file_system(self.address)
            is_taken = _asked(self.address, lambda: system.exists(path) and bool(system.ls(path)))
        else:
            folder = Path(self.address)
            is_taken = folder.is_file() or (folder.is_dir() and any(folder.iterdir()))
        if is_taken:
            raise UsageError(f"{self.address}: is not empty; expected a new or empty folder for the results")

    @contextmanager
    def file(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file or an object to write. It appears when the block ends without an error."""
        if is_url(self.address):
            system, path = file_system(f"{self.address}/{name}")
            with self._object(system, path) as target:
                yield target
        else:
            file = Path(self.address, name)
            _make_folder(file.parent)
            with whole_file(file) as draft, draft.open("wb") as target:
                yield target

    @contextmanager
    def _object(self, system: Any, path: str) -> Iterator[IO[bytes]]:  # noqa: ANN401 - fsspec has no types
        target = _asked(self.address, lambda: system.open(path, "wb"))
        try:
            yield target
        except BaseException:
            with suppress(Exception):  # the object must not appear; the first error counts
                target.discard()
            target.closed = True
            raise
        _asked(self.address, target.close)

    @contextmanager
    def table(self, name: str) -> Iterator[TableFile]:
        """Open a Parquet file to write table by table."""
        with self.file(name) as target:
            tables = TableFile(target)
            try:
                yield tables
                tables.close()
            except pa.ArrowException as error:
                raise UsageError(f"{self.address}/{name}: cannot be written: {error}") from error
            finally:
                tables.abandon()
        self.written.append({"name": name, "rows": tables.rows})

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        if is_url(self.address):
            system, path = file_system(f"{self.address}/{name}")
            if _asked(self.address, lambda: system.exists(path)):
                _asked(self.address, lambda: system.rm(path))
        else:
            Path(self.address, name).unlink(missing_ok=True)

    def remove_written(self) -> None:
        """Remove the files of a failed run, ignoring errors."""
        for entry in self.written:
            with suppress(OSError, UsageError):
                self.remove(str(entry["name"]))

    def write_manifest(self, document: Mapping[str, object]) -> None:
        """Mark the result as complete."""
        with self.file(MANIFEST) as target:
            target.write(json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n")


class TableFile:
    """A Parquet file written table by table, all with one schema."""

    def __init__(self, target: IO[bytes]) -> None:
        """Start an empty file; the first table sets the schema."""
        self._target = target
        self._writer: Any = None
        self.rows = 0

    def write(self, table: pa.Table) -> None:
        """Add the rows of a table."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - most commands do not need Parquet

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._target, table.schema)
        self._writer.write_table(table)
        self.rows += len(table)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Close a file that will be removed."""
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):
                self._writer.close()
            self._writer.is_open = False  # otherwise it is closed again when it is collected


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be created: {error.strerror}") from error


def _asked(address: str, ask: Any) -> Any:  # noqa: ANN401 - whatever fsspec answers
    try:
        return ask()
    except Exception as error:  # each store has errors of its own
        raise UsageError(f"{address}: the object store refused: {type(error).__name__}: {error}") from error


TOP = 20


@dataclass(frozen=True)
class RatedLadder:
    """A rated ladder.

    players, placed  number of players, and of those who completed their placement matches
    top              standings rows of the best placed players, or of the best players if none is placed
    """

    name: str
    matches: int
    players: int
    placed: int
    top: tuple[dict[str, object], ...]


def summaries(standings: pa.Table, matches: Mapping[str, int]) -> Iterator[RatedLadder]:
    """Yield the ladders by name, with their best players, omitting ladders without matches."""
    for name in sorted(ladder for ladder, count in matches.items() if count):
        here = standings.filter(pc.equal(standings["ladder"], name)) if len(matches) > 1 else standings
        placed = here.filter(here["placed"])
        shown = placed if placed.num_rows else here
        top = tuple(shown.slice(0, TOP).to_pylist())
        yield RatedLadder(name, matches[name], here.num_rows, placed.num_rows, top)


Progress = Callable[[int, int], None]
RATINGS = "ratings.parquet"


@dataclass(frozen=True)
class StandingsOptions:
    """Options of the standings, as in `Ratings.standings`."""

    placement: int = 10
    active_days: float = 30
    divisions: Sequence[Division] = DIVISIONS


@dataclass(frozen=True)
class RatedLadders:
    """The rated ladders. Its size does not depend on the number of matches.

    ratings, journal  the files written, as `name` (within the folder) and `rows`
    skipped           why matches were skipped, the first reasons only; skipped_matches: number of them
    later             whether matches later than `as_of` were left out
    """

    system: str
    ladders: tuple[RatedLadder, ...]
    ratings: tuple[dict[str, object], ...] = ()
    journal: tuple[dict[str, object], ...] = ()
    skipped: tuple[RowProblem, ...] = ()
    skipped_matches: int = 0
    later: bool = False

    @property
    def matches(self) -> int:
        """The number of rated matches."""
        return sum(ladder.matches for ladder in self.ladders)

    @property
    def players(self) -> int:
        """The number of rated players. A player on two ladders counts twice."""
        return sum(ladder.players for ladder in self.ladders)

    @staticmethod
    def joined(parts: Sequence[RatedLadders]) -> RatedLadders:
        """The ladders of several runs by the same rules, by name."""
        return RatedLadders(
            system=parts[0].system,
            ladders=tuple(
                sorted((ladder for part in parts for ladder in part.ladders), key=lambda ladder: ladder.name)
            ),
            ratings=tuple(entry for part in parts for entry in part.ratings),
            journal=tuple(entry for part in parts for entry in part.journal),
            skipped=tuple(problem for part in parts for problem in part.skipped),
            skipped_matches=sum(part.skipped_matches for part in parts),
            later=any(part.later for part in parts),
        )


@dataclass
class _Run:
    """The arguments of one run and its progress so far."""

    by: Rules
    selection: Selection
    options: StandingsOptions
    ratings: Results | None
    journal: Results | None
    progress: Progress | None
    bytes_before: float = 0.0
    matches_before: int = 0


def rate_partitions(
    partitions: Sequence[Partition],
    by: Rules,
    *,
    out: str | None = None,
    journal: str | None = None,
    progress: Progress | None = None,
    selection: Selection | None = None,
    standings: StandingsOptions | None = None,
    manifest: bool = True,
) -> RatedLadders:
    """Rate all matches of these partitions in order, as `evenmatch.rate` rates those of one file, in bounded memory.

    partitions  as `find_partitions` gives them; each ladder with a folder of its own is rated alone, ladders that share
                their files are rated together
    out         folder or URL for the ratings: `ladder=NAME/ratings.parquet`, with the columns of `Ratings.standings`
    journal     folder or URL for the journal: a file for each partition, with the columns of `Ratings.journal_table`
    progress    called from time to time with the bytes read and the number of matches rated so far
    selection   which matches, and whether bad ones are skipped
    manifest    write the manifests that make the results whole; False: `write_manifests` is called later, with the
                results of all calls that wrote to the same place
    If it fails, no manifest is written and its files are removed. Raises UsageError for a missing partition or a place
    that cannot be written, BadRowsError with the bad rows of the first piece that has any, InputError for a torn file,
    rows that are not grouped or out of order, or a match id that is used twice.
    """
    ratings, changes = Results(out) if out else None, Results(journal) if journal else None
    run = _Run(by, selection or Selection(), standings or StandingsOptions(), ratings, changes, progress)
    chosen = chosen_partitions(partitions, run.selection)
    places = [place for place in (ratings, changes) if place is not None]
    load_kernels(by)
    try:
        if manifest:
            for place in places:
                place.remove(MANIFEST)
        parts = [_rate_stream(group, run) for group in streams_of(chosen)]
        rated = replace(RatedLadders.joined(parts), ratings=_listed(ratings), journal=_listed(changes))
        if manifest:
            write_manifests(rated, by, out, journal)
    except BaseException:
        for place in places:
            place.remove_written()
        raise
    return rated


def write_manifests(rated: RatedLadders, by: Rules, out: str | None, journal: str | None) -> None:
    """Write `manifest.json` to both places, which marks them as complete."""
    document: dict[str, object] = {
        "system": by.system.name,
        "preset": by.preset,
        "parameters": by.values(),
        "matches": rated.matches,
        "skipped_matches": rated.skipped_matches,
        "ladders": [
            {"name": ladder.name, "matches": ladder.matches, "players": ladder.players} for ladder in rated.ladders
        ],
    }
    for address, files in ((out, rated.ratings), (journal, rated.journal)):
        if address:
            Results(address).write_manifest({**document, "files": files})


def _listed(place: Results | None) -> tuple[dict[str, object], ...]:
    return () if place is None else tuple(place.written)


def _rate_stream(partitions: Sequence[Partition], run: _Run) -> RatedLadders:
    records = PlayerRecords(run.by)
    with stream(partitions, run.selection) as source:
        rated = 0
        with _Journal(run.journal, run.by, _relative_names(partitions)) as journal, source.chunks(run.by) as chunks:
            for chunk in chunks:
                if len(chunk):
                    result = records.rate(chunk, journal=run.journal is not None)
                    journal.write(chunk, result)
                    rated += len(chunk)
                if run.progress:
                    run.progress(int(run.bytes_before + source.bytes_read), run.matches_before + rated)
        run.bytes_before += source.bytes_read
        run.matches_before += rated
        return _finished(source, records, run)


def _finished(source: Stream, records: PlayerRecords, run: _Run) -> RatedLadders:
    """Write the standings of a stream and summarize them."""
    options, names = run.options, source.names
    ladder = np.zeros(names.count, np.int32) if run.selection.pool else names.ladder
    rated = records.rated(names.texts(), ladder)
    standings = rated.standings(
        as_of=run.selection.as_of,
        placement=options.placement,
        active_days=options.active_days,
        divisions=options.divisions,
    )
    if run.ratings is not None:
        folder = source.partitions[0].ladder
        name = f"{_folder(folder)}/{RATINGS}" if folder else RATINGS
        with run.ratings.table(name) as file:
            file.write(standings)
    matches = dict(zip(records.ladders, records.matches_of(), strict=True))
    return RatedLadders(
        system=run.by.system.name,
        ladders=tuple(summaries(standings, matches)),
        skipped=tuple(source.skipped),
        skipped_matches=source.skipped_matches,
        later=source.later,
    )


class _Journal:
    """Writes the journal, one file per partition."""

    def __init__(self, place: Results | None, by: Rules, names: dict[str, str]) -> None:
        self._place, self._by, self._names = place, by, names
        self._stack = ExitStack()
        self._open: tuple[str, TableFile] | None = None

    def __enter__(self) -> _Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def write(self, chunk: Chunk, result: Replay) -> None:
        """Write the rating changes of a chunk."""
        if self._place is None or result.journal is None:
            return
        name = self._names[chunk.rows.partition.address]
        if self._open is None or self._open[0] != name:
            self._stack.close()
            self._open = (name, self._stack.enter_context(self._place.table(name)))
        self._open[1].write(
            journal_rows(self._by.system, chunk.history, result.expected, result.journal, chunk.names())
        )


def _relative_names(partitions: Sequence[Partition]) -> dict[str, str]:
    """Each partition's path in the results: `ladder=NAME`, then its path below that folder."""
    ladder = partitions[0].ladder
    paths = {partition.address: partition.address.split("/") for partition in partitions}
    if ladder:
        below = {
            address: parts[max(i for i, part in enumerate(parts[:-1]) if part.startswith("ladder=")) + 1 :]
            for address, parts in paths.items()
        }
        return {address: "/".join((_folder(ladder), *parts)) for address, parts in below.items()}
    shared = 0
    folders = [parts[:-1] for parts in paths.values()]
    while all(len(parts) > shared for parts in folders) and len({parts[shared] for parts in folders}) == 1:
        shared += 1
    return {address: "/".join(parts[shared:]) for address, parts in paths.items()}


def _folder(ladder: str) -> str:
    return f"ladder={quote(ladder, safe=' ')}"
