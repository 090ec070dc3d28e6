"""Requests to queues and their immediate results, as structs that are fast to read and write."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from evenmatch.http.models.reports import Name
from evenmatch.queues.queue_sql import TicketState

Names = Annotated[tuple[Name, ...], Meta(max_length=64)]
Ping = Annotated[float, Meta(ge=0, le=1e9, description="Milliseconds.")]


class PartyMember(Struct, frozen=True, forbid_unknown_fields=True):
    """A player of a party and their requirements for a match."""

    player: Name
    within: Annotated[
        Annotated[float, Meta(ge=0, le=100)] | None,
        Meta(
            description="Largest difference in percentiles to the other players. Default: that of the player's "
            "stored filter, or 2."
        ),
    ] = None
    loose: Annotated[
        bool | None,
        Meta(
            description="True: `within` grows with waiting time; false: it stays as given. Default: that of the "
            "player's stored filter, or true."
        ),
    ] = None
    roles: Annotated[Names, Meta(description="Roles the player plays; empty: any.")] = ()
    ping: Annotated[dict[Name, Ping], Meta(max_length=64, description="Ping by region; empty: any region.")] = {}
    max_ping: Annotated[
        Ping | None,
        Meta(description="Highest ping that the player accepts. Default: that of the player's stored filter, or any."),
    ] = None
    regions: Annotated[
        Names | None,
        Meta(description="Accepted regions; empty: any. Default: those of the player's stored filter, or any."),
    ] = None
    attributes: Annotated[
        Annotated[dict[Name, Names], Meta(max_length=64)] | None,
        Meta(
            description="Accepted values of each attribute of the queue's policy (`map`: maps); all values of "
            "attributes that are not named. Default: those of the player's stored filter, or all."
        ),
    ] = None
    vetoes: Annotated[
        Names | None,
        Meta(description="Maps that the player does not play. Default: those of the player's stored filter, or none."),
    ] = None
    avoid: Annotated[
        tuple[Name, ...], Meta(max_length=256, description="Players who must not be in the same match.")
    ] = ()


class JoinRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A party that joins one or more queues."""

    members: Annotated[tuple[PartyMember, ...], Meta(min_length=1, max_length=50)]
    queues: Annotated[
        tuple[Name, ...],
        Meta(min_length=1, max_length=64, description="The ticket waits in all of these queues."),
    ]
    request_id: Annotated[
        Name | None, Meta(description="Chosen by you: repeating the request returns the same ticket.")
    ] = None
    playlist: Annotated[
        dict[Name, tuple[Name, ...]],
        Meta(description="Queues of other ladders in which the party also waits, by ladder; the first match ends all."),
    ] = {}

    EXAMPLE: ClassVar[dict[str, Any]] = {
        "queues": ["main"],
        "members": [
            {"player": "ann", "within": 5, "loose": False, "ping": {"eu": 20, "us": 110}},
            {"player": "bob", "ping": {"eu": 35}, "avoid": ["joe"]},
        ],
    }


class OfferAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """An accept or decline of an offer."""

    player: Annotated[
        Name | None, Meta(description="The player of the party who answers; default: the whole party.")
    ] = None
    offer: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The offer that is answered; default: the current one.")
    ] = None

    EXAMPLE: ClassVar[dict[str, Any]] = {"player": "ann"}


class TicketChange(Struct, frozen=True):
    """The result of a queue request: the new state of the ticket."""

    ticket: int
    ladder: str
    state: TicketState
    change: int
    offer: int | None
    match_id: str | None
    playlist: Annotated[
        dict[str, int], Meta(description="The party's tickets on other ladders, by ladder, after a join.")
    ] = {}
