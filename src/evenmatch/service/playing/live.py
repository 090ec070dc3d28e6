"""The rows of running matches. Every function works inside the caller's transaction, in which `line` is locked first.

Times are microseconds since the Unix epoch. A match's seats (table `seat`) are the caller's to give.
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
PRUNED = 500  # rows looked at at a time

_COLUMNS = ("match_id", "change", "state", "queue", "started_at", "expires_at", "body", "openings")
_LIVE = f"SELECT {', '.join(_COLUMNS)} FROM live WHERE ladder = ?"


class Slot(TypedDict):
    """A player of a running match.

    player  the name they came under;  id  theirs;  ticket  the one they waited in; none where the match was announced
    spells  when they came and when they left, again and again; the last leave is null while they are there
    struck  the penalty before and after the strike for leaving: see striking.py
    """

    player: str
    id: int
    ticket: NotRequired[int | None]
    role: NotRequired[str | None]
    spells: NotRequired[list[list[int | None]]]
    struck: NotRequired[list[list[float] | None]]


class Start(TypedDict):
    """What the game server said when it announced the match, or confirmed its start; `teams`: ids, ascending."""

    teams: list[list[int]]
    started_at: int | None
    expires_in: float | None
    queue: str | None


class Close(TypedDict):
    """What the game server said when the match ended; told: as it was asked for, so that a retry is known again."""

    told: str
    ended_at: int


class Body(TypedDict):
    """What is kept of a running match as JSON.

    announced  True: it was not made by a queue;  start  None or absent: its server has said nothing yet
    """

    teams: list[list[Slot]]
    region: NotRequired[str | None]
    odds: NotRequired[float | None]
    spread: NotRequired[float | None]
    announced: NotRequired[bool]
    start: NotRequired[Start | None]
    close: NotRequired[Close | None]
    reason: NotRequired[str | None]


class Openings(TypedDict):
    """Seats that a queue is to fill: of each team how many."""

    queue: str
    seats: list[int]


class Live(NamedTuple):
    """A running match, or one that was. state: open, closed, cancelled or expired."""

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

    def slots(self) -> list[Slot]:
        """Everybody who is or was in it."""
        return [slot for team in self.body["teams"] for slot in team]


def lock(store: Store, ladder: int) -> int:
    """Wait for a ladder's `line` row, which is made where there is none; the last change."""
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
    """Add a match that is on from now; who has no spells in it is there from its start."""
    for slot in (slot for team in body["teams"] for slot in team):
        slot.setdefault("spells", [[started_at, None]])
    row = (ladder, match_id, change, OPEN, queue, started_at, expires_at, _json(body), None)
    store.rows.insert(store.connection, live_schema.live, ("ladder", *_COLUMNS), [row])


def fill(store: Store, ladder: int, match_id: str, change: int, team: int, players: Sequence[Slot], now: int) -> bool:
    """The same as fill_teams for one team."""
    teams = [players if at == team else () for at in range(team + 1)]
    return fill_teams(store, ladder, match_id, change, teams, now)


def fill_teams(
    store: Store, ladder: int, match_id: str, change: int, teams: Sequence[Sequence[Slot]], now: int
) -> bool:
    """Add players, who are there from now, to teams with open seats, and take those off.

    False, and nothing is changed, where the match is over, has not so many open seats, or has one of them in it
    already, be it in another team that they left. Who left the same team before is the same player again.
    """
    match = read(store, ladder, [match_id]).get(match_id)
    if match is None or not match.is_on or match.openings is None:
        return False
    seats = match.openings["seats"]
    if len(teams) > len(seats) or any(len(coming) > seats[at] for at, coming in enumerate(teams)):
        return False
    there = {slot["id"]: (at, slot) for at, side in enumerate(match.body["teams"]) for slot in side}
    known = [(at, *there[one["id"]]) for at, coming in enumerate(teams) for one in coming if one["id"] in there]
    if any(at != before or slot["spells"][-1][1] is None for at, before, slot in known):
        return False
    for _, _, slot in known:
        slot["spells"].append([now, None])
    for at, coming in enumerate(teams):
        match.body["teams"][at] += [{**one, "spells": [[now, None]]} for one in coming if one["id"] not in there]
        seats[at] -= len(coming)
    write(store, ladder, match._replace(change=change, openings=match.openings if any(seats) else None))
    return True


