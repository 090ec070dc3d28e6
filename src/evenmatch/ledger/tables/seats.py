"""Rows of table `seat`: where each player waits or plays, in one place over all ladders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store


class Seat(NamedTuple):
    """A player's seat: the ticket they wait in, or the match they play. ladder: its id."""

    ladder: int
    ticket: int | None
    match_id: str | None


_COLUMNS = ("player", *Seat._fields)


def read(store: Store, players: Sequence[int]) -> dict[int, Seat]:
    """The seats of those of these players who have one, by player id."""
    sql = f"SELECT {', '.join(_COLUMNS)} FROM seat WHERE player IN ({{}})"
    return {row[0]: Seat(*row[1:]) for row in store.among(sql, (), players)}


def read_with_ladders(store: Store, players: Sequence[int]) -> list[tuple[int, str, Seat]]:
    """(player id, name of the ladder, seat) of those of these players who have one, ordered by player id."""
    sql = (
        "SELECT s.player, l.name, s.ladder, s.ticket, s.match_id FROM seat s JOIN ladder l ON l.ladder = s.ladder "
        "WHERE s.player IN ({})"
    )
    rows = store.among(sql, (), players)
    return [(player, name, Seat(*seat)) for player, name, *seat in sorted(rows)]


def insert_missing(store: Store, seats: Mapping[int, Seat]) -> None:
    """Insert seats by player id; players who have a seat keep it."""
    rows = sorted((player, *seat) for player, seat in seats.items())
    store.upsert(live_schema.seat, _COLUMNS, rows, same=True)


def move(store: Store, players: Iterable[int], source: int, ladder: int, ticket: int) -> None:
    """Give players whose seat is on ladder `source` the seat of a ticket of another ladder."""
    sql = "UPDATE seat SET ladder = ?, ticket = ? WHERE ladder = ? AND player IN ({})"
    store.run_among(sql, (ladder, ticket, source), sorted(players))


def set_matches(store: Store, ladder: int, matches: Mapping[int, str]) -> None:
    """Record which match players on this ladder play, by player id."""
    rows = [(player, ladder, match_id) for player, match_id in sorted(matches.items())]
    store.update(live_schema.seat, ("player", "ladder"), ("match_id",), rows)


def delete(store: Store, ladder: int, players: Iterable[int]) -> None:
    """Delete the seats of players on this ladder."""
    store.run_among("DELETE FROM seat WHERE ladder = ? AND player IN ({})", (ladder,), sorted(players))


def delete_of_match(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Delete the seats of players in a match; their seats elsewhere stay."""
    sql = "DELETE FROM seat WHERE ladder = ? AND match_id = ? AND player IN ({})"
    store.run_among(sql, (ladder, match_id), sorted(set(players)))


def count_by_ladder(store: Store) -> list[Row]:
    """(ladder id, waiting players, playing players, open matches with players) of each ladder with seats.

    With the seats that hold on one ladder only.
    """
    sql = (
        "SELECT ladder, COUNT(*) - COUNT(match_id), COUNT(match_id), COUNT(DISTINCT match_id) FROM "
        "(SELECT ladder, match_id FROM seat UNION ALL SELECT ladder, match_id FROM ladder_seat) AS taken "
        "GROUP BY ladder"
    )
    return store.all(sql)
