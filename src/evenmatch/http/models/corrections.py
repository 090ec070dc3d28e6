"""Corrections of what counts: void matches, bans, and what they would change."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from evenmatch.http.models.base import Asked, Moment, Name, Text, Told
from evenmatch.http.models.changes import EventId

Reason = Annotated[Text, Field(max_length=2000)]
MOVE: dict[str, JsonValue] = {
    "player": "ann",
    "before": 1575.0,
    "after": 1500.0,
    "change": -75.0,
    "matches_before": 1,
    "matches_after": 0,
}


class VoidAsked(Asked):
    """A match that shall count for nothing."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"match_id": "m-1", "reason": "the server crashed"}]})

    match_id: Name
    reason: Reason | None = None
    id: EventId = None


class BanAsked(Asked):
    """A player who is to be out of a ladder."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"player": "joe", "rule": "refund", "since": "2026-11-01T00:00:00Z"}]}
    )

    player: Name
    rule: Literal["void", "refund"] = Field(
        default="void",
        description="void: their matches count for nothing; refund: who lost to them keeps what they had.",
    )
    since: Moment | None = Field(default=None, description="Matches that ended before stay; null: none does.")
    reason: Reason | None = None
    id: EventId = None


class MoveTold(Told):
    """A player whose rating changes; null: not rated before, or not after."""

    player: str
    before: float | None
    after: float | None
    change: float | None
    matches_before: int
    matches_after: int


class Foreseen(Told):
    """What a correction would do; nothing was changed."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"players": 812, "matches": 1290, "left_out": 0, "moved": 1, "moves": [MOVE]}]}
    )

    players: int = Field(description="On the ladder.")
    matches: int = Field(description="That would be rated anew.")
    left_out: int = Field(description="Matches that would stay without a rating, since the rules cannot rate them.")
    moved: int = Field(description="Players whose rating would change.")
    moves: list[MoveTold] = Field(description="Of those the first 200, the largest change first.")


class Corrected(Told):
    """What was corrected, or with `preview=true` would be."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"told": "match 'm-1' is void", "there_already": False, "preview": False, "foreseen": None}]
        }
    )

    told: str
    there_already: bool = Field(description="It is there under this id, and nothing was changed now.")
    preview: bool
    foreseen: Foreseen | None = Field(description="Where a preview was asked for.")


class RulingTold(Told):
    """An event of the ledger that is no match: a correction, or a change of the ladder."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "position": 17,
                    "id": "correction:5d0c",
                    "kind": "player-banned",
                    "at": "2026-11-21T18:30:00Z",
                    "player": "joe",
                    "into": None,
                    "match_id": None,
                    "reason": "aimbot",
                    "said": {"rule": "refund", "since": None},
                }
            ]
        }
    )

    position: int
    id: str
    kind: str
    at: Moment
    player: str | None
    into: str | None = Field(description="Whom a merged player is part of since.")
    match_id: str | None
    reason: str | None
    said: dict[str, object] = Field(description="The rest: a ban's rule, other rules, a season's title and the like.")


class Rulings(Told):
    """A page of them, the latest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [], "next": None}]})

    items: list[RulingTold]
    next: str | None
