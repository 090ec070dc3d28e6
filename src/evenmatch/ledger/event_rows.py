"""Rows of the tables `event`, `correction` and `appearance`: a ladder's ledger, and two indexes of it.

Events change only when a name is erased. `correction` lists the positions of corrections, and `appearance` says which
player is in which match, by the player id at the time of the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.history import Times
from evenmatch.ledger import ladder_rows, rating_rows, schema
from evenmatch.ledger.block_rating import Block
from evenmatch.ledger.codec import ID, Ids, unpack
from evenmatch.ledger.events import (
    Change,
    Correction,
    Event,
    Kind,
    body_of,
    columns_of,
    correction_of,
    digest_of_change,
    write_body,
)
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.seals import FIRST, correction_seal
from evenmatch.ledger.store import Head, Row, Statement, Store, Values
from evenmatch.systems.system import Rules

BATCH = 20_000  # events read at a time
_CONTENT = "position, played_at, duration, teams, players, slots, rated, context, counts_before"
_WIDTH = len(_CONTENT.split(","))
_COUNTS_BEFORE = _WIDTH - 1
_MATCH = f"SELECT {_CONTENT}, id, generation, told, labels FROM event"


class StoredMatches(NamedTuple):
    """Columns of the matches of a block besides their content.

    told  the journal lines first returned, of `generations`; both empty if they were not read
    """

    ids: Sequence[str]
    generations: Sequence[int] = ()
    told: Sequence[bytes] = ()


# all events


def find_events(store: Store, head: Head, ids: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    """(position, digest) by event id, for ids that are in the ledger."""
    return event_digests(store.each([events_by_id(store, head, ids)])[0]) if ids else {}


def events_by_id(store: Store, head: Head, ids: Sequence[str]) -> Statement:
    """The statement that reads (id, position, digest) for ids that are in the ledger; needs at least one id."""
    sql = "SELECT id, position, digest FROM event WHERE ladder = ? AND id IN ({})"
    return store.by_key(sql, (head.ladder,), ids)


def event_digests(rows: Sequence[Row]) -> dict[str, tuple[int, bytes]]:
    """(position, digest) by id, from the rows of the `events_by_id` statement."""
    return {event_id: (position, bytes(digest)) for event_id, position, digest in rows}


def read_events(store: Store, head: Head) -> Iterator[list[Event]]:
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


def read_changes_between(store: Store, ladder: int, after: int, upto: int) -> list[Row]:
    """(kind, body, players) of the events after a position and up to another, in no particular order."""
    sql = "SELECT kind, body, players FROM event WHERE ladder = ? AND position > ? AND position <= ?"
    return store.all(sql, ladder, after, upto)


def changed_players(later: Sequence[Row]) -> Ids:
    """The players whose states these events (see `read_changes_between`) changed, ascending."""
    packed = [players for _, _, players in later if players is not None]
    return np.unique(np.frombuffer(b"".join(packed), ID).astype(np.int64))


def read_event_id(store: Store, ladder: int, position: int) -> str:
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
    """The id of the first event of each ladder with events, even if the table of ladders lacks it."""
    ids: dict[int, str] = {}
    while rows := store.all(
        "SELECT ladder, id FROM event WHERE ladder > ? ORDER BY ladder, position LIMIT 1", max(ids, default=0)
    ):
        ids[rows[0][0]] = rows[0][1]
    return ids


# matches


@dataclass(frozen=True)
class Scope:
    """The inserted matches to include when reading a ladder: up to a position, and pending ones.

    upto     the last correction of the plan that rates the ladder
    pending  rows as `read_stored` reads them
    """

    upto: int
    pending: Sequence[Row] = ()


def read_blocks(store: Store, head: Head, after: int, upto: int, scope: Scope) -> Iterator[tuple[Block, list[Row]]]:
    """The matches that count after a position, in that order, with (id, generation, told, labels) of each.

    Blocks have BATCH matches, plus the matches inserted among them.
    """
    while rows := _read_in_order(store, head, _MATCH, after, upto, scope):
        block = _block(f"ladder {head.name!r}", list(zip(*rows, strict=True))[:_WIDTH])
        after = int(block.counts_at[-1])
        yield block, [row[_WIDTH:] for row in rows]


def read_stored_events(
    store: Store, head: Head, after: int, upto: int, scope: Scope, *, lines: bool = True
) -> tuple[Block, StoredMatches] | None:
    """The first block of matches that count after a position, with their stored columns; None: there is none.

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
    """The next BATCH matches after a position, and the inserted ones that count among them."""
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
    position, played_at, duration, teams, players, slots, rated, context, counts_before = columns
    counts_at = [own if before is None else before for own, before in zip(position, counts_before, strict=True)]
    try:
        reported, unpacked, ids = unpack(played_at, duration, teams, players, slots)
        positions, order = np.array(position, np.int64), np.array(counts_at, np.int64)
        return Block(positions, reported, unpacked, ids, np.array(rated, np.bool_), order, context)
    except (TypeError, ValueError) as error:
        message = f"a match of {subject} at one of the positions {position[0]} to {position[-1]} is damaged ({error})"
        raise DamageError(f"{message}; `evenmatch verify` shows which one, restore it from a backup") from error


