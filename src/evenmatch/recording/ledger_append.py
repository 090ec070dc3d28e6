"""Append matches to a ladder's ledger: events, player states and receipt lines, in the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import StoreError
from evenmatch.history import Columns, Flags, Floats, History, Integers, Times, entries, fill_duration
from evenmatch.ledger import event_rows, ladder_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import Block, Rated, advance
from evenmatch.ledger.codec import Ids, PackedMatches, digests, pack, pack_players, without_minus_zero
from evenmatch.ledger.contexts import values_of
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.seals import FIRST, match_seal
from evenmatch.ledger.store import Head, Store, Values
from evenmatch.ledger.text import check_texts
from evenmatch.recording.player_states import StateTransaction
from evenmatch.recording.report_batch import ReportBatch
from evenmatch.times import iso_time

# Maps player, rating, and completed matches and expected move after the batch, of each slot to percentile and division
# as shown, UNSHOWN for none.
Show = Callable[[Ids, Floats, NDArray[np.int64], Floats], tuple[NDArray[np.int64], NDArray[np.int64]]]


AHEAD = 86_400_000_000  # microseconds: a match may end this far in the future, which tolerates clock differences


@dataclass(frozen=True, eq=False)
class Batch:
    """Matches to add, in order. Players are numbered within the batch; `names` holds their names by number.

    played_at  as the sender reported it;  labels: JSON of the teams' labels, None if they are 0, 1, 2 …
    context  of each match, see match_context.write_context; the history has no context columns
    """

    ids: Sequence[str]
    history: History
    names: Sequence[str] | NDArray[np.object_]
    played_at: Times
    rated: Sequence[bool]
    labels: Sequence[str | None]
    context: Sequence[str | None]
    packed: PackedMatches
    digests: Sequence[bytes]

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        history: History,
        names: Sequence[str] | NDArray[np.object_],
        played_at: Times,
        rated: Sequence[bool],
        labels: Sequence[str | None],
        context: Sequence[str | None],
    ) -> Batch:
        """Create a batch with its packed columns and digests. Raises InputError for an id that cannot be stored."""
        check_texts("match id", ids)
        duration = history.columns.duration
        if (np.signbit(duration) & (duration == 0)).any():
            history = History(history.columns._replace(duration=without_minus_zero(duration)))
        packed = pack(history, played_at)
        slot_names = np.asarray(names, object)[history.columns.player].tolist() if len(names) else []
        computed = digests(packed, slot_names, history.match_slots, rated, context)
        return cls(ids, history, names, played_at, rated, labels, context, packed, computed)

    @classmethod
    def of_reports(cls, reports: ReportBatch) -> Batch:
        """The matches of a report batch; a match that ended before an earlier one counts as ending with it."""
        names = list(dict.fromkeys(reports.player))
        numbers = dict(zip(names, range(len(names)), strict=True))
        played_at = np.array(reports.played_at, np.int64)
        team_start, slot_start = _starts(reports.teams), _starts(reports.sizes)
        seconds = np.array(reports.seconds, np.float64)
        columns = Columns(
            time=np.maximum.accumulate(played_at),
            team_start=team_start,
            place=np.array(reports.place, np.int32),
            team_score=np.array(reports.team_score, np.float64),
            slot_start=slot_start,
            player=np.array([numbers[name] for name in reports.player], np.int32),
            score=np.array(reports.score, np.float64),
            seconds=seconds,
            performance=np.array(reports.performance, np.float64),
            quit=np.array(reports.quit, np.bool_),
            duration=fill_duration(np.array(reports.duration, np.float64), seconds, slot_start[team_start]),
            keep=np.array(reports.keep, np.bool_),
            entry=entries(reports.entry),
        )
        labels = [None] * len(reports)
        return cls.of(reports.ids, History(columns), names, played_at, reports.rated, labels, reports.context)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: Sequence[int]) -> Batch:
        """The matches with these indices, which ascend."""
        if len(chosen) == len(self):
            return self
        columns = self.packed
        packed = PackedMatches(
            [columns.played_at[index] for index in chosen],
            [columns.duration[index] for index in chosen],
            [columns.teams[index] for index in chosen],
            [columns.slots[index] for index in chosen],
        )
        return Batch(
            [self.ids[index] for index in chosen],
            self.history.take(np.array(chosen, np.int64)),
            self.names,
            self.played_at[list(chosen)],
            [self.rated[index] for index in chosen],
            [self.labels[index] for index in chosen],
            [self.context[index] for index in chosen],
            packed,
            [self.digests[index] for index in chosen],
        )


class AppendedBatch(NamedTuple):
    """An appended batch: its block, its ratings, its players' current names by id, and when its matches count."""

    block: Block
    rated: Rated
    names: dict[int, str]
    counted_at: Sequence[int | None]


