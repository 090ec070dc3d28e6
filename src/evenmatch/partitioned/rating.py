"""Rate partitions: stream them through the loop, write ratings and journals partitioned in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from urllib.parse import quote

import numpy as np

from evenmatch.compile_notice import load_kernels
from evenmatch.errors import RowProblem
from evenmatch.partitioned.chunk import Chunk
from evenmatch.partitioned.player_records import PlayerRecords
from evenmatch.partitioned.preparation import prepare
from evenmatch.partitioned.results import MANIFEST, Results, TableFile
from evenmatch.partitioned.stream import Selection, Stream, chosen_partitions, stream, streams_of
from evenmatch.partitioned.summary import RatedLadder, summaries
from evenmatch.rating import journal_rows
from evenmatch.standings.division import DIVISIONS, Division
from evenmatch.systems.loop import Replay
from evenmatch.systems.system import Rules
from evenmatch.tables.partitions import Partition

Progress = Callable[[int, int], None]
RATINGS = "ratings.parquet"


@dataclass(frozen=True)
class StandingsOptions:
    """How standings are made of ratings, as in `Ratings.standings`."""

    placement: int = 10
    active_days: float = 30
    divisions: Sequence[Division] = DIVISIONS


@dataclass(frozen=True)
class RatedLadders:
    """What was rated and written; small, whatever the number of matches.

    ratings, journal  the files written, as `name` (within the folder) and `rows`
    skipped           why matches were left out, the first of them; skipped_matches: how many
    later             whether there are matches later than `as_of`, which were left out
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
        """How many matches were rated."""
        return sum(ladder.matches for ladder in self.ladders)

    @property
    def players(self) -> int:
        """How many players were rated; who played on two ladders counts twice."""
        return sum(ladder.players for ladder in self.ladders)

    @staticmethod
    def joined(parts: Sequence[RatedLadders]) -> RatedLadders:
        """The ladders of several runs by the same rules, by name."""
        return RatedLadders(
            system=parts[0].system,
            ladders=tuple(sorted((one for part in parts for one in part.ladders), key=lambda one: one.name)),
            ratings=tuple(entry for part in parts for entry in part.ratings),
            journal=tuple(entry for part in parts for entry in part.journal),
            skipped=tuple(problem for part in parts for problem in part.skipped),
            skipped_matches=sum(part.skipped_matches for part in parts),
            later=any(part.later for part in parts),
        )


@dataclass
class _Run:
    """One call: what was asked for, and the places that are written to."""

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
    prepare()
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
    """Write `manifest.json` to both places, which says that all of their files are there."""
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
    """The standings of a stream, written and summed up."""
    options, names = run.options, source.names
    ladder = np.zeros(names.count, np.int32) if run.selection.pool else names.ladder
    rated = records.rated(names.read(), ladder)
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
    """Writes the journal of one partition after the other."""

    def __init__(self, place: Results | None, by: Rules, names: dict[str, str]) -> None:
        self._place, self._by, self._names = place, by, names
        self._stack = ExitStack()
        self._open: tuple[str, TableFile] | None = None

    def __enter__(self) -> _Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def write(self, chunk: Chunk, result: Replay) -> None:
        """Add the changes of a chunk."""
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
    """The name of each partition in a folder of results: `ladder=NAME`, then what stands below it in the address."""
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