def find_match(store: Store, ladder: int, match_id: str) -> int | None:
    """The position of the match with this id; None: there is none."""
    sql = "SELECT position FROM event WHERE ladder = ? AND id = ? AND kind = ?"
    rows = store.all(sql, ladder, match_id, Kind.MATCH.value)
    return rows[0][0] if rows else None


def counts_at(store: Store, ladder: int, position: int) -> int:
    """Where the match at this position counts: its own position, or the one that it was inserted before."""
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
    """The key of a match in lists, which are in order of the time played."""

    played_at: int
    position: int


END_OF_LIST = ListKey(2**63 - 1, 2**63 - 1)


def read_match_list(
    store: Store, ladder: int, before: ListKey, limit: int, since: int | None, until: int | None
) -> list[ListKey]:
    """The keys of up to `limit` matches below `before`, last played first.

    since, until  only matches that ended from `since` up to `until` (microseconds); None: no bound
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

    columns  position, id, digest, played_at, counted_at, counts_before, duration, rated, teams, players, slots,
             context, labels, told and seal
    """
    same = {"ladder": ladder, "kind": Kind.MATCH.value, "recorded_at": recorded_at, "generation": generation}
    store.insert_columns(schema.event, same, columns)


def append_correction(store: Store, head: Head, change: Change, event_id: str, now: int) -> int:
    """Append a correction to a ladder's events and return its position."""
    position, body, (ids, ratings) = head.position + 1, write_body(body_of(change)), columns_of(change)
    seal = correction_seal(head.seal or FIRST, position, event_id, now, change.kind, body, ids, ratings)
    packed = (ids.astype(ID).tobytes(), ratings.astype("<f8").tobytes()) if len(ids) else (None, None)
    columns = ("ladder", "position", "id", "kind", "digest", "recorded_at", "body", "players", "slots", "seal")
    row = (head.ladder, position, event_id, change.kind.value, digest_of_change(change), now, body, *packed, seal)
    store.insert(schema.event, columns, [row])
    store.insert(schema.correction, ("ladder", "position"), [(head.ladder, position)])
    ladder_rows.set_position(store, head.ladder, position, seal)
    ladder_rows.set_corrected(store, head.ladder, position)
    store.uncommitted.add(head.ladder)
    return position


def replace_change(store: Store, ladder: int, position: int, change: Change) -> None:
    """Replace the reason in a correction, to erase a name; the seal does not cover it."""
    store.run(
        "UPDATE event SET body = ?, digest = ? WHERE ladder = ? AND position = ?",
        *(write_body(body_of(change)), digest_of_change(change), ladder, position),
    )


def replace_labels(store: Store, ladder: int, position: int, labels: str) -> None:
    """Replace the labels of a match's teams, to erase a name."""
    store.run("UPDATE event SET labels = ? WHERE ladder = ? AND position = ?", labels, ladder, position)


