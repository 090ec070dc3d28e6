"""Requests to the service. `Client.send` and `AsyncClient.send` send them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from evenmatch_client.models import (
    BatchOutcome,
    Job,
    LiveMatch,
    LiveMatches,
    Receipt,
    StandingsPage,
    Ticket,
    TicketChange,
    Token,
)

T_co = TypeVar("T_co", covariant=True)
Json = dict[str, Any]
Query = Mapping[str, str | float | bool | datetime | Sequence[str] | None]


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """One request. answer: the type that its answer is read as.

    wait             seconds that the service may wait before it answers
    idempotency_key  makes the service carry the request out once, however often it is sent
    """

    method: str
    path: str
    answer: type[T_co]
    query: Query | None = None
    body: object = None
    wait: float = 0.0
    idempotency_key: str | None = None

    @property
    def content(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else msgspec.json.encode(self.body)

    @property
    def parameters(self) -> dict[str, Any]:
        """The query, without what is None."""
        values = {name: value for name, value in (self.query or {}).items() if value is not None}
        return {name: _moment(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _moment(time: datetime) -> str:
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


def _path(*parts: str | int) -> str:
    if "" in parts:
        raise ValueError(f"{parts}: a name is empty; expected one character or more")
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def get(path: str, query: Query | None = None, *, wait: float = 0.0) -> Call[Json]:
    """Any GET request, as a JSON object. path: such as /v1/ladders/arena."""
    return Call("GET", path, Json, query, wait=wait)


def post(path: str, body: object = None) -> Call[Json]:
    """Any POST request; the service carries it out once."""
    return Call("POST", path, Json, body=body, idempotency_key=secrets.token_urlsafe(16))


def put(path: str, body: object) -> Call[Json]:
    """Any PUT request; the service carries it out once."""
    return Call("PUT", path, Json, body=body, idempotency_key=secrets.token_urlsafe(16))


def patch(path: str, body: object) -> Call[Json]:
    """Any PATCH request; the service carries it out once."""
    return Call("PATCH", path, Json, body=body, idempotency_key=secrets.token_urlsafe(16))


def delete(path: str, query: Query | None = None) -> Call[Json]:
    """Any DELETE request; the service carries it out once."""
    return Call("DELETE", path, Json, query, idempotency_key=secrets.token_urlsafe(16))


def report_match(ladder: str, match: Mapping[str, object]) -> Call[Receipt]:
    """Report a finished match. The same report again returns the same receipt."""
    return Call("POST", _path("ladders", ladder, "matches"), Receipt, body=match)


def report_matches(ladder: str, matches: Sequence[Mapping[str, object]]) -> Call[BatchOutcome]:
    """Report up to 1,000 finished matches in the order in which they ended; each may be refused by itself."""
    return Call("POST", _path("ladders", ladder, "matches", "batch"), BatchOutcome, body={"matches": matches})


def match(ladder: str, match_id: str) -> Call[Json]:
    """A recorded match with each player's change and its reasons."""
    return get(_path("ladders", ladder, "matches", match_id))


def matches(ladder: str, *, limit: int = 50, player: str | None = None, since: datetime | None = None) -> Call[Json]:
    """A page of recorded matches, newest first."""
    return get(_path("ladders", ladder, "matches"), {"limit": limit, "player": player, "since": since})


def odds(
    ladder: str,
    teams: Sequence[Sequence[str]],
    *,
    stakes: Mapping[str, object] | None = None,
    context: Mapping[str, str] | None = None,
    entry: Mapping[str, float] | None = None,
) -> Call[Json]:
    """The odds of a line-up, on a map or in a mode if `context` says so, and, if asked for, its stakes.

    Unknown players count as newcomers; `entry` has the numbers known about them, by name.
    """
    sides = [{"players": team} for team in teams]
    body = {"teams": sides, "stakes": stakes, "context": context or {}, "entry": entry or {}}
    return Call("POST", _path("ladders", ladder, "odds"), Json, body=body)


def standings(ladder: str, *, limit: int = 50, season: int | None = None) -> Call[StandingsPage]:
    """A page of the listed players, best first: now, or at the end of a season."""
    return Call("GET", _path("ladders", ladder, "standings"), StandingsPage, {"limit": limit, "season": season})


def player(ladder: str, name: str) -> Call[Json]:
    """A player's standing and record."""
    return get(_path("ladders", ladder, "players", name))


def issue_token(player: str, ladders: Sequence[str] | None = None, *, expires_in: int = 3600) -> Call[Token]:
    """A token with which a player's own client queues and reads as this player.

    ladders  where it is valid; None: where the key is;  expires_in: seconds
    """
    body = {"player": player, "ladders": ladders, "expires_in": expires_in}
    return Call("POST", _path("tokens"), Token, body=body, idempotency_key=secrets.token_urlsafe(16))


