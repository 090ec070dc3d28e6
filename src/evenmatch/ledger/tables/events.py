"""Rows of table `event`: the matches and corrections of each ladder's ledger, changed only to erase a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.history import Floats
from evenmatch.ledger import schema
from evenmatch.ledger.block_rating import Block
from evenmatch.ledger.codec import ID, Ids, unpack
from evenmatch.ledger.events import Body, Correction, Event, Kind, correction_digest, write_body
from evenmatch.ledger.rows import Row, Statement, Values
from evenmatch.ledger.store import Head, Store

BATCH = 20_000  # events read at a time
_CONTENT = "position, played_at, duration, teams, players, slots, rated, counts_before"
_WIDTH = len(_CONTENT.split(","))
_COUNTS_BEFORE = _WIDTH - 1
_MATCH = f"SELECT {_CONTENT}, id, generation, told, labels FROM event"


class StoredMatches(NamedTuple):
    """Columns of the matches of a block beside their content.

    told  the journal lines first returned, of `generations`; both empty if they were not read
    """

    ids: Sequence[str]
    generations: Sequence[int] = ()
    told: Sequence[bytes] = ()


# all events


def find(store: Store, head: Head, ids: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    """(position, digest) by event id, for those of these ids that exist in the ledger."""
    return digests(store.each([by_id(store, head, ids)])[0]) if ids else {}


def by_id(store: Store, head: Head, ids: Sequence[str]) -> Statement:
    """The statement that reads (id, position, digest) of those of these one or more ids that exist in the ledger."""
    sql = "SELECT id, position, digest FROM event WHERE ladder = ? AND id IN ({})"
    return store.rows.by_key(sql, (head.ladder,), ids)


def digests(rows: Sequence[Row]) -> dict[str, tuple[int, bytes]]:
    """(position, digest) by id, of rows that the statement of `by_id` read."""
    return {event_id: (position, bytes(digest)) for event_id, position, digest in rows}


def read(store: Store, head: Head) -> Iterator[list[Event]]:
    """All events as stored, in order, in batches."""
    after = 0
    while True:
        rows = store.all(
            f"SELECT {', '.join(Event._fields)} FROM event WHERE ladder = ? AND position > ? ORDER BY position LIMIT ?",
            *(head.ladder, after, BATCH),
        )
        yield [Event(*row) for row in rows]
        if len(rows) < BATCH:
            return
        after = rows[-1][0]


def read_between(store: Store, ladder: int, after: int, upto: int) -> list[Row]:
    """(kind, body, players) of the events after a position and up to another, in no particular order."""
    sql = "SELECT kind, body, players FROM event WHERE ladder = ? AND position > ? AND position <= ?"
    return store.all(sql, ladder, after, upto)


def changed_players(later: Sequence[Row]) -> Ids:
    """The players whose states these events (see `read_between`) changed, ascending."""
    packed = [players for _, _, players in later if players is not None]
    return np.unique(np.frombuffer(b"".join(packed), ID).astype(np.int64))


def read_id(store: Store, ladder: int, position: int) -> str:
    """The id of the event at a position."""
    event_id: str = store.all("SELECT id FROM event WHERE ladder = ? AND position = ?", ladder, position)[0][0]
    return event_id


def read_seal(store: Store, ladder: int, position: int) -> tuple[bytes, int]:
    """(seal, recorded_at) of the event at a position. Raises DamageError if there is none or it has no seal."""
    rows = store.all("SELECT seal, recorded_at FROM event WHERE ladder = ? AND position = ?", ladder, position)
    if not rows or rows[0][0] is None:
        raise DamageError(f"the event at position {position} is missing; `evenmatch verify` shows what is damaged")
    return bytes(rows[0][0]), rows[0][1]


def first_ids(store: Store) -> dict[int, str]:
    """The id of the first event of each ladder that has events, listed in a table or not."""
    ids: dict[int, str] = {}
    while rows := store.all(
        "SELECT ladder, id FROM event WHERE ladder > ? ORDER BY ladder, position LIMIT 1", max(ids, default=0)
    ):
        ids[rows[0][0]] = rows[0][1]
    return ids


# matches


@dataclass(frozen=True)
class Scope:
    """Which inserted matches a reading of a ladder includes: those up to a position, and others not yet recorded.

    upto     the last correction of the plan by which the ladder is rated
    pending  rows as `read_stored` reads them
    """

    upto: int
    pending: Sequence[Row] = ()


def read_blocks(store: Store, head: Head, after: int, upto: int, scope: Scope) -> Iterator[tuple[Block, list[Row]]]:
    """The matches that count after a position, in that order, with (id, generation, told, labels) of each.

    Blocks have BATCH matches, and those inserted among them.
    """
    while rows := _read_in_order(store, head, _MATCH, after, upto, scope):
        block = _block(f"ladder {head.name!r}", list(zip(*rows, strict=True))[:_WIDTH])
        after = int(block.counts_at[-1])
        yield block, [row[_WIDTH:] for row in rows]


def read_stored(
    store: Store, head: Head, after: int, upto: int, scope: Scope, *, lines: bool = True
) -> tuple[Block, StoredMatches] | None:
    """The first block of matches that count after a position, and what is stored beside them; None: no match does.

    Raises DamageError if a match cannot be read.
    lines  False: leave out the journal lines, which is faster
    """
    columns = f"{_CONTENT}, id, generation, told" if lines else f"{_CONTENT}, id"
    rows = _read_in_order(store, head, f"SELECT {columns} FROM event", after, upto, scope)
    if not rows:
        return None
    values = list(zip(*(row[: _WIDTH + (3 if lines else 1)] for row in rows), strict=True))
    for name, column in zip(("generation", "told"), values[_WIDTH + 1 :], strict=False):
        if None in column:
            match_id = values[_WIDTH][column.index(None)]
            raise DamageError(
                f"match {match_id!r} of ladder {head.name!r} has nothing in column {name} of table event; "
                "restore it from a backup"
            )
    return _block(f"ladder {head.name!r}", values[:_WIDTH]), StoredMatches(*values[_WIDTH:])


def _read_in_order(store: Store, head: Head, select: str, after: int, upto: int, scope: Scope) -> list[Row]:
    """The BATCH matches after a position, and the inserted ones that count among them."""
    rows = store.all(
        f"{select} WHERE ladder = ? AND position > ? AND position <= ? AND kind = ? AND counts_before IS NULL "
        "ORDER BY position LIMIT ?",
        *(head.ladder, after, upto, Kind.MATCH.value, BATCH),
    )
    if not rows:
        return []
    last = rows[-1][0] if len(rows) == BATCH else upto
    inserted = store.all(
        f"{select} WHERE ladder = ? AND counts_before > ? AND counts_before <= ? AND position <= ?",
        *(head.ladder, after, last, scope.upto),
    )
    inserted += [row for row in scope.pending if after < row[_COUNTS_BEFORE] <= last]
    return sorted([*rows, *inserted], key=count_order) if inserted else rows


def count_order(row: Row) -> tuple[int, bool, int, int]:
    """The sorting key of a match's row: matches inserted before the same event count in order of time."""
    position, played_at, counts_before = row[0], row[1], row[_COUNTS_BEFORE]
    return (position, True, 0, 0) if counts_before is None else (counts_before, False, played_at, position)


