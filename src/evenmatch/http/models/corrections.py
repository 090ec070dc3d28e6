"""Corrections of a ladder: void matches, bans, and previews of their effect."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel, Text, examples
from evenmatch.http.models.ladders import EventId

Reason = Annotated[Text, Field(max_length=2000)]


class VoidRequest(RequestModel):
    """The match to void: it no longer counts."""

    model_config = examples({"match_id": "m-1", "reason": "the server crashed"})

    match_id: Name
    reason: Reason | None = None
    id: EventId = None


class BanRequest(RequestModel):
    """The player to ban from a ladder."""

    model_config = examples({"player": "joe", "rule": "refund", "since": "2026-11-01T00:00:00Z"})

    player: Name
    rule: Literal["void", "refund", "keep"] | None = Field(
        default=None,
        description="void: the player's matches do not count; refund: losses against them cost no rating; keep: no "
        "rating changes; null: keep for a ban with an end, otherwise void.",
    )
    since: Moment | None = Field(
        default=None, description="Matches that ended before this time still count; null: none."
    )
    until: Moment | None = Field(
        default=None,
        description="When the ban ends by itself: the player is listed and can queue again. Only with the rule keep. "
        "null: never.",
    )
    reason: Reason | None = None
    id: EventId = None


class RatingMoveOut(ResponseModel):
    """The change of a player's rating; null: not rated before, or not after."""

    player: str
    before: float | None
    after: float | None
    change: float | None
    matches_before: int
    matches_after: int


class CorrectionEffect(ResponseModel):
    """The effect of a correction; in a preview, the effect it would have."""

    players: int = Field(description="Players on the ladder.")
    matches: int = Field(description="Matches rated again.")
    left_out: int = Field(description="Matches that become unrated, because the new rules cannot rate them.")
    moved: int = Field(description="Players whose rating changes.")
    moves: list[RatingMoveOut] = Field(description="The first 200 of these players, largest change first.")
    position: int = Field(
        description="The last event of the ledger before the correction. If it is higher than in the preview, matches "
        "arrived in between, and the moves may differ."
    )


class CorrectionResult(ResponseModel):
    """The result of a correction; with `preview=true`, the result it would have."""

    told: str
    there_already: bool = Field(description="A correction with this id already exists; nothing was changed now.")
    preview: bool
    effect: CorrectionEffect | None = Field(description="Whose rating changes; null if `there_already` is true.")
