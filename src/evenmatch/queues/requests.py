"""Requests of players and game backends to a ladder's queues, and their immediate results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenmatch.queues.queue_sql import TicketState


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedPlayer:
    """A player of a party with their preferences; see matchmaking.Member for within, loose, roles, ping, max_ping.

    within, loose, regions, max_ping, attributes, vetoes  None: the value of the player's stored filter, or its default
    avoid  names of players whom the player never wants to meet
    """

    name: str
    within: float | None = None
    loose: bool | None = None
    roles: tuple[str, ...] = ()
    ping: Mapping[str, float] = field(default_factory=dict)
    max_ping: float | None = None
    regions: tuple[str, ...] | None = None
    attributes: Mapping[str, tuple[str, ...]] | None = None
    vetoes: tuple[str, ...] | None = None
    avoid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A request of a party to join these queues.

    request   an id chosen by the sender; repeating it with the same party returns the same ticket
    playlist  queues of other ladders, by ladder, in which the party waits too; the first match ends them all
    readable  the ladders that the sender may read; a refusal names no others; None: all
    """

    members: tuple[QueuedPlayer, ...]
    queues: tuple[str, ...]
    request: str | None = None
    playlist: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    readable: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """A request to leave the queues. player: the member who leaves; None: the whole party.

    only_own  the sender may act only for this player, so a refusal does not name others
    """

    ticket: int
    player: str | None = None
    only_own: bool = False


@dataclass(frozen=True, slots=True)
class Accept:
    """A player of a ticket accepts the offered match. player None: the whole party accepts.

    offer     the number of the offer; None: the present one
    only_own  as in `Leave`
    """

    ticket: int
    player: str | None = None
    offer: int | None = None
    only_own: bool = False


@dataclass(frozen=True, slots=True)
class Decline:
    """A player of a ticket declines the offered match. The fields are those of `Accept`."""

    ticket: int
    player: str | None = None
    offer: int | None = None
    only_own: bool = False


TicketAnswer = Leave | Accept | Decline
QueueRequest = Join | TicketAnswer


@dataclass(frozen=True, slots=True)
class RequestResult:
    """A ticket after a request.

    playlist  after a join, the party's tickets on other ladders, by ladder
    """

    ticket: int
    change: int
    state: TicketState
    offer: int | None = None
    match_id: str | None = None
    playlist: Mapping[str, int] = field(default_factory=dict)
