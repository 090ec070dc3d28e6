"""The rows of live matches. Every function works in the caller's transaction, which holds the ladder's change lock.

Times are microseconds since the Unix epoch. The caller assigns the seats of a match (table `seat`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NotRequired, TypedDict

from evenmatch.errors import ConflictError
from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Store

OPEN, CLOSED, CANCELLED, EXPIRED = "open", "closed", "cancelled", "expired"
PRUNED = 500  # rows checked at once

_COLUMNS = ("match_id", "change", "state", "queue", "started_at", "expires_at", "body", "openings")
_LIVE = f"SELECT {', '.join(_COLUMNS)} FROM live WHERE ladder = ?"


class MatchSlot(TypedDict):
    """A player of a live match.

    player  name on joining;  id  player id;  ticket  the ticket they waited in; absent if the match was announced
    spells  attendance spans [joined, left]; the last `left` is null while the player is there
    struck  the penalty before and after the strike for leaving: see strikes.py
    """

    player: str
    id: int
    ticket: NotRequired[int | None]
    role: NotRequired[str | None]
    spells: NotRequired[list[list[int | None]]]
    struck: NotRequired[list[list[float] | None]]


class MatchStart(TypedDict):
    """The game server's announcement of the match or confirmation of its start; `teams`: ids, ascending."""

    teams: list[list[int]]
    started_at: int | None
    expires_in: float | None
    queue: str | None


class MatchClosing(TypedDict):
    """How a match is being closed. told: text of the ending (Ending.told), by which a retry is recognized."""

    told: str
    ended_at: int


class Body(TypedDict):
    """The part of a live match that is stored as JSON.

    announced  True: not created by a queue;  start  None or absent: the game server has not confirmed it yet
    """

    teams: list[list[MatchSlot]]
    region: NotRequired[str | None]
    odds: NotRequired[float | None]
    spread: NotRequired[float | None]
    announced: NotRequired[bool]
    start: NotRequired[MatchStart | None]
    close: NotRequired[MatchClosing | None]
    reason: NotRequired[str | None]


class Openings(TypedDict):
    """Open slots that a queue should fill; seats: their number in each team."""

    queue: str
    seats: list[int]


class LiveMatchRow(NamedTuple):
    """A live match, or one that has ended. state: open, closed, cancelled or expired."""

    match_id: str
    change: int
    state: str
    queue: str | None
    started_at: int
    expires_at: int
    body: Body
    openings: Openings | None

    @property
    def is_on(self) -> bool:
        """Whether it is neither over nor being closed."""
        return self.state == OPEN and self.body.get("close") is None

    def slots(self) -> list[MatchSlot]:
        """The slots of all players who are or were in the match."""
        return [slot for team in self.body["teams"] for slot in team]


def lock(store: Store, ladder: int) -> int:
    """Wait for a ladder's change lock (its row in `line`, created if missing); return the last change number."""
    sql = "INSERT INTO line (ladder, change) VALUES (?, 0) ON CONFLICT (ladder) DO UPDATE SET change = line.change"
    last: int = store.all(f"{sql} RETURNING change", ladder)[0][0]
    return last


def begin(
    store: Store,
    ladder: int,
    match_id: str,
    change: int,
    queue: str | None,
    started_at: int,
    expires_at: int,
    body: Body,
) -> None:
    """Add a live match; players without attendance spans are there from its start."""
    for slot in (slot for team in body["teams"] for slot in team):
        slot.setdefault("spells", [[started_at, None]])
    row = (ladder, match_id, change, OPEN, queue, started_at, expires_at, _json(body), None)
    store.rows.insert(store.connection, live_schema.live, ("ladder", *_COLUMNS), [row])


def fill(
    store: Store, ladder: int, match_id: str, change: int, team: int, players: Sequence[MatchSlot], now: int
) -> bool:
    """Like `fill_teams`, for one team."""
    teams = [players if index == team else () for index in range(team + 1)]
    return fill_teams(store, ladder, match_id, change, teams, now)