def join_queue(
    ladder: str,
    queues: Sequence[str],
    members: Sequence[Mapping[str, object]],
    *,
    request_id: str | None = None,
    playlist: Mapping[str, Sequence[str]] | None = None,
) -> Call[TicketChange]:
    """Put a party into queues; its first match removes it from all of them.

    playlist  queues of other ladders, by ladder
    """
    body = {
        "queues": queues,
        "members": members,
        "request_id": request_id or secrets.token_urlsafe(16),
        "playlist": playlist or {},
    }
    return Call("POST", _path("ladders", ladder, "tickets"), TicketChange, body=body)


def ticket(ladder: str, number: int, *, after: int | None = None, wait: float = 0.0) -> Call[Ticket]:
    """A ticket; reading it counts as a heartbeat.

    after, wait  wait up to so many seconds until its `change` exceeds `after`
    """
    return Call("GET", _path("ladders", ladder, "tickets", number), Ticket, {"after": after, "wait": wait}, wait=wait)


def accept_offer(
    ladder: str, number: int, *, player: str | None = None, offer: int | None = None
) -> Call[TicketChange]:
    """Accept the offered match for one player of the ticket, or for all. Repeating it changes nothing."""
    return Call(
        "POST", _path("ladders", ladder, "tickets", number, "accept"), TicketChange, body=_answer(player, offer)
    )


def decline_offer(
    ladder: str, number: int, *, player: str | None = None, offer: int | None = None
) -> Call[TicketChange]:
    """Decline the offered match: this ticket ends; the others wait again and keep their waiting time."""
    path = _path("ladders", ladder, "tickets", number, "decline")
    return Call("POST", path, TicketChange, body=_answer(player, offer), idempotency_key=secrets.token_urlsafe(16))


def _answer(player: str | None, offer: int | None) -> dict[str, object]:
    return {name: value for name, value in (("player", player), ("offer", offer)) if value is not None}


def leave_queue(ladder: str, number: int) -> Call[TicketChange]:
    """Remove the party from its queues. If a match is offered, this declines it."""
    path = _path("ladders", ladder, "tickets", number)
    return Call("DELETE", path, TicketChange, idempotency_key=secrets.token_urlsafe(16))


def live_matches(ladder: str, *, queue: str | None = None) -> Call[LiveMatches]:
    """The live matches, including those of queues that wait for a game server."""
    return Call("GET", _path("ladders", ladder, "live"), LiveMatches, {"queue": queue})


def live_match(ladder: str, match_id: str, *, after: int | None = None, wait: float = 0.0) -> Call[LiveMatch]:
    """A live or ended match; `after` and `wait` as for a ticket."""
    return Call("GET", _path("ladders", ladder, "live", match_id), LiveMatch, {"after": after, "wait": wait}, wait=wait)


def announce_match(
    ladder: str,
    match_id: str,
    teams: Sequence[Sequence[str]],
    *,
    queue: str | None = None,
    connection: Mapping[str, object] | None = None,
) -> Call[LiveMatch]:
    """Announce the start of a match, or confirm a match of a queue. Repeating it changes nothing.

    connection  `address` and, by player, `tokens`: where the players connect, which their own tickets then show
    """
    body = {"teams": [{"players": team} for team in teams], "queue": queue, "connection": connection}
    return Call("PUT", _path("ladders", ladder, "live", match_id), LiveMatch, body=body)


def report_attendance(ladder: str, match_id: str, changes: Sequence[Mapping[str, object]]) -> Call[LiveMatch]:
    """Report players who left, came back or came late."""
    path = _path("ladders", ladder, "live", match_id, "presence")
    return Call("POST", path, LiveMatch, body={"players": changes}, idempotency_key=secrets.token_urlsafe(16))


def request_backfill(ladder: str, match_id: str, seats: Sequence[int] | None = None) -> Call[LiveMatch]:
    """Ask for players from a queue to fill open slots. seats: how many of each team; None: all that are open."""
    path = _path("ladders", ladder, "live", match_id, "backfill")
    return Call("PUT", path, LiveMatch, body={"seats": seats}, idempotency_key=secrets.token_urlsafe(16))


def close_match(ladder: str, match_id: str, result: Mapping[str, object]) -> Call[Receipt]:
    """End a live match and record it. Repeating the same request returns the same receipt."""
    return Call("POST", _path("ladders", ladder, "live", match_id, "close"), Receipt, body=result)


def cancel_match(ladder: str, match_id: str, reason: str | None = None) -> Call[LiveMatch]:
    """Cancel a live match: it is not rated, nobody is penalised, and its players may queue again."""
    path = _path("ladders", ladder, "live", match_id, "cancel")
    return Call("POST", path, LiveMatch, body={"reason": reason}, idempotency_key=secrets.token_urlsafe(16))


def job(number: str, *, wait: float = 0.0) -> Call[Job]:
    """A background job; wait: seconds to wait for its end."""
    return Call("GET", _path("jobs", number), Job, {"wait": wait}, wait=wait)
