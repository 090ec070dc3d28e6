"""Rows of table `event`: the matches and corrections of each ladder's ledger, changed only to erase a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
_CONTENT = "position, played_at, duration, teams, players, slots, rated"
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


def read_blocks(store: Store, head: Head, after: int, upto: int) -> Iterator[tuple[Block, list[Row]]]:
    """The matches after a position in blocks of BATCH, with (id, generation, told, labels) of each."""
    while True:
        rows = store.all(
            f"{_MATCH} WHERE ladder = ? AND position > ? AND position <= ? AND kind = ? ORDER BY position LIMIT ?",
            *(head.ladder, after, upto, Kind.MATCH.value, BATCH),
        )
        if not rows:
            return
        after = rows[-1][0]
        yield _block(f"ladder {head.name!r}", list(zip(*rows, strict=True))[:7]), [row[7:] for row in rows]
        if len(rows) < BATCH:
            return


def read_stored(
    store: Store, head: Head, after: int, upto: int, *, lines: bool = True
) -> tuple[Block, StoredMatches] | None:
    """The first block of BATCH matches after a position, and what is stored beside them; None: there is no match.

    Raises DamageError if a match cannot be read.
    lines  False: leave out the journal lines, which is faster
    """
    columns = f"{_CONTENT}, id, generation, told" if lines else f"{_CONTENT}, id"
    rows = store.all(
        f"SELECT {columns} FROM event WHERE ladder = ? AND position > ? AND position <= ? AND kind = ? "
        "ORDER BY position LIMIT ?",
        *(head.ladder, after, upto, Kind.MATCH.value, BATCH),
    )
    if not rows:
        return None
    values = list(zip(*rows, strict=True))
    for name, column in zip(("generation", "told"), values[8:], strict=False):
        if None in column:
            match_id = values[7][column.index(None)]
            raise DamageError(
                f"match {match_id!r} of ladder {head.name!r} has nothing in column {name} of table event; "
                "restore it from a backup"
            )
    return _block(f"ladder {head.name!r}", values[:7]), StoredMatches(*values[7:])


def read_blocks_at(store: Store, head: Head, positions: Sequence[int]) -> Iterator[tuple[Block, list[Row]]]:
    """Like `read_blocks`, for the matches at these positions, split in the order of the list."""
    for first in range(0, len(positions), BATCH):
        chosen = [int(position) for position in positions[first : first + BATCH]]
        rows = sorted(store.among(f"{_MATCH} WHERE ladder = ? AND position IN ({{}})", (head.ladder,), chosen))
        if rows:
            yield _block(f"ladder {head.name!r}", list(zip(*rows, strict=True))[:7]), [row[7:] for row in rows]


def read_matches(store: Store, ladder: int, ids: Sequence[str]) -> list[tuple[Block, Row]]:
    """Each of the matches with these ids as a block, with (id, generation, told, labels), in no particular order.

    Raises DamageError for a torn match.
    """
    rows = store.among(f"{_MATCH} WHERE ladder = ? AND kind = ? AND id IN ({{}})", (ladder, Kind.MATCH.value), ids)
    return [(_block(f"ladder #{ladder}", [(value,) for value in row[:7]]), row[7:]) for row in rows]


def _block(subject: str, columns: Sequence[Row]) -> Block:
    """Create a block from the columns of _CONTENT. Raises DamageError that names the ladder `subject`."""
    position, played_at, duration, teams, players, slots, rated = columns
    try:
        reported, unpacked, ids = unpack(played_at, duration, teams, players, slots)
        return Block(np.array(position, np.int64), reported, unpacked, ids, np.array(rated, np.bool_))
    except (TypeError, ValueError) as error:
        message = f"a match of {subject} at one of the positions {position[0]} to {position[-1]} is damaged ({error})"
        raise DamageError(f"{message}; `evenmatch verify` shows which one, restore it from a backup") from error


def find_match(store: Store, ladder: int, match_id: str) -> int | None:
    """The position of the match with this id; None: there is none."""
    sql = "SELECT position FROM event WHERE ladder = ? AND id = ? AND kind = ?"
    rows = store.all(sql, ladder, match_id, Kind.MATCH.value)
    return rows[0][0] if rows else None


def read_last_match_ids(store: Store, ladder: int, limit: int) -> list[str]:
    """The ids of up to `limit` matches, latest first."""
    sql = "SELECT id FROM event WHERE ladder = ? AND kind = ? ORDER BY position DESC LIMIT ?"
    return [row[0] for row in store.all(sql, ladder, Kind.MATCH.value, limit)]


def read_match_positions(
    store: Store, ladder: int, lowest: int, before: int, limit: int, since: int | None, until: int | None
) -> list[int]:
    """Positions of up to `limit` matches from position `lowest` up to, but not including, `before`, latest first.

    since, until  only matches that ended at or after, and before (microseconds); None: no bound
    """
    times, values = _bounds(since, until)
    sql = f"SELECT position FROM event WHERE ladder = ? AND position >= ? AND position < ? AND kind = ?{times}"
    listed = (ladder, lowest, before, Kind.MATCH.value, *values)
    return [row[0] for row in store.all(f"{sql} ORDER BY position DESC LIMIT ?", *listed, limit)]


def positions_within(
    store: Store, ladder: int, positions: Sequence[int], since: int | None, until: int | None
) -> list[int]:
    """The positions of those matches that ended at or after `since` and before `until`, in the given order."""
    times, values = _bounds(since, until)
    sql = f"SELECT position FROM event WHERE ladder = ?{times} AND position IN ({{}})"
    within = {row[0] for row in store.among(sql, (ladder, *values), positions)}
    return [position for position in positions if position in within]


def player_counts(store: Store, ladder: int, positions: Sequence[int]) -> dict[int, int]:
    """The number of players of the matches at these positions, by position."""
    sql = "SELECT position, LENGTH(players) FROM event WHERE ladder = ? AND position IN ({})"
    return {position: length // np.dtype(ID).itemsize for position, length in store.among(sql, (ladder,), positions)}


def _bounds(since: int | None, until: int | None) -> tuple[str, list[int]]:
    bounds = [(" AND played_at >= ?", since), (" AND played_at < ?", until)]
    given = [(sql, value) for sql, value in bounds if value is not None]
    return "".join(sql for sql, _ in given), [value for _, value in given]


# writing


def insert_matches(store: Store, ladder: int, columns: Mapping[str, Values], recorded_at: int, generation: int) -> None:
    """Insert matches of one generation that are recorded at the same time.

    columns  position, id, digest, played_at, duration, rated, teams, players, slots, labels, told and seal
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
