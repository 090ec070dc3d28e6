"""Matches that are on: announced at their start, with who leaves and comes, until they are closed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.http.models.base import Asked, Moment, Name, Seconds, Told, examples

WHEN = "2026-11-21T18:20:00Z"


class LiveTeam(Asked):
    """The players of a team, by name; it may be empty while players are still to come."""

    players: list[Name]


class Announce(Asked):
    """A match begins."""

    model_config = examples({"teams": [{"players": ["ann", "bob"]}, {"players": ["eve", "joe"]}], "started_at": WHEN})

    teams: list[LiveTeam] = Field(min_length=2, max_length=256)
    started_at: Moment | None = Field(default=None, description="Now where it is left out.")
    expires_in: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="Seconds after which a match that was never closed is given up; its queue's rule by default.",
    )
    queue: Name | None = Field(default=None, description="A queue of the ladder from which open seats may be filled.")


class Coming(Asked):
    """A player left, or came."""

    player: Name
    at: Moment | None = Field(default=None, description="Now where it is left out.")
    back: bool = Field(default=False, description="True: they came, again or for the first time.")
    team: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Of who comes for the first time, from 0."
    )


class Presences(Asked):
    """Who left and who came, in order."""

    model_config = examples({"players": [{"player": "joe"}]})

    players: list[Coming] = Field(min_length=1)


class Backfill(Asked):
    """A wish for players from a queue."""

    model_config = examples({"seats": [0, 1]})

    seats: list[Annotated[int, Field(ge=0, le=256)]] | None = Field(
        default=None, description="How many players each team lacks; null takes the wish back."
    )
    queue: Name | None = Field(default=None, description="The match's own where it is left out.")


class TeamResult(Asked):
    """How a team finished: by place, or by score."""

    place: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    score: float | None = None


class PlayerResult(Asked):
    """What is recorded of a player at the end."""

    score: float | None = None
    performance: Annotated[float, Field(ge=-1, le=1)] | None = None
    keep: bool = True


class Close(Asked):
    """A match ended. The seconds of its players, and who quit, follow from who was there when."""

    model_config = examples({"teams": [{"score": 7}, {"score": 4}], "players": {"ann": {"score": 12}}})

    teams: list[TeamResult] = Field(min_length=2, description="In the order in which they were announced.")
    players: dict[Name, PlayerResult] = Field(default_factory=dict, description="By name.")
    ended_at: Moment | None = Field(default=None, description="Now where it is left out.")
    duration: Seconds | None = Field(
        default=None, description="Seconds; from the start to the end where it is left out."
    )
    rated: bool = True


class Cancel(Asked):
    """A match is not to be rated."""

    model_config = examples({"reason": "the server fell over"})

    reason: Annotated[str, Field(max_length=256)] | None = None


class SpellTold(Told):
    """When a player was there; null: they still are."""

    came: Moment
    left: Moment | None


class LivePlayer(Told):
    """A player of a running match. there: they have not left, or came back."""

    player: str
    role: str | None = None
    ticket: int | None = None
    there: bool
    spells: list[SpellTold]


class LiveMatch(Told):
    """A match that is on, or was.

    made_by  queue: by the matchmaker; announcement: by its server;  openings: seats that a queue is to fill
    """

    match_id: str
    ladder: str
    change: int
    state: Literal["open", "closed", "cancelled", "expired"]
    made_by: Literal["queue", "announcement"]
    confirmed: bool = Field(description="Its server has said that it started.")
    queue: str | None
    region: str | None
    odds: float | None = Field(description="The first team's chance as the matchmaker foretold it.")
    spread: float | None
    started_at: Moment
    expires_at: Moment
    ended_at: Moment | None
    reason: str | None
    openings: list[int] | None
    teams: list[list[LivePlayer]]


class LiveMatches(Told):
    """Matches that are on."""

    items: list[LiveMatch]
