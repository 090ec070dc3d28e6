"""Players: profile, matches, rating history and search; renaming, merging and erasing them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenmatch.http.models.base import Name, RequestModel, ResponseModel, ShownTime, Written, examples
from evenmatch.http.models.from_records import fields_of
from evenmatch.http.models.standings import StandingOut
from evenmatch.ladders.inactivity import InactivityFall
from evenmatch.ladders.ladder_queries import PlayerLadders, Profile
from evenmatch.players.career import Career
from evenmatch.players.rating_path import RatingStep


@fields_of(Profile)
class PlayerProfile(ResponseModel):
    """A player on a ladder. Only admins of the ladder see former names."""

    ladder: str
    names: list[str] | None = Field(description="All names of the player; null unless the caller is an admin.")
    standing: StandingOut | None = Field(description="Null: the player has no rated match.")


class PlayerMatch(ResponseModel):
    """A match of a player with its effect on their rating, as it is rated now."""

    match_id: str
    position: int
    played_at: ShownTime
    state: Literal["rated", "unrated", "void", "waits"]
    reason: str | None = Field(description="Why the match is not rated.")
    late: str | None = Field(
        default=None, description="Where a match that was recorded late counts; null: it was recorded in time."
    )
    team: int = Field(description="The player's team, counted from 0.")
    teams: int
    place: int = Field(description="Place of the team; 1 is best.")
    quit: bool
    before: float | None = Field(description="null: the match is not rated, or the ladder does not show ratings.")
    after: float | None
    change: float | None
    expected: float | None = Field(description="The team's expected score before the match, 0 to 1.")
    percentile: int | None = Field(default=None, description="As shown when the match was recorded.")
    division: str | None = Field(default=None, description="As shown when the match was recorded.")
    factors: dict[str, float | bool | str | None] | None
    headline: str | None = Field(description="The result, what was expected, and the change, in a sentence.")
    otherwise: str | None = Field(description="What another result would have done to the rating.")


class PlayerMatches(ResponseModel):
    """A player's matches, latest first."""

    ladder: str
    player: str
    items: list[PlayerMatch]
    next: str | None


@fields_of(RatingStep, "before", "after", "word")
class PathPoint(ResponseModel):
    """The standing after a match; percentile and division as they were shown then."""

    rating: float | None = Field(description="Null: the ladder does not show it.")


@fields_of(InactivityFall, "position")
class PathFall(ResponseModel):
    """A loss by inactivity: of the rating, by an event of the ledger, or of the shown percentile, as of now."""

    text: Written


class PlayerPath(ResponseModel):
    """A player's rating, percentile and division over time, oldest point first."""

    ladder: str
    player: str
    points: list[PathPoint]
    falls: list[PathFall] = Field(description="Falls by inactivity, oldest first, where the ladder shows them.")


@fields_of(Career)
class PlayerCareer(ResponseModel):
    """A player in numbers, from up to 20,000 of their latest rated matches on a ladder."""

    ladder: str
    player: str


class PlayersFound(ResponseModel):
    """Names of players that contain a text; names that begin with it come first."""

    items: list[str]
    next: str | None = Field(
        default=None, description="Always null; use a longer text to find players who are missing here."
    )


@fields_of(PlayerLadders)
class PlayerOut(ResponseModel):
    """A player and the ladders they are on."""

    names: list[str] | None = Field(description="All names of the player; null unless the caller is an admin.")


class RenameRequest(RequestModel):
    """A new name; reports under the old one still count for the player."""

    model_config = examples({"to": "anna"})

    to: Name


class PlayerRenamed(ResponseModel):
    """The current name of the player."""

    player: str
    changed: bool = Field(description="False: it was already the player's name.")


class MergeRequest(RequestModel):
    """The player who remains after the merge."""

    model_config = examples({"into": "ann"})

    into: Name


class PlayersMerged(ResponseModel):
    """The player who remains, and the ladders that were rated again."""

    player: str
    ladders: list[str]
    note: str = Field(description="The rule for matches reported with two names of the player, in words.")


class PlayerErased(ResponseModel):
    """The pseudonym that replaces the player's names."""

    pseudonym: str