class ReceiptDisplay(NamedTuple):
    """The needs of live recording beyond an import: the standing on receipts and the cache of player states."""

    show: Show
    draft: StateTransaction


def append(
    store: Store, head: Head, plan: Plan, batch: Batch, now: int, live: ReceiptDisplay | None = None
) -> AppendedBatch:
    """Append a batch after the ladder's head, which the caller has locked; none of its ids may be in the ledger yet.

    plan   of the live generation
    live   None in an import: receipts show no standing
    Raises StoreError if the ladder's last match is more than AHEAD after `now`, see _check_clock.
    A match in which two names belong to one player is stored as unrated, whatever the report requested.
    Raises RatingRangeError if a rating leaves the range of its system; the caller must then roll back.
    """
    _check_clock(head, now)
    history = batch.history
    present = np.unique(history.columns.player)
    reported = [batch.names[number] for number in present.tolist()]
    known, names = player_rows.admit(store, reported) if live is None else live.draft.admit(store, reported)
    ids = np.zeros(len(batch.names), np.int64)
    ids[present] = [known[name] for name in reported]
    requested = np.array(batch.rated, np.bool_) & ~name_twice(history, ids)
    positions = head.position + 1 + np.arange(len(batch), dtype=np.int64)
    slot_ids = ids[history.columns.player]
    block = Block(positions, batch.played_at, history.columns, slot_ids, requested, positions, batch.context)
    rules, members = plan.last_rules, np.unique(slot_ids)
    roster = (
        rating_rows.read_roster(store, head, rules, members)
        if live is None
        else live.draft.roster(store, rules, members)
    )
    if plan.context_columns:
        wanted = values_of(plan.context_columns, batch.context)
        roster.contexts = rating_rows.read_contexts(store, head, rules, members, wanted)
    before, time_before = roster.sample, roster.time
    rated = advance(roster, plan, block, names.__getitem__, lambda position: batch.ids[position - head.position - 1])
    if live is not None and len(rated.lines):
        _show(live.show, block, rated, roster)
    counted_at = counted_times(batch.played_at, time_before)
    entry = LedgerEntry(positions, counted_at, [None] * len(batch), requested, ids, rated.journal_lines())
    with store.together(len(slot_ids)):
        insert(store, head, batch, entry, now, head.generation)
        rating_rows.put_states(store, head.ladder, head.generation, roster)
        if roster.contexts is not None:
            rating_rows.put_contexts(store, head.ladder, head.generation, roster.contexts)
        learned = roster.ladders.tobytes()
        rating_rows.set_rated(store, head.ladder, head.generation, time=roster.time, learned=learned)
        if roster.sample is not before:
            rating_rows.set_sample(store, head.ladder, head.generation, roster.sample.pack())
    return AppendedBatch(block, rated, names, counted_at)


class LedgerEntry(NamedTuple):
    """Columns that the ledger stores about the matches of a batch besides their content, one value per match.

    positions      ascending without gaps
    counted_at, counts_before  see the table `event`
    rated          True if the match is to be rated
    ids            player ids by the batch's numbers
    told           journal lines
    """

    positions: Ids
    counted_at: Sequence[int | None]
    counts_before: Sequence[int | None]
    rated: Flags
    ids: Ids
    told: Sequence[bytes]


