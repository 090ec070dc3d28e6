"""The public status of a live match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from evenmatch.ledger import player_rows
from evenmatch.ledger.store import Store
from evenmatch.live.live_sql import OPEN, LiveMatchRow
from evenmatch.times import Time

LiveState = Literal["open", "closed", "cancelled", "expired"]


class Attendance(NamedTuple):
    """A span of time in which a player was in the match. left: null while the player is present."""

    came: Time
    left: Time | None


class LivePlayer(NamedTuple):
    """A player of a live match.

    ticket  the ticket in which the player waited; null: the player did not come from a queue
    there   true: the player is present
    """

    player: str
    role: str | None
    ticket: int | None
    there: bool
    spells: tuple[Attendance, ...]


@dataclass(frozen=True)
class MatchStatus:
    """A live match, or one that has ended.

    state       closed: the match is recorded in the ledger
    made_by     queue: the matchmaker formed it; announcement: its game server announced it
    confirmed   true: the game server has reported that the match started
    connected   true: the tickets of its players show where to connect
    queue       the queue that formed the match, or whose rules apply
    attributes  the value of each attribute with which the match is played
    map         null: the queue has no maps
    odds        predicted score of each team when the queue formed the match; null: it was announced, the ladder's
                system cannot predict it, or the ladder does not show its ratings
    spread      difference in percentiles between the lowest and the highest player; null: not shown
    openings    open slots of each team to be filled from a queue; null: none
    reason      why the match was cancelled
    ended_at    null: the match is live, or its end is unknown
    """

    match_id: str
    ladder: str
    change: int
    state: LiveState
    made_by: Literal["queue", "announcement"]
    confirmed: bool
    connected: bool
    queue: str | None
    region: str | None
    attributes: Mapping[str, str]
    map: str | None
    odds: tuple[float, ...] | None
    spread: float | None
    started_at: Time
    expires_at: Time
    ended_at: Time | None
    reason: str | None
    openings: tuple[int, ...] | None
    teams: tuple[tuple[LivePlayer, ...], ...]


def status_of(store: Store, ladder: str, match: LiveMatchRow) -> MatchStatus:
    """The status of a stored match, with the players' present names."""
    return statuses_of(store, ladder, [match])[0]


def statuses_of(store: Store, ladder: str, matches: Sequence[LiveMatchRow]) -> list[MatchStatus]:
    """The status of each stored match, with the players' present names."""
    ids = {slot["id"] for match in matches for slot in match.slots()}
    names = player_rows.names_of(store, sorted(ids))
    return [_status(ladder, match, names) for match in matches]


def _status(ladder: str, match: LiveMatchRow, names: Mapping[int, str]) -> MatchStatus:
    body, openings, closing = match.body, match.openings, match.body.get("close")
    teams = []
    for side in body["teams"]:
        players = []
        for slot in side:
            spells = tuple(Attendance(came, left) for came, left in slot["spells"] if came is not None)
            is_there = match.state == OPEN and spells[-1].left is None
            ticket, role = slot.get("ticket"), slot.get("role")
            players.append(LivePlayer(names[slot["id"]], role, ticket, is_there, spells))
        teams.append(tuple(players))
    return MatchStatus(
        match_id=match.match_id,
        ladder=ladder,
        change=match.change,
        state=cast("LiveState", match.state),
        queue=match.queue,
        started_at=match.started_at,
        expires_at=match.expires_at,
        made_by="announcement" if body.get("announced", False) else "queue",
        confirmed=body.get("start") is not None,
        connected="connection" in body,
        teams=tuple(teams),
        region=body.get("region"),
        attributes=body.get("attributes", {}),
        map=body.get("map"),
        odds=None if (odds := body.get("odds")) is None else tuple(odds),
        spread=body.get("spread"),
        openings=None if openings is None else tuple(openings["seats"]),
        reason=body.get("reason"),
        ended_at=None if closing is None else closing["ended_at"],
    )