def read_blocks_at(store: Store, head: Head, positions: Sequence[int]) -> Iterator[tuple[Block, list[Row]]]:
    """Like `read_blocks`, for the matches at these positions, split in the order of the list."""
    for first in range(0, len(positions), BATCH):
        chosen = [int(position) for position in positions[first : first + BATCH]]
        rows = store.among(f"{_MATCH} WHERE ladder = ? AND position IN ({{}})", (head.ladder,), chosen)
        if rows:
            columns = list(zip(*sorted(rows, key=count_order), strict=True))
            yield _block(f"ladder {head.name!r}", columns[:_WIDTH]), list(zip(*columns[_WIDTH:], strict=True))


def read_matches(store: Store, ladder: int, ids: Sequence[str]) -> list[tuple[Block, Row]]:
    """Each of the matches with these ids as a block, with (id, generation, told, labels), in no particular order.

    Raises DamageError for a torn match.
    """
    rows = store.among(f"{_MATCH} WHERE ladder = ? AND kind = ? AND id IN ({{}})", (ladder, Kind.MATCH.value), ids)
    return [(_block(f"ladder #{ladder}", [(value,) for value in row[:_WIDTH]]), row[_WIDTH:]) for row in rows]


def _block(subject: str, columns: Sequence[Row]) -> Block:
    """Create a block from the columns of _CONTENT. Raises DamageError that names the ladder `subject`."""
    position, played_at, duration, teams, players, slots, rated, counts_before = columns
    counts_at = [own if before is None else before for own, before in zip(position, counts_before, strict=True)]
    try:
        reported, unpacked, ids = unpack(played_at, duration, teams, players, slots)
        positions, order = np.array(position, np.int64), np.array(counts_at, np.int64)
        return Block(positions, reported, unpacked, ids, np.array(rated, np.bool_), order)
    except (TypeError, ValueError) as error:
        message = f"a match of {subject} at one of the positions {position[0]} to {position[-1]} is damaged ({error})"
        raise DamageError(f"{message}; `evenmatch verify` shows which one, restore it from a backup") from error


