"""Import past matches into a ladder, in batches. After an interruption, import the same file again to continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenmatch.compile_notice import load_kernels
from evenmatch.corrections.repair import APART
from evenmatch.corrections.replay import Progress
from evenmatch.errors import BadRowsError, InputError, RowProblem
from evenmatch.history import Flags, History, Integers
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.match_context import check_context, write_context
from evenmatch.rating import rateable, without
from evenmatch.recording.ledger_append import AHEAD, Batch, append, in_future, labels_of
from evenmatch.recording.receipts import OtherSizes, other_sizes, summary
from evenmatch.recording.recorder import LARGEST, MatchLimits
from evenmatch.tables import MatchTable
from evenmatch.tables.table import ContextColumn

AT_ONCE = 25_000  # matches per transaction; smaller batches write each database page more often


class ImportResult(NamedTuple):
    """The result of an import.

    added     new matches;  known  matches that were there before;  position  the ledger's last position now
    left_out  the problems of the matches that were skipped
    warnings  sentences about the added matches
    """

    added: int
    known: int
    position: int
    left_out: tuple[RowProblem, ...] = ()
    warnings: tuple[str, ...] = ()


class LateMatches(NamedTuple):
    """The matches of a table that would count as a ladder's newest although they ended earlier.

    mask  bool, by match;  newest  when the ladder's newest match ended, in microseconds; None: it has no match
    """

    mask: Flags
    newest: int | None


def check(
    database: Database,
    ladder: str,
    matches: MatchTable,
    clock: Callable[[], int],
    limits: MatchLimits = LARGEST,
    *,
    rated: bool = True,
    skip_bad: bool = False,
) -> MatchTable:
    """Return the matches that can be added to a ladder; with `skip_bad`, the others are left out and `skipped`.

    limits  the largest match, whatever the ladder allows
    A match cannot be added if it is too large, if the ladder's system cannot rate it (unless rated is False), if the
    ladder refuses its team sizes, if its context cannot be stored, if two of its names belong to one player, if it ends
    in the future, or if its id is taken by other content.
    Raises BadRowsError with every such match, unless skip_bad; InputError for an invalid context column name.
    Raises ConflictError if the ladder is archived.
    """
    with database.read() as store:
        head = store.head(ladder)
        settings = Settings.read(head.settings)
        settings.check_open(ladder)
        rules = event_rows.read_plan(store, head, head.planned).last_rules
        matches = _without_large(matches, limits.on(ladder, settings), skip_bad=skip_bad)
        matches = without(matches, _unstorable(matches), skip_bad=skip_bad)
        if rated:
            matches = rateable(matches, rules, skip_bad=skip_bad)
        if settings.other_sizes == "refuse":
            odd = other_sizes(settings, matches.history.columns, [rated] * len(matches))
            matches = without(matches, ((index, sizes.refusal) for index, sizes in odd.items()), skip_bad=skip_bad)
        wrong = [*_conflicts(store, ladder, matches, rated), *_twice(store, matches), *_in_future(matches, clock())]
    return without(matches, wrong, skip_bad=skip_bad)


def late(database: Database, ladder: str, matches: MatchTable) -> LateMatches:
    """Find the matches that are not on the ladder and ended before its newest match."""
    with database.read() as store:
        head = store.head(ladder)
        newest = event_rows.read_newest_time(store, head.ladder)
        early = np.zeros(len(matches), np.bool_) if newest is None else matches.history.columns.time < newest
        rows = np.flatnonzero(early)
        ids = matches.match_id.take(pa.array(rows)).to_pylist()
        present = event_rows.find_events(store, head, ids)
    early[rows[[match_id in present for match_id in ids]]] = False
    return LateMatches(early, newest)


def import_matches(
    database: Database,
    ladder: str,
    matches: MatchTable,
    clock: Callable[[], int],
    limits: MatchLimits = LARGEST,
    *,
    rated: bool = True,
    skip_bad: bool = False,
    progress: Progress | None = None,
    note: Callable[[Store], None] | None = None,
) -> ImportResult:
    """Add matches, in order of time, to the end of a ladder.

    rated  False: record them without changing ratings
    note   called in the first transaction that adds a match
    For limits, skip_bad and the errors raised before anything is added, see `check`. BadRowsError or ConflictError is
    raised later if another process meanwhile uses a match's id with other content, or archives the ladder.
    """
    read = len(matches.skipped)
    matches = check(database, ladder, matches, clock, limits, rated=rated, skip_bad=skip_bad)
    refused = matches.skipped[read:]
    conflicts: list[RowProblem] = []
    with database.read() as store:
        head = store.head(ladder)
        plan = event_rows.read_plan(store, head, head.planned)
    # Compiling in a transaction would hold its lock for seconds.
    load_kernels(plan.last_rules, in_context=bool(plan.context_columns))
    left_out: set[str | None] = set()
    settings = Settings.read(head.settings)
    odd = other_sizes(settings, matches.history.columns, [rated] * len(matches))
    warned: list[OtherSizes] = []
    added = known = done = 0
    position = head.position
    for batch in _batches(matches, rated):
        with database.write(patient=True) as store:
            head = store.lock(ladder)
            Settings.read(head.settings).check_open(ladder)
            present = event_rows.find_events(store, head, batch.ids)
            taken = [
                (index, reason) for index, reason in _taken(present, batch, ladder) if batch.ids[index] not in left_out
            ]
            if taken:
                problems = matches.problems((done + index, reason) for index, reason in taken)
                if not skip_bad:
                    raise _late(matches, problems, added)
                conflicts += problems
                left_out |= {problem.match_id for problem in problems}
            wanted = [index for index, match_id in enumerate(batch.ids) if match_id not in left_out]
            new = [index for index in wanted if batch.ids[index] not in present]
            known += len(wanted) - len(new)
            if new:
                plan = event_rows.read_plan(store, head, head.planned)
                append(store, head, plan, batch.take(new), clock())
                if note is not None and not added:
                    note(store)
                added += len(new)
                warned += [odd[done + index] for index in new if done + index in odd]
                _checkpoint(store, ladder)
            position = store.head(ladder).position
        done += len(batch)
        if progress:
            progress(done)
    return ImportResult(added, known, position, (*refused, *conflicts), tuple(summary(warned)))


def _without_large(matches: MatchTable, limits: MatchLimits, *, skip_bad: bool) -> MatchTable:
    """The table without matches that have too many teams or players. Raises BadRowsError with all, unless skip_bad."""
    c = matches.history.columns
    teams, players = np.diff(c.team_start), np.diff(matches.history.match_slots)
    large = np.flatnonzero((teams > limits.teams) | (players > limits.players)).tolist()
    if not large:
        return matches
    refusals = [(index, limits.refusal(int(teams[index]), int(players[index])) or "") for index in large]
    return without(matches, refusals, skip_bad=skip_bad)


def _unstorable(matches: MatchTable) -> list[tuple[int, str]]:
    """The matches with a context that cannot be stored. Raises InputError for an invalid column name."""
    columns = _context_columns(matches)
    check_context({column.name: "" for _, column in columns})
    refused: list[tuple[int, str]] = []
    for number, column in columns:
        reasons: dict[int, str] = {}
        for value, record in column.records.items():
            try:
                check_context({column.name: value})
            except InputError as error:
                reasons[record] = str(error)
        if reasons:
            records = _context_records(matches.history)[:, number]
            having = np.flatnonzero(np.isin(records, list(reasons)))
            refused += zip(having.tolist(), (reasons[record] for record in records[having].tolist()), strict=True)
    return refused


def _checkpoint(store: Store, ladder: str) -> None:
    head = store.head(ladder)
    if head.position - rating_rows.last_checkpoint_position(store, head) >= APART:
        roster = rating_rows.read_whole_roster(store, head, event_rows.read_plan(store, head, head.planned))
        if head.position - rating_rows.last_checkpoint_position(store, head) >= 4 * len(roster):
            rating_rows.put_checkpoint(store, head.ladder, head.generation, roster)


def _batches(matches: MatchTable, rated: bool) -> Iterator[Batch]:
    names = np.array(matches.player_names, object)
    for first in range(0, len(matches), AT_ONCE):
        yield batch_of(matches, names, first, min(first + AT_ONCE, len(matches)), rated)


def batch_of(
    matches: MatchTable, names: np.ndarray[tuple[int], np.dtype[np.object_]], first: int, end: int, rated: bool
) -> Batch:
    """The matches from index `first` up to, but not including, `end` as a batch."""
    history = matches.history.take(slice(first, end))
    teams = matches.history.columns.team_start
    labels = _labels(matches.team.slice(int(teams[first]), int(teams[end] - teams[first])), history)
    ids = matches.match_id.slice(first, end - first).to_pylist()
    context = _contexts(matches, history)
    if history.contexts:
        none = np.empty(0, np.int32)
        history = History(history.columns._replace(context=none, offset=none, lengths=np.empty(0)))
    return Batch.of(ids, history, names, history.columns.time, [rated] * len(ids), labels, context)


def _contexts(matches: MatchTable, history: History) -> list[str | None]:
    """The context of each match of a part of the table, as it is stored."""
    columns = _context_columns(matches)
    if not columns:
        return [None] * len(history)
    named = {column.name: dict(zip(column.records.values(), column.records, strict=True)) for _, column in columns}
    found = _context_records(history)[:, [number for number, _ in columns]]

    @cache
    def text(records: tuple[int, ...]) -> str | None:
        return write_context(
            {name: values[record] for (name, values), record in zip(named.items(), records, strict=True)}
        )

    return [text(tuple(records)) for records in found.tolist()]


def _context_columns(matches: MatchTable) -> list[tuple[int, ContextColumn]]:
    """The context columns that are stored, with their numbers."""
    return [(number, column) for number, column in enumerate(matches.context) if column.name != "ladder"]


def _context_records(history: History) -> Integers:
    """The record of each match's value; shape (matches, context columns)."""
    return history.columns.context.reshape(len(history), -1)