def read_events_after(store: Store, ladder: int, after: int, limit: int) -> list[Row]:
    """(position, id, kind, played_at) of the first `limit` events after a position, in order."""
    sql = "SELECT position, id, kind, played_at FROM event WHERE ladder = ? AND position > ? ORDER BY position LIMIT ?"
    return store.all(sql, ladder, after, limit)


def read_corrections(store: Store, head: Head, upto: int, *, after: int = 0) -> list[Correction]:
    """The corrections after a position and up to one, in order. Raises DamageError if one is damaged."""
    sql = f"{_CORRECTIONS} AND c.position > ? AND c.position <= ? ORDER BY c.position"
    rows = store.all(sql, head.ladder, after, upto)
    return [correction_of(head.name, *row) for row in rows]


def read_last_corrections(store: Store, head: Head, before: int, limit: int | None) -> list[Correction]:
    """Up to `limit` corrections (None: all) before a position, latest first. Raises DamageError if one is damaged."""
    most = 2**62 if limit is None else limit
    rows = store.all(f"{_CORRECTIONS} AND c.position < ? ORDER BY c.position DESC LIMIT ?", head.ladder, before, most)
    return [correction_of(head.name, *row) for row in rows]


_CORRECTIONS = (
    "SELECT e.position, e.id, e.recorded_at, e.kind, e.body, e.players, e.slots FROM correction c "
    "JOIN event e ON e.ladder = c.ladder AND e.position = c.position WHERE c.ladder = ?"
)


def read_plan(store: Store, head: Head, upto: int) -> Plan:
    """The plan from the corrections up to a position, reading only corrections that no cached plan contains."""
    known = store.plans.find(head.ladder, upto)
    if known is not None and known.upto == upto:
        return known
    plan = plan_of(read_corrections(store, head, upto, after=0 if known is None else known.upto), known)
    if plan.upto == upto and head.ladder not in store.uncommitted:
        store.plans.add(head.ladder, plan)
    return plan


def read_rules(store: Store, head: Head, generation: int) -> Rules:
    """The last rules of a generation; it has a single system, but parameters may have changed within it."""
    return read_plan(store, head, rating_rows.read_planned(store, head, generation)).last_rules


def read_correction_positions(store: Store, ladder: int) -> list[int]:
    """The positions of all corrections, ascending."""
    return [row[0] for row in store.all("SELECT position FROM correction WHERE ladder = ? ORDER BY position", ladder)]


def insert_appearances(store: Store, ladder: int, ids: Ids, positions: Ids, played_at: Times) -> None:
    """Insert the appearances of players in matches. A player named twice in a match appears once."""
    order = np.lexsort((positions, played_at, ids))
    ids, positions, played_at = ids[order], positions[order], played_at[order]
    once = np.ones(len(ids), np.bool_)
    once[1:] = (ids[1:] != ids[:-1]) | (positions[1:] != positions[:-1])
    if len(ids):
        columns = {"player": ids[once], "played_at": played_at[once], "position": positions[once]}
        store.insert_columns(schema.appearance, {"ladder": ladder}, columns)


def delete_appearances(store: Store, ladder: int) -> None:
    """Delete all appearances of a ladder."""
    store.run("DELETE FROM appearance WHERE ladder = ?", ladder)


PRIME = 2**31 - 1
FACTORS = (1_103_515_245, 1_664_525_807)  # of the player, in the two sums of a checksum
TIME_FACTOR = 1_013_904_223


def sum_appearances(store: Store, ladder: int) -> tuple[int, ...]:
    """The checksum of a ladder's appearances, see `appearance_sums`; ignores impossible players and positions."""
    time = f"((played_at % {PRIME} + {PRIME}) % {PRIME} * {TIME_FACTOR} % {PRIME})"
    linear = [f"(player % {PRIME} * {factor} + position + {time}) % {PRIME}" for factor in FACTORS]
    cubes = [f"COALESCE(SUM({term} * {term} % {PRIME} * {term} % {PRIME}), 0)" for term in ("a", "b")]
    terms = f"SELECT {linear[0]} AS a, {linear[1]} AS b FROM appearance "
    terms += f"WHERE ladder = ? AND player < {PRIME} AND position < {PRIME}"  # larger ones are no different from these
    return tuple(map(int, store.all(f"SELECT COUNT(*), {', '.join(cubes)} FROM ({terms}) terms", ladder)[0]))


