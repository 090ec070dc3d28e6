"""The table `live` of live matches, including those that have ended. Writers hold the ladder's change lock.

Times are microseconds since the Unix epoch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, NotRequired, TypedDict

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Row, Store

OPEN, CLOSED, CANCELLED, EXPIRED = "open", "closed", "cancelled", "expired"
CHECKED_AT_ONCE = 500  # rows, when old matches are deleted

_COLUMNS = ("match_id", "change", "state", "queue", "started_at", "expires_at", "body", "openings")
_LIVE = f"SELECT {', '.join(_COLUMNS)} FROM live WHERE ladder = ?"


class MatchSlot(TypedDict):
    """A player of a live match.

    player  name at joining;  id  player id
    ticket  the ticket in which the player waited; absent if the match was announced
    spells  attendance spans [joined, left]; the last `left` is null while the player is present
    sides   [since, team] of a player who changed sides, starting with the first team
    struck  the penalty before and after the strike for leaving: see live_matches.strike
    """

    player: str
    id: int
    ticket: NotRequired[int | None]
    role: NotRequired[str | None]
    spells: NotRequired[list[list[int | None]]]
    sides: NotRequired[list[list[int]]]
    struck: NotRequired[list[list[float] | None]]


class MatchStart(TypedDict):
    """The game server's announcement of the match, or its confirmation of the start. teams: ids, ascending."""

    teams: list[list[int]]
    started_at: int | None
    expires_in: float | None
    queue: str | None


class StoredConnection(TypedDict):
    """Where the players of a match connect. tokens: by player id, as text because JSON has no other keys."""

    address: str
    tokens: dict[str, str]


class MatchClosing(TypedDict):
    """How a match is being closed. fingerprint: of the ending, which identifies retries.

    side_counts  the ladder's setting at that moment
    """

    fingerprint: str
    ended_at: int
    side_counts: str


class LiveMatchBody(TypedDict):
    """The part of a live match that is stored as JSON.

    attributes, map  chosen by the queue that created the match; missing: none
    announced  True if no queue created it;  start  None or absent until the game server confirms the match
    connection  absent until it is announced, and deleted when the match ends
    """

    teams: list[list[MatchSlot]]
    region: NotRequired[str | None]
    attributes: NotRequired[dict[str, str]]
    map: NotRequired[str]
    odds: NotRequired[list[float] | None]
    spread: NotRequired[float | None]
    announced: NotRequired[bool]
    start: NotRequired[MatchStart | None]
    connection: NotRequired[StoredConnection]
    close: NotRequired[MatchClosing | None]
    reason: NotRequired[str | None]


class Openings(TypedDict):
    """Open slots that a queue fills. seats: their number in each team."""

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
    body: LiveMatchBody
    openings: Openings | None

    @property
    def is_on(self) -> bool:
        """Whether the match is neither over nor being closed."""
        return self.state == OPEN and self.body.get("close") is None

    def slots(self) -> list[MatchSlot]:
        """The slots of all players who are or were in the match."""
        return [slot for team in self.body["teams"] for slot in team]


def insert(store: Store, ladder: int, match: LiveMatchRow) -> None:
    """Insert a new match."""
    store.insert(live_schema.live, ("ladder", *_COLUMNS), [_row(ladder, match)])


def put(store: Store, ladder: int, match: LiveMatchRow) -> None:
    """Insert a match, or replace the one with its id."""
    store.upsert(live_schema.live, ("ladder", *_COLUMNS), [_row(ladder, match)])


def read(store: Store, ladder: int, match_ids: Sequence[str]) -> dict[str, LiveMatchRow]:
    """The live or ended matches with these ids, by id."""
    rows = store.among(f"{_LIVE} AND match_id IN ({{}})", (ladder,), match_ids)
    return {row[0]: _live(row) for row in rows}


def ids_of_open(store: Store, ladder: int, match_ids: Sequence[str]) -> list[str]:
    """The ids of the live matches among these."""
    sql = "SELECT match_id FROM live WHERE ladder = ? AND state = ? AND match_id IN ({})"
    return [row[0] for row in store.among(sql, (ladder, OPEN), match_ids)]


def read_changed(store: Store, ladder: int, after: int) -> list[LiveMatchRow]:
    """Every match with a later change number, in order of changes."""
    return [_live(row) for row in store.all(f"{_LIVE} AND change > ? ORDER BY change", ladder, after)]


def read_open(store: Store, ladder: int) -> list[LiveMatchRow]:
    """Every live match, in order of changes. Reads all rows; use `read_changed` after the first time."""
    return [_live(row) for row in store.all(f"{_LIVE} AND state = ? ORDER BY change", ladder, OPEN)]


def count_open(store: Store, ladder: int) -> int:
    """The number of live matches. The state is a literal so that PostgreSQL can use the partial index."""
    number: int = store.all("SELECT COUNT(*) FROM live WHERE ladder = ? AND state = 'open'", ladder)[0][0]
    return number


def read_overdue(store: Store, ladder: int, now: int) -> list[str]:
    """The ids of live matches whose expiry time has passed, ordered by that time. See `count_open` for the literal."""
    sql = "SELECT match_id FROM live WHERE ladder = ? AND state = 'open' AND expires_at <= ? ORDER BY expires_at"
    return [row[0] for row in store.all(sql, ladder, now)]


def delete_older_than(store: Store, ladder: int, before: int) -> int:
    """Delete ended matches whose expiry time is before a time, and return their number.

    Checks only the CHECKED_AT_ONCE matches that changed longest ago, to keep the transaction short.
    """
    sql = "SELECT match_id, state, expires_at FROM live WHERE ladder = ? ORDER BY change LIMIT ?"
    old = [row[0] for row in store.all(sql, ladder, CHECKED_AT_ONCE) if row[1] != OPEN and row[2] < before]
    store.run_among("DELETE FROM live WHERE ladder = ? AND match_id IN ({})", (ladder,), old)
    return len(old)


def _live(row: Row) -> LiveMatchRow:
    body, openings = json.loads(row[6]), None if row[7] is None else json.loads(row[7])
    return LiveMatchRow._make((*row[:6], body, openings))


def _row(ladder: int, match: LiveMatchRow) -> Row:
    return (ladder, *match[:6], _json(match.body), None if match.openings is None else _json(match.openings))


def _json(content: LiveMatchBody | Openings) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