def _labels(team: pa.DictionaryArray, history: History) -> list[str | None]:
    """The labels of each match's teams as they are stored; see labels_of."""
    start = history.columns.team_start
    own = np.arange(len(team)) - np.repeat(start[:-1], np.diff(start))
    used, code = np.unique(team.indices.to_numpy(), return_inverse=True)
    texts = team.dictionary.take(pa.array(used)).to_pylist()  # a slice still has the dictionary of the whole table
    plain = {str(number): number for number in range(int(own.max(initial=0)) + 1)}
    meant = np.array([plain.get(text, -1) for text in texts], np.int64)
    if (meant[code] == own).all():
        return [None] * len(history)
    codes, starts = code.tolist(), start.tolist()
    stored = cache(lambda chosen: labels_of([texts[one] for one in chosen]))
    return [stored(tuple(codes[a:b])) for a, b in pairwise(starts)]


def _in_future(matches: MatchTable, now: int) -> list[tuple[int, str]]:
    time = matches.history.columns.time
    late = np.flatnonzero(time > now + AHEAD).tolist()
    return [(match, str(in_future(int(time[match]), now))) for match in late]


def _twice(store: Store, matches: MatchTable) -> list[tuple[int, str]]:
    """The matches in which two names belong to the same player."""
    known = player_rows.ids_of(store, matches.player_names)
    own = np.arange(1, len(matches.player_names) + 1)
    ids = np.array(
        [known.get(name, -number) for name, number in zip(matches.player_names, own.tolist(), strict=True)], np.int64
    )
    if len(np.unique(ids)) == len(ids):
        return []
    key = np.stack((matches.history.slot_match, ids[matches.history.columns.player]), axis=1)
    _, first, count = np.unique(key, axis=0, return_index=True, return_counts=True)
    again = np.unique(matches.history.slot_match[first[count > 1]]).tolist()
    return [(match, "two of its names belong to the same player; expected each player once") for match in again]


