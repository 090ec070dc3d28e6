"""Running matches: announcement, players who leave and join, result or cancellation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evenmatch.http.models.base import (
    ENTRY,
    ContextIn,
    Entry,
    Moment,
    Name,
    RequestModel,
    ResponseModel,
    Seconds,
    Text,
    examples,
)
from evenmatch.http.models.from_records import Shown
from evenmatch.live.status import MatchStatus
from evenmatch.match_context import MOST

WHEN = "2026-11-21T18:20:00Z"


class LiveTeam(RequestModel):
    """The players of a team, by name; it may be empty if players join later."""

    players: list[Name] = Field(max_length=256)


class ConnectionIn(RequestModel):
    """Where the players of a match connect. Only their own tickets show it."""

    address: Annotated[Text, Field(min_length=1, max_length=512)] = Field(
        description="Address of the server, such as a host and a port; handed on as it is."
    )
    tokens: dict[Name, Annotated[Text, Field(max_length=4096)]] = Field(
        default_factory=dict, max_length=256, description="What each player presents to the server, by name."
    )


class Announce(RequestModel):
    """A match that begins."""

    model_config = examples(
        {"teams": [{"players": ["ann", "bob"]}, {"players": ["eve", "joe"]}], "started_at": WHEN},
        {"teams": [{"players": ["ann"]}, {"players": ["eve"]}], "connection": {"address": "203.0.113.7:7777"}},
    )

    teams: list[LiveTeam] = Field(min_length=2, max_length=256)
    started_at: Moment | None = Field(default=None, description="Default: now.")
    expires_in: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="Seconds after which a match that was never closed expires; default: the queue's rule.",
    )
    queue: Name | None = Field(default=None, description="Queue of the ladder from which open slots may be filled.")
    connection: ConnectionIn | None = Field(
        default=None,
        description="Where the players connect. It may be sent later, once. A repeated request may add the tokens of "
        "players who joined.",
    )


class AttendanceChange(RequestModel):
    """A player who left or joined."""

    player: Name
    at: Moment | None = Field(default=None, description="Default: now.")
    back: bool = Field(default=False, description="True if the player joined or rejoined; false if the player left.")
    team: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Team of a player who joins for the first time, or changes sides, counted from 0."
    )


class AttendanceReport(RequestModel):
    """Players who left or joined, in order."""

    model_config = examples({"players": [{"player": "joe"}]})

    players: list[AttendanceChange] = Field(min_length=1, max_length=1000)


class Backfill(RequestModel):
    """A request for players from a queue, to fill open slots."""

    model_config = examples({"seats": [0, 1]})

    seats: list[Annotated[int, Field(ge=0, le=256)]] | None = Field(
        default=None, max_length=256, description="Number of missing players in each team; null withdraws the request."
    )
    queue: Name | None = Field(default=None, description="Default: the queue of the match.")


class TeamResult(RequestModel):
    """The result of a team: its place or its score."""

    place: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    score: float | None = None


class PlayerEnding(RequestModel):
    """The result of a player."""

    score: float | None = None
    performance: Annotated[float, Field(ge=-1, le=1)] | None = None
    keep: bool = True
    entry: Entry | None = Field(default=None, description=ENTRY)


class Close(RequestModel):
    """The result of a match. Playing times and quits of its players follow from their attendance."""

    model_config = examples({"teams": [{"score": 7}, {"score": 4}], "players": {"ann": {"score": 12}}})

    teams: list[TeamResult] = Field(min_length=2, max_length=256, description="In the order of the announcement.")
    players: dict[Name, PlayerEnding] = Field(default_factory=dict, description="By player name.")
    ended_at: Moment | None = Field(default=None, description="Default: now.")
    duration: Seconds | None = Field(default=None, description="Seconds; default: the time from start to end.")
    rated: bool = True
    context: ContextIn = Field(
        default_factory=dict,
        max_length=MOST,
        description="What it was played on, see the report of a match; the map that a queue chose is known.",
    )


class Cancel(RequestModel):
    """The cancellation of a match, which is then not rated."""

    model_config = examples({"reason": "the server fell over"})

    reason: Annotated[str, Field(max_length=256)] | None = None


class LiveMatches(ResponseModel):
    """The running matches of a ladder."""

    items: list[Shown[MatchStatus]]
