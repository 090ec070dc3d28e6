"""A running match as it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evenmatch.ledger import people
from evenmatch.ledger.store import Store
from evenmatch.service.playing.live import OPEN, Live


class MatchPlayer(NamedTuple):
    """A player of a running match, by the present name.

    spells  (came, left) each, microseconds since the epoch; left is None while they are there
    """

    player: str
    role: str | None
    ticket: int | None
    is_there: bool
    spells: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class MatchStatus:
    """A running match, or one that was.

    state      open, closed (it is in the ledger), cancelled or expired
    queue      that made it, or by whose rules it is played
    announced  by a game server; False: a queue made it
    confirmed  the game server has said that it started
    odds       of the first team, as the queue expected them when it made the match; None: it was announced
    openings   seats of each team that a queue is to fill; None: none
    reason     why it was cancelled
    ended_at   None: it is on, or nobody said
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
    odds: float | None
    spread: float | None
    openings: tuple[str, tuple[int, ...]] | None
    reason: str | None
    ended_at: int | None


def status_of(store: Store, ladder: str, match: Live) -> MatchStatus:
    """What is told of a match."""
    body, wished, closing = match.body, match.openings, match.body.get("close")
    names = people.names_of(store, [slot["id"] for slot in match.slots()])
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
        odds=body.get("odds"),
        spread=body.get("spread"),
        openings=None if wished is None else (wished["queue"], tuple(wished["seats"])),
        reason=body.get("reason"),
        ended_at=None if closing is None else closing["ended_at"],
    )