def _conflicts(store: Store, ladder: str, matches: MatchTable, rated: bool) -> list[tuple[int, str]]:
    """The matches whose ids are already used on the ladder with other content."""
    head = store.head(ladder)
    if not head.position - len(event_rows.read_correction_positions(store, head.ladder)):
        return []
    names = np.array(matches.player_names, object)
    conflicts: list[tuple[int, str]] = []
    for first in range(0, len(matches), AT_ONCE):
        end = min(first + AT_ONCE, len(matches))
        present = event_rows.find_events(store, head, matches.match_id.slice(first, end - first).to_pylist())
        if not present:
            continue
        batch = batch_of(matches, names, first, end, rated)
        conflicts += [(first + index, reason) for index, reason in _taken(present, batch, ladder)]
    return conflicts


def _taken(present: Mapping[str, tuple[int, bytes]], batch: Batch, ladder: str) -> list[tuple[int, str]]:
    """(index, reason) of the matches whose ids are taken by other content; present: see `event_rows.find_events`."""
    ids = zip(batch.ids, batch.digests, strict=True)
    return [
        (index, f"is already on ladder {ladder!r}, with other content")
        for index, (match_id, digest) in enumerate(ids)
        if match_id in present and present[match_id][1] != digest
    ]


def _late(matches: MatchTable, problems: list[RowProblem], added: int) -> BadRowsError:
    """The error for ids that another process has used since the import began; added: matches added so far."""
    error = BadRowsError(matches.source.name, problems)
    if added:
        error.outcome = f"{added:,} {'match was' if added == 1 else 'matches were'} added before"
    return error