def write(store: Store, ladder: int, match: Live) -> None:
    """Put a row in the place of the one with its id."""
    openings = None if match.openings is None else _json(match.openings)
    row = (ladder, *match[:6], _json(match.body), openings)
    store.rows.upsert(store.connection, live_schema.live, ("ladder", *_COLUMNS), [row])


def read(store: Store, ladder: int, match_ids: Sequence[str]) -> dict[str, Live]:
    """Those of these matches that were ever begun, by id."""
    found = store.rows.among(store.connection, f"{_LIVE} AND match_id IN ({{}})", (ladder,), match_ids)
    return {row[0]: _live(row) for row in found}


def open_among(store: Store, ladder: int, match_ids: Sequence[str]) -> list[str]:
    """Those of these matches that are on."""
    sql = "SELECT match_id FROM live WHERE ladder = ? AND state = ? AND match_id IN ({})"
    return [row[0] for row in store.rows.among(store.connection, sql, (ladder, OPEN), match_ids)]


def check_on(match: Live) -> None:
    """Raise ConflictError where a match is over or being closed."""
    if not match.is_on:
        state = "being closed" if match.state == OPEN else match.state
        raise ConflictError(f"match {match.match_id!r} is {state}; accepted is one that is on")


def changed(store: Store, ladder: int, after: int) -> list[Live]:
    """Every match that changed after a change, in order: so a mirror follows."""
    return [_live(row) for row in store.all(f"{_LIVE} AND change > ? ORDER BY change", ladder, after)]


def running(store: Store, ladder: int) -> list[Live]:
    """Every match that is on, by change. It reads all rows: for the first look; `changed` tells what comes."""
    return [_live(row) for row in store.all(f"{_LIVE} AND state = ? ORDER BY change", ladder, OPEN)]


def expiries(store: Store, ladder: int, after: int | None) -> list[Row]:
    """(match id, state, expires_at) of what changed after a change; None: of all matches that are on."""
    sql = "SELECT match_id, state, expires_at FROM live WHERE ladder = ? AND"
    return (
        store.all(f"{sql} state = ?", ladder, OPEN) if after is None else store.all(f"{sql} change > ?", ladder, after)
    )


def last_change(store: Store, ladder: int) -> int:
    """Of a ladder's tickets, offers and matches, without a lock; 0 where nothing ever changed."""
    found = store.all("SELECT change FROM line WHERE ladder = ?", ladder)
    return int(found[0][0]) if found else 0


def take_seats(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Seat those of these players in a match who have no seat."""
    rows = [(player, ladder, None, match_id) for player in players]
    columns = ("player", "ladder", "ticket", "match_id")
    store.rows.upsert(store.connection, live_schema.seat, columns, rows, same=True)


def free_seats(store: Store, ladder: int, match_id: str, players: Iterable[int]) -> None:
    """Unseat those of these players whose seat is in a match."""
    sql = "DELETE FROM seat WHERE ladder = ? AND match_id = ? AND player IN ({}) RETURNING player"
    store.rows.among(store.connection, sql, (ladder, match_id), sorted(set(players)))


def prune(store: Store, ladder: int, before: int) -> int:
    """Forget matches that are over and would have expired before a time, of those that changed longest ago; how many.

    At most PRUNED are looked at, so nobody waits for long.
    """
    sql = "SELECT match_id, state, expires_at FROM live WHERE ladder = ? ORDER BY change LIMIT ?"
    gone = [row[0] for row in store.all(sql, ladder, PRUNED) if row[1] != OPEN and row[2] < before]
    delete = "DELETE FROM live WHERE ladder = ? AND match_id IN ({}) RETURNING match_id"
    store.rows.among(store.connection, delete, (ladder,), gone)
    return len(gone)


def _live(row: Row) -> Live:
    body, openings = json.loads(row[6]), None if row[7] is None else json.loads(row[7])
    return Live._make((*row[:6], body, openings))


def _json(content: Body | Openings) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
