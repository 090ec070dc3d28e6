"""Rows of table `appearance`: which player is in which match, by the player id that was reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenmatch.ledger import schema
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.store import Store


def insert(store: Store, ladder: int, ids: Ids, positions: Ids) -> None:
    """Insert which player appeared in which match; a player named twice in a match appeared once."""
    order = np.lexsort((positions, ids))
    ids, positions = ids[order], positions[order]
    once = np.ones(len(ids), np.bool_)
    once[1:] = (ids[1:] != ids[:-1]) | (positions[1:] != positions[:-1])
    if len(ids):
        columns = {"player": ids[once], "position": positions[once]}
        store.insert_columns(schema.appearance, {"ladder": ladder}, columns)


def delete(store: Store, ladder: int) -> None:
    """Delete all appearances of a ladder."""
    store.run("DELETE FROM appearance WHERE ladder = ?", ladder)


PRIME = 2**31 - 1
FACTORS = (1_103_515_245, 1_664_525_807)  # of the player, in the two sums of a checksum


def checksum(store: Store, ladder: int) -> tuple[int, ...]:
    """The checksum of a ladder's appearances, see `checksum_of`; without players and positions that cannot be."""
    linear = [f"(player % {PRIME} * {factor} + position) % {PRIME}" for factor in FACTORS]
    cubes = [f"COALESCE(SUM({term} * {term} % {PRIME} * {term} % {PRIME}), 0)" for term in ("a", "b")]
    terms = f"SELECT {linear[0]} AS a, {linear[1]} AS b FROM appearance "
    terms += f"WHERE ladder = ? AND player < {PRIME} AND position < {PRIME}"  # larger ones are no different from these
    return tuple(map(int, store.all(f"SELECT COUNT(*), {', '.join(cubes)} FROM ({terms}) terms", ladder)[0]))


def checksum_of(ids: Ids, positions: Ids) -> Ids:
    """The number of appearances, and two sums over them of a cube in a prime field of player and position.

    Checksums of parts add up. No term exceeds 63 bits. Unlike with plain sums, it also matters which player is paired
    with which position.
    """
    linear = [((ids % PRIME) * factor + positions) % PRIME for factor in FACTORS]
    cubes = [term * term % PRIME * term % PRIME for term in linear]
    return np.array([len(ids), *(cube.sum() for cube in cubes)], np.int64)


def has_any(store: Store, ladder: int, players: Sequence[int]) -> bool:
    """Whether one of these players appeared in a match."""
    sql = "SELECT 1 FROM appearance WHERE ladder = ? AND player IN ({}) LIMIT 1"
    return bool(store.among(sql, (ladder,), players))


def first_position(store: Store, ladder: int, players: Sequence[int], since: int) -> int | None:
    """Position of the first match of these players that ended at this time (microseconds) or later; None: no match."""
    sql = (
        "SELECT a.position FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "WHERE a.ladder = ? AND a.player = ? AND e.played_at >= ? ORDER BY a.position LIMIT 1"
    )
    first_rows = (store.all(sql, ladder, player, since) for player in players)  # stops at the first match, unlike MIN
    return min((int(rows[0][0]) for rows in first_rows if rows), default=None)


def read_positions(store: Store, ladder: int, players: Sequence[int]) -> set[int]:
    """The positions of all matches of these players."""
    sql = "SELECT position FROM appearance WHERE ladder = ? AND player IN ({})"
    return {row[0] for row in store.among(sql, (ladder,), players)}


def read_last_positions(store: Store, ladder: int, player: int, before: int, limit: int) -> list[int]:
    """The positions below `before` of up to `limit` matches of a player, latest first."""
    sql = "SELECT position FROM appearance WHERE ladder = ? AND player = ? AND position < ?"
    return [row[0] for row in store.all(f"{sql} ORDER BY position DESC LIMIT ?", ladder, player, before, limit)]


def read_labels(store: Store, ladder: int, players: Sequence[int]) -> dict[int, str | None]:
    """The labels of the teams (JSON; None for 0, 1, 2 …) of every match of these players, by position."""
    sql = (
        "SELECT e.position, e.labels FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "WHERE a.ladder = ? AND a.player IN ({})"
    )
    return dict(store.among(sql, (ladder,), players))