def fill_teams(
    store: Store, ladder: int, match_id: str, change: int, teams: Sequence[Sequence[MatchSlot]], now: int
) -> bool:
    """Add players to the open slots of teams, present from now on.

    Returns False and changes nothing if the match is over, has too few open slots, or has one of the players already,
    present or having left another team. A player who left the same team before gets a new attendance span.
    """
    match = read(store, ladder, [match_id]).get(match_id)
    if match is None or not match.is_on or match.openings is None:
        return False
    seats = match.openings["seats"]
    if len(teams) > len(seats) or any(len(joining) > seats[index] for index, joining in enumerate(teams)):
        return False
    known = {slot["id"]: (index, slot) for index, side in enumerate(match.body["teams"]) for slot in side}
    returning = [
        (index, *known[new["id"]]) for index, joining in enumerate(teams) for new in joining if new["id"] in known
    ]
    if any(index != before or slot["spells"][-1][1] is None for index, before, slot in returning):
        return False
    for _, _, slot in returning:
        slot["spells"].append([now, None])
    for index, joining in enumerate(teams):
        match.body["teams"][index] += [{**new, "spells": [[now, None]]} for new in joining if new["id"] not in known]
        seats[index] -= len(joining)
    write(store, ladder, match._replace(change=change, openings=match.openings if any(seats) else None))
    return True


def write(store: Store, ladder: int, match: LiveMatchRow) -> None:
    """Insert a match, or replace the one with its id."""
    openings = None if match.openings is None else _json(match.openings)
    row = (ladder, *match[:6], _json(match.body), openings)
    store.rows.upsert(store.connection, live_schema.live, ("ladder", *_COLUMNS), [row])


def read(store: Store, ladder: int, match_ids: Sequence[str]) -> dict[str, LiveMatchRow]:
    """The live or ended matches among these ids, by id."""
    rows = store.rows.among(store.connection, f"{_LIVE} AND match_id IN ({{}})", (ladder,), match_ids)
    return {row[0]: _live(row) for row in rows}


def open_among(store: Store, ladder: int, match_ids: Sequence[str]) -> list[str]:
    """The ids of the live matches among these."""
    sql = "SELECT match_id FROM live WHERE ladder = ? AND state = ? AND match_id IN ({})"
    return [row[0] for row in store.rows.among(store.connection, sql, (ladder, OPEN), match_ids)]


def check_on(match: LiveMatchRow) -> None:
    """Raise ConflictError if a match is over or being closed."""
    if not match.is_on:
        state = "being closed" if match.state == OPEN else match.state
        raise ConflictError(f"match {match.match_id!r} is {state}; it cannot be changed any more")


def changed(store: Store, ladder: int, after: int) -> list[LiveMatchRow]:
    """Every match with a later change number, in order of changes."""
    return [_live(row) for row in store.all(f"{_LIVE} AND change > ? ORDER BY change", ladder, after)]


def running(store: Store, ladder: int) -> list[LiveMatchRow]:
    """Every live match, in order of changes. Reads all rows: for the first read; then use `changed`."""
    return [_live(row) for row in store.all(f"{_LIVE} AND state = ? ORDER BY change", ladder, OPEN)]


def expiries(store: Store, ladder: int, after: int | None) -> list[Row]:
    """(match id, state, expires_at) of matches with a later change number; None: of all live matches."""
    sql = "SELECT match_id, state, expires_at FROM live WHERE ladder = ? AND"
    return (
        store.all(f"{sql} state = ?", ladder, OPEN) if after is None else store.all(f"{sql} change > ?", ladder, after)
    )


def last_change(store: Store, ladder: int) -> int:
    """The last change number of a ladder's tickets, offers and live matches, read without the lock; 0: none yet."""
    rows = store.all("SELECT change FROM line WHERE ladder = ?", ladder)
    return int(rows[0][0]) if rows else 0


def take_seats(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Give the players without a seat a seat in a match."""
    rows = [(player, ladder, None, match_id) for player in players]
    columns = ("player", "ladder", "ticket", "match_id")
    store.rows.upsert(store.connection, live_schema.seat, columns, rows, same=True)


def free_seats(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Remove the players' seats in a match; seats elsewhere stay."""
    sql = "DELETE FROM seat WHERE ladder = ? AND match_id = ? AND player IN ({}) RETURNING player"
    store.rows.among(store.connection, sql, (ladder, match_id), sorted(set(players)))


def prune(store: Store, ladder: int, before: int) -> int:
    """Delete ended matches whose expiry time is before a time; return their number.

    Checks only the PRUNED matches that changed longest ago, to keep the transaction short.
    """
    sql = "SELECT match_id, state, expires_at FROM live WHERE ladder = ? ORDER BY change LIMIT ?"
    old = [row[0] for row in store.all(sql, ladder, PRUNED) if row[1] != OPEN and row[2] < before]
    delete = "DELETE FROM live WHERE ladder = ? AND match_id IN ({}) RETURNING match_id"
    store.rows.among(store.connection, delete, (ladder,), old)
    return len(old)


def _live(row: Row) -> LiveMatchRow:
    body, openings = json.loads(row[6]), None if row[7] is None else json.loads(row[7])
    return LiveMatchRow._make((*row[:6], body, openings))


def _json(content: Body | Openings) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