def insert(store: Store, head: Head, batch: Batch, entry: LedgerEntry, now: int, generation: int) -> None:
    """Insert the events and appearances of a batch after the ladder's last event, without any rating."""
    history, p = batch.history, batch.packed
    columns: dict[str, Values] = {
        "played_at": p.played_at,
        "counted_at": entry.counted_at,
        "counts_before": entry.counts_before,
        "duration": p.duration,
        "rated": entry.rated.astype(np.int64).tolist(),
        "teams": p.teams,
        "players": pack_players(history, entry.ids),
        "slots": p.slots,
        "digest": batch.digests,
        "context": batch.context,
    }
    seals: list[bytes] = []
    seal = head.seal or FIRST
    for position, match_id, lines, *fields in zip(
        entry.positions.tolist(), batch.ids, entry.told, *columns.values(), strict=True
    ):
        seal = match_seal(seal, position, match_id, now, *fields, generation=generation, told=lines)
        seals.append(seal)
    columns |= {"position": entry.positions, "id": batch.ids, "labels": batch.labels, "told": entry.told}
    columns |= {name: np.frombuffer(b"".join(of), "V16") for name, of in (("digest", batch.digests), ("seal", seals))}
    sizes = np.diff(history.match_slots)
    slots = entry.ids[history.columns.player], np.repeat(entry.positions, sizes), np.repeat(batch.played_at, sizes)
    event_rows.insert_matches(store, head.ladder, columns, now, generation)
    event_rows.insert_appearances(store, head.ladder, *slots)
    ladder_rows.set_position(store, head.ladder, int(entry.positions[-1]), seal)


def counted_times(played_at: Times, time: int | None) -> list[int | None]:
    """When each match counts as having ended, or None for its own end; time: of the match before."""
    effective = np.maximum.accumulate(played_at if time is None else np.maximum(played_at, time))
    return [
        None if ended == counted else counted
        for ended, counted in zip(played_at.tolist(), effective.tolist(), strict=True)
    ]


def _check_clock(head: Head, now: int) -> None:
    """Raise StoreError if a ladder's last match lies too far in the future: the clock is wrong, or once was.

    A match recorded now would count as ended at that later time.
    """
    if head.time is not None and head.time > now + AHEAD:
        raise StoreError(
            f"the last match of ladder {head.name!r} ended at {iso_time(head.time)}, but the clock says "
            f"{iso_time(now)}; correct the clock if it is wrong, otherwise void the matches that ended later"
        )


def _starts(sizes: list[int]) -> Integers:
    starts = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return starts


def name_twice(history: History, ids: Ids) -> Flags:
    """Mask of the matches in which two names belong to one player; `ids`: ids of the history's players."""
    pair = np.stack((history.slot_match.astype(np.int64), ids[history.columns.player]), axis=1)
    order = np.lexsort((pair[:, 1], pair[:, 0]))
    again = order[1:][(pair[order][1:] == pair[order][:-1]).all(axis=1)]
    twice = np.zeros(len(history), np.bool_)
    twice[history.slot_match[again]] = True
    return twice


def _show(show: Show, block: Block, rated: Rated, roster: Roster) -> None:
    """Write the percentile and division shown to each player into the lines."""
    slots = np.repeat(rated.counted, np.diff(block.columns.slot_start[block.columns.team_start]))
    ids = block.ids[slots]
    rows = np.searchsorted(roster.ids, ids)
    tally = roster.tally[rows]
    percentile, division = show(ids, rated.lines["after"], tally["completed"], tally["expected_move"])
    rated.lines["percentile"], rated.lines["division"] = percentile, division


def in_future(played_at: int, now: int) -> str | None:
    """Why a match that ended at this time is refused; None if it ended less than AHEAD after now."""
    if played_at <= now + AHEAD:
        return None
    ended, latest = iso_time(played_at), iso_time(now + AHEAD)
    return f"played_at is {ended}, which is in the future; it must be at most a day from now, {latest}"


def labels_of(texts: Sequence[str]) -> str | None:
    """The labels of a match's teams as JSON, as they are stored; None for 0, 1, 2 …, which only repeat the order."""
    plain = [str(number) for number in range(len(texts))]
    return None if list(texts) == plain else json.dumps(list(texts), ensure_ascii=False)
