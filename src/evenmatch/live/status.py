"""The public status of a live match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenmatch.ledger import player_rows
from evenmatch.ledger.store import Store
from evenmatch.live.live_sql import OPEN, LiveMatchRow


class MatchPlayer(NamedTuple):
    """A player of a live match, under the current name.

    spells  attendance spans (joined, left), microseconds since the epoch; left is None while the player is there
    """

    player: str
    role: str | None
    ticket: int | None
    is_there: bool
    spells: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class MatchStatus:
    """A live match, or one that has ended.

    state      open, closed (it is in the ledger), cancelled or expired
    queue      the queue that created it or whose rules apply
    announced  True: announced by a game server; False: created by a queue
    confirmed  whether the game server has confirmed the start
    attributes, map  what it is played with, if a queue created it; map None: none
    odds       predicted score of each team when the queue created the match; None: announced, or not predictable
    openings   (queue, open slots of each team) to be filled; None: none
    reason     why it was cancelled
    ended_at   None: it is live, or its end time is unknown
    """

    match_id: str
    ladder: str
    change: int
    state: str
    queue: str | None
    started_at: int
    expires_at: int
    announced: bool
    confirmed: bool
    teams: tuple[tuple[MatchPlayer, ...], ...]
    region: str | None
    attributes: Mapping[str, str]
    map: str | None
    odds: tuple[float, ...] | None
    spread: float | None
    openings: tuple[str, tuple[int, ...]] | None
    reason: str | None
    ended_at: int | None


def status_of(store: Store, ladder: str, match: LiveMatchRow) -> MatchStatus:
    """The status of a stored match, with the players' present names."""
    return statuses_of(store, ladder, [match])[0]


def statuses_of(store: Store, ladder: str, matches: Sequence[LiveMatchRow]) -> list[MatchStatus]:
    """The status of each of these stored matches, with the players' present names."""
    ids = {slot["id"] for match in matches for slot in match.slots()}
    names = player_rows.names_of(store, sorted(ids))
    return [_status(ladder, match, names) for match in matches]


def _status(ladder: str, match: LiveMatchRow, names: Mapping[int, str]) -> MatchStatus:
    body, openings, closing = match.body, match.openings, match.body.get("close")
    teams = []
    for side in body["teams"]:
        players = []
        for slot in side:
            spells = tuple((came, left) for came, left in slot["spells"] if came is not None)
            is_there = match.state == OPEN and spells[-1][1] is None
            ticket, role = slot.get("ticket"), slot.get("role")
            players.append(MatchPlayer(names[slot["id"]], role, ticket, is_there, spells))
        teams.append(tuple(players))
    return MatchStatus(
        match_id=match.match_id,
        ladder=ladder,
        change=match.change,
        state=match.state,
        queue=match.queue,
        started_at=match.started_at,
        expires_at=match.expires_at,
        announced=body.get("announced", False),
        confirmed=body.get("start") is not None,
        teams=tuple(teams),
        region=body.get("region"),
        attributes=body.get("attributes", {}),
        map=body.get("map"),
        odds=None if (odds := body.get("odds")) is None else tuple(odds),
        spread=body.get("spread"),
        openings=None if openings is None else (openings["queue"], tuple(openings["seats"])),
        reason=body.get("reason"),
        ended_at=None if closing is None else closing["ended_at"],
    )
