"""Insert late matches into a ladder's past, where they are rated as of the time they were played."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from evenmatch.errors import ConflictError, InputError
from evenmatch.history import Flags, Times
from evenmatch.ladders.ladders import PlannedCorrection
from evenmatch.ledger import event_rows, player_rows
from evenmatch.ledger.codec import Ids, pack_players
from evenmatch.ledger.events import MatchesInserted
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.recording.ledger_append import Batch, LedgerEntry, insert, name_twice
from evenmatch.times import iso_time

FIRST_PENDING = 2**42  # of matches and players without a real position or id; below 2^43, see contexts.ROOM


@dataclass(frozen=True)
class Insertion:
    """The matches of a correction that inserts them. counts_before: see the table `event`."""

    ids: tuple[str, ...]
    counts_before: tuple[int, ...]
    batch: Batch = field(compare=False)


@dataclass(frozen=True, eq=False)
class InsertMatches:
    """A request to record matches that ended before the ladder's newest match, and rate them at their own time."""

    batch: Batch
    reason: str | None = None

    def change(self, _: Store, __: Head) -> MatchesInserted:
        """The number of matches, a digest of their contents, and the reason."""
        content = hashlib.blake2b(b"".join(sorted(self.batch.digests)), digest_size=16).hexdigest()
        return MatchesInserted(len(self.batch), content, self.reason)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event.

        Raises ConflictError if the ladder already has all of these matches, or one with other content, and InputError
        for a match that ended after all others on the ladder.
        """
        batch, known = self.batch, event_rows.find_events(store, head, self.batch.ids)
        for match_id, digest in zip(batch.ids, batch.digests, strict=True):
            if match_id in known and known[match_id][1] != digest:
                raise ConflictError(f"match {match_id!r} is already on ladder {head.name!r}, with other content")
        new = batch.take([index for index, match_id in enumerate(batch.ids) if match_id not in known])
        if not len(new):
            raise ConflictError(f"ladder {head.name!r} already has all of these matches")
        counts_before = counting_positions(store, head, new.played_at)
        for match_id, played_at, position in zip(new.ids, new.played_at.tolist(), counts_before, strict=True):
            if position is None:
                raise InputError(
                    f"match {match_id!r} ended at {iso_time(played_at)}, and no match of ladder {head.name!r} ended "
                    "later; report it as usual"
                )
        insertion = Insertion(tuple(new.ids), tuple(one for one in counts_before if one is not None), new)
        count = "1 match is" if len(new) == 1 else f"{len(new):,} matches are"
        told = f"{count} inserted at the time played"
        since = min(insertion.counts_before)
        return PlannedCorrection(self.change(store, head), since, told, insertion=insertion)


def counting_positions(store: Store, head: Head, played_at: Times) -> list[int | None]:
    """The position before which each match would count; None: no match of the ladder ended later.

    That is the position of the first match that ended later, or of the first correction right before it that was
    recorded between the two, so that a match of the last season does not count in the next.
    """
    if not len(played_at):
        return []
    later = event_rows.read_times_after(store, head.ladder, int(played_at.min()))
    if not later:
        return [None] * len(played_at)
    positions, ended = np.array(later, np.int64).T
    effective = np.maximum.accumulate(ended)
    rows = np.searchsorted(effective, played_at, side="right").tolist()
    recorded = {event.position: event.recorded_at for event in event_rows.read_corrections(store, head, head.position)}
    counted: list[int | None] = []
    for time, row in zip(played_at.tolist(), rows, strict=True):
        if row == len(later):
            counted.append(None)
            continue
        position, until = int(positions[row]), int(effective[row])
        while position > 2 and time < recorded.get(position - 1, time) <= until:
            position -= 1
        counted.append(position)
    return counted


class PendingMatches(NamedTuple):
    """Inserted matches while their generation is being computed. ids: player ids by the batch's numbers."""

    insertion: Insertion
    ids: Ids
    rated: Flags

    @classmethod
    def of(cls, insertion: Insertion, ids: Ids) -> PendingMatches:
        """Create pending matches; those in which two names belong to one player are recorded as unrated."""
        batch = insertion.batch
        return cls(insertion, ids, np.array(batch.rated, np.bool_) & ~name_twice(batch.history, ids))

    def rows(self) -> list[Row]:
        """The rows as `event_rows.read_stored_events` would read them, at positions from FIRST_PENDING."""
        batch, counts_before = self.insertion.batch, self.insertion.counts_before
        packed, players = batch.packed, pack_players(batch.history, self.ids)
        columns = (packed.played_at, packed.duration, packed.teams, players, packed.slots)
        others = (self.rated.tolist(), batch.context, counts_before)
        positions = range(FIRST_PENDING, FIRST_PENDING + len(batch))
        return [
            (*row, match_id, 0, b"") for *row, match_id in zip(positions, *columns, *others, batch.ids, strict=True)
        ]

    def record(self, store: Store, head: Head, told: Sequence[bytes], now: int, generation: int) -> None:
        """Add the events after the ladder's last one; told: the journal lines of each match."""
        batch, count = self.insertion.batch, len(self.insertion.batch)
        positions = head.position + 1 + np.arange(count, dtype=np.int64)
        entry = LedgerEntry(positions, [None] * count, self.insertion.counts_before, self.rated, self.ids, told)
        insert(store, head, batch, entry, now, generation)


def ids_created(store: Store, batch: Batch) -> Ids:
    """The player ids by the batch's numbers; new players are created."""
    known, _ = player_rows.admit(store, list(batch.names))
    return np.array([known[name] for name in batch.names], np.int64)


def ids_foreseen(store: Store, batch: Batch) -> tuple[Ids, dict[int, str]]:
    """Like `ids_created`, but new players get stand-in ids and are not created; also returns their names."""
    known = player_rows.ids_of(store, list(batch.names))
    new = {FIRST_PENDING + number: name for number, name in enumerate(batch.names) if name not in known}
    ids = [known.get(name, FIRST_PENDING + number) for number, name in enumerate(batch.names)]
    return np.array(ids, np.int64), new