def find_match(store: Store, ladder: int, match_id: str) -> int | None:
    """The position of the match with this id; None: there is none."""
    sql = "SELECT position FROM event WHERE ladder = ? AND id = ? AND kind = ?"
    rows = store.all(sql, ladder, match_id, Kind.MATCH.value)
    return rows[0][0] if rows else None


def counts_at(store: Store, ladder: int, position: int) -> int:
    """Where the match at this position counts: there, or before which position if it was inserted."""
    sql = "SELECT COALESCE(counts_before, position) FROM event WHERE ladder = ? AND position = ?"
    counted: int = store.all(sql, ladder, position)[0][0]
    return counted


def read_counted_at(store: Store, ladder: int, positions: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
    """(counted_at, counts_before) of the matches at these positions that were recorded late."""
    sql = (
        "SELECT position, counted_at, counts_before FROM event WHERE ladder = ? "
        "AND (counted_at IS NOT NULL OR counts_before IS NOT NULL) AND position IN ({})"
    )
    return {row[0]: (row[1], row[2]) for row in store.among(sql, (ladder,), positions)}


def read_times_after(store: Store, ladder: int, time: int) -> list[tuple[int, int]]:
    """(position, played_at) of every match that was not inserted and ended after a time, in order of position."""
    sql = (
        "SELECT position, played_at FROM event WHERE ladder = ? AND played_at > ? AND counts_before IS NULL "
        "ORDER BY position"
    )
    return [(row[0], row[1]) for row in store.all(sql, ladder, time)]


def read_newest_time(store: Store, ladder: int) -> int | None:
    """When the ladder's last played match ended, in microseconds; None: it has no match."""
    newest: int | None = store.all(
        "SELECT MAX(played_at) FROM event WHERE ladder = ? AND played_at IS NOT NULL", ladder
    )[0][0]
    return newest


def read_last_match_ids(store: Store, ladder: int, limit: int) -> list[str]:
    """The ids of up to `limit` matches, latest first."""
    sql = "SELECT id FROM event WHERE ladder = ? AND kind = ? ORDER BY position DESC LIMIT ?"
    return [row[0] for row in store.all(sql, ladder, Kind.MATCH.value, limit)]


class ListKey(NamedTuple):
    """The key of a match in lists, which are ordered by when matches were played."""

    played_at: int
    position: int


END_OF_LIST = ListKey(2**63 - 1, 2**63 - 1)


def read_list(
    store: Store, ladder: int, before: ListKey, limit: int, since: int | None, until: int | None
) -> list[ListKey]:
    """The keys of up to `limit` matches below `before`, the last played first.

    since, until  only matches that ended at or after, and before (microseconds); None: no bound
    """
    times, values = list_bounds(before, since, until)
    sql = f"SELECT played_at, position FROM event WHERE ladder = ? AND played_at IS NOT NULL AND {times}"
    rows = store.all(f"{sql} ORDER BY played_at DESC, position DESC LIMIT ?", ladder, *values, limit)
    return [ListKey(*row) for row in rows]


def list_bounds(before: ListKey, since: int | None, until: int | None) -> tuple[str, list[int]]:
    """The condition of a part of a list, and its values."""
    sql = "(played_at, position) < (?, ?)"
    bounds = [(" AND played_at >= ?", since), (" AND played_at < ?", until)]
    given = [(condition, value) for condition, value in bounds if value is not None]
    return sql + "".join(condition for condition, _ in given), [*before, *(value for _, value in given)]


def player_counts(store: Store, ladder: int, positions: Sequence[int]) -> dict[int, int]:
    """The number of players of the matches at these positions, by position."""
    sql = "SELECT position, LENGTH(players) FROM event WHERE ladder = ? AND position IN ({})"
    return {position: length // np.dtype(ID).itemsize for position, length in store.among(sql, (ladder,), positions)}


# writing


def insert_matches(store: Store, ladder: int, columns: Mapping[str, Values], recorded_at: int, generation: int) -> None:
    """Insert matches of one generation that are recorded at the same time.

    columns  position, id, digest, played_at, counted_at, counts_before, duration, rated, teams, players, slots, labels,
             told and seal
    """
    same = {"ladder": ladder, "kind": Kind.MATCH.value, "recorded_at": recorded_at, "generation": generation}
    store.insert_columns(schema.event, same, columns)


def insert_correction(
    store: Store,
    ladder: int,
    position: int,
    kind: Kind,
    event_id: str,
    digest: bytes,
    body: str,
    now: int,
    ids: Ids,
    ratings: Floats,
    seal: bytes,
) -> None:
    """Insert a correction event; `tables.corrections` records its position."""
    columns = ("ladder", "position", "id", "kind", "digest", "recorded_at", "body", "players", "slots", "seal")
    packed = (ids.astype(ID).tobytes(), ratings.astype("<f8").tobytes()) if len(ids) else (None, None)
    store.insert(schema.event, columns, [(ladder, position, event_id, kind.value, digest, now, body, *packed, seal)])


def replace_body(store: Store, ladder: int, correction: Correction, body: Body) -> None:
    """Replace the reason in the body of a correction, to erase a name; the seal does not cover it."""
    position, kind, _, ids, ratings = correction
    digest = correction_digest(kind, body, ids, ratings)
    store.run(
        "UPDATE event SET body = ?, digest = ? WHERE ladder = ? AND position = ?",
        *(write_body(body), digest, ladder, position),
    )


def replace_labels(store: Store, ladder: int, position: int, labels: str) -> None:
    """Replace the labels of a match's teams, to erase a name."""
    store.run("UPDATE event SET labels = ? WHERE ladder = ? AND position = ?", labels, ladder, position)


def read_after(store: Store, ladder: int, after: int, limit: int) -> list[Row]:
    """(position, id, kind, played_at) of the first `limit` events after a position, in order."""
    sql = "SELECT position, id, kind, played_at FROM event WHERE ladder = ? AND position > ? ORDER BY position LIMIT ?"
    return store.all(sql, ladder, after, limit)