def appearance_sums(ids: Ids, positions: Ids, played_at: Times) -> Ids:
    """The number of appearances, and two sums over them of a cube in a prime field of player, position and time.

    Checksums of parts add up. No term exceeds 63 bits. Unlike plain sums, they change if a player is paired with
    another position.
    """
    time = played_at % PRIME * TIME_FACTOR % PRIME  # never negative, unlike the remainder in SQL
    linear = [((ids % PRIME) * factor + positions + time) % PRIME for factor in FACTORS]
    cubes = [term * term % PRIME * term % PRIME for term in linear]
    return np.array([len(ids), *(cube.sum() for cube in cubes)], np.int64)


def has_appeared(store: Store, ladder: int, players: Sequence[int]) -> bool:
    """True if one of these players appeared in a match."""
    sql = "SELECT 1 FROM appearance WHERE ladder = ? AND player IN ({}) LIMIT 1"
    return bool(store.among(sql, (ladder,), players))


def first_rated_position(store: Store, ladder: int, players: Sequence[int], since: int) -> int | None:
    """The first change of these players' ratings by a match that ended at a time (microseconds) or later.

    It is the match's position, or the one before which an inserted match counts. None: there is no such match.
    """
    own = "SELECT MIN(position) FROM appearance WHERE ladder = ? AND player = ? AND played_at >= ?"
    inserted = (
        "SELECT MIN(e.counts_before) FROM event e JOIN appearance a ON a.ladder = e.ladder AND a.position = e.position "
        "AND a.played_at = e.played_at AND a.player = ? WHERE e.ladder = ? AND e.counts_before IS NOT NULL "
        "AND e.played_at >= ?"
    )
    firsts = [store.all(own, ladder, player, since)[0][0] for player in players]
    firsts += [store.all(inserted, player, ladder, since)[0][0] for player in players]
    return min((int(first) for first in firsts if first is not None), default=None)


def read_match_positions(store: Store, ladder: int, players: Sequence[int]) -> set[int]:
    """The positions of all matches of these players."""
    sql = "SELECT position FROM appearance WHERE ladder = ? AND player IN ({})"
    return {row[0] for row in store.among(sql, (ladder,), players)}


def read_match_list_of_player(
    store: Store, ladder: int, player: int, before: ListKey, limit: int, since: int | None, until: int | None
) -> list[ListKey]:
    """The keys of up to `limit` matches of a player below `before`, last played first; see `read_match_list`."""
    times, values = list_bounds(before, since, until)
    sql = f"SELECT played_at, position FROM appearance WHERE ladder = ? AND player = ? AND {times}"
    rows = store.all(f"{sql} ORDER BY played_at DESC, position DESC LIMIT ?", ladder, player, *values, limit)
    return [ListKey(*row) for row in rows]


def count_contexts(store: Store, head: Head, players: Sequence[int]) -> list[tuple[str, int]]:
    """(context, number) of these players' rated matches, without those that have no context."""
    sql = (
        "SELECT e.context, COUNT(*) FROM appearance a "
        "JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "LEFT JOIN journal j ON j.ladder = a.ladder AND j.generation = ? AND j.position = a.position "
        "WHERE a.ladder = ? AND e.context IS NOT NULL AND LENGTH(COALESCE(j.lines, e.told)) > 0 "
        "AND a.player IN ({}) GROUP BY e.context"
    )
    return [(row[0], row[1]) for row in store.among(sql, (head.generation, head.ladder), players)]


def read_team_labels(store: Store, ladder: int, players: Sequence[int]) -> dict[int, str | None]:
    """The labels of the teams (JSON; None for 0, 1, 2 …) of every match of these players, by position."""
    sql = (
        "SELECT e.position, e.labels FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "WHERE a.ladder = ? AND a.player IN ({})"
    )
    return dict(store.among(sql, (ladder,), players))
