"""Rows of table `appearance`: which player is in which match, by the player id that was reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenmatch.history import Times
from evenmatch.ledger import schema
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables.events import ListKey, list_bounds


def insert(store: Store, ladder: int, ids: Ids, positions: Ids, played_at: Times) -> None:
    """Insert which player appeared in which match; a player named twice in a match appeared once."""
    order = np.lexsort((positions, played_at, ids))
    ids, positions, played_at = ids[order], positions[order], played_at[order]
    once = np.ones(len(ids), np.bool_)
    once[1:] = (ids[1:] != ids[:-1]) | (positions[1:] != positions[:-1])
    if len(ids):
        columns = {"player": ids[once], "played_at": played_at[once], "position": positions[once]}
        store.insert_columns(schema.appearance, {"ladder": ladder}, columns)


def delete(store: Store, ladder: int) -> None:
    """Delete all appearances of a ladder."""
    store.run("DELETE FROM appearance WHERE ladder = ?", ladder)


PRIME = 2**31 - 1
FACTORS = (1_103_515_245, 1_664_525_807)  # of the player, in the two sums of a checksum
TIME_FACTOR = 1_013_904_223


def checksum(store: Store, ladder: int) -> tuple[int, ...]:
    """The checksum of a ladder's appearances, see `checksum_of`; without players and positions that cannot be."""
    time = f"((played_at % {PRIME} + {PRIME}) % {PRIME} * {TIME_FACTOR} % {PRIME})"
    linear = [f"(player % {PRIME} * {factor} + position + {time}) % {PRIME}" for factor in FACTORS]
    cubes = [f"COALESCE(SUM({term} * {term} % {PRIME} * {term} % {PRIME}), 0)" for term in ("a", "b")]
    terms = f"SELECT {linear[0]} AS a, {linear[1]} AS b FROM appearance "
    terms += f"WHERE ladder = ? AND player < {PRIME} AND position < {PRIME}"  # larger ones are no different from these
    return tuple(map(int, store.all(f"SELECT COUNT(*), {', '.join(cubes)} FROM ({terms}) terms", ladder)[0]))


def checksum_of(ids: Ids, positions: Ids, played_at: Times) -> Ids:
    """The number of appearances, and two sums over them of a cube in a prime field of player, position and time.

    Checksums of parts add up. No term exceeds 63 bits. Unlike with plain sums, it also matters which player is paired
    with which position.
    """
    time = played_at % PRIME * TIME_FACTOR % PRIME  # never negative, unlike the remainder in SQL
    linear = [((ids % PRIME) * factor + positions + time) % PRIME for factor in FACTORS]
    cubes = [term * term % PRIME * term % PRIME for term in linear]
    return np.array([len(ids), *(cube.sum() for cube in cubes)], np.int64)


def has_any(store: Store, ladder: int, players: Sequence[int]) -> bool:
    """Whether one of these players appeared in a match."""
    sql = "SELECT 1 FROM appearance WHERE ladder = ? AND player IN ({}) LIMIT 1"
    return bool(store.among(sql, (ladder,), players))


def first_position(store: Store, ladder: int, players: Sequence[int], since: int) -> int | None:
    """Where the ratings of these players first changed by a match that ended at a time (microseconds) or later.

    It is a match's position, or the one before which an inserted match counts. None: there is no such match.
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


def read_positions(store: Store, ladder: int, players: Sequence[int]) -> set[int]:
    """The positions of all matches of these players."""
    sql = "SELECT position FROM appearance WHERE ladder = ? AND player IN ({})"
    return {row[0] for row in store.among(sql, (ladder,), players)}


def read_list(
    store: Store, ladder: int, player: int, before: ListKey, limit: int, since: int | None, until: int | None
) -> list[ListKey]:
    """The keys of up to `limit` matches of a player below `before`, the last played first; see `events.read_list`."""
    times, values = list_bounds(before, since, until)
    sql = f"SELECT played_at, position FROM appearance WHERE ladder = ? AND player = ? AND {times}"
    rows = store.all(f"{sql} ORDER BY played_at DESC, position DESC LIMIT ?", ladder, player, *values, limit)
    return [ListKey(*row) for row in rows]


def read_labels(store: Store, ladder: int, players: Sequence[int]) -> dict[int, str | None]:
    """The labels of the teams (JSON; None for 0, 1, 2 …) of every match of these players, by position."""
    sql = (
        "SELECT e.position, e.labels FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "WHERE a.ladder = ? AND a.player IN ({})"
    )
    return dict(store.among(sql, (ladder,), players))
