"""Players: where they stand, what they played, how their rating went."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from evenmatch.http.models.base import Moment, Told
from evenmatch.http.models.standings import PLACE, StandingTold

PLAYED = "2026-11-21T18:30:00Z"


class PlayerProfile(Told):
    """A player on a ladder. Who may administrate it reads their former names, too."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ladder": "arena",
                    "player": "ann",
                    "names": None,
                    "standing": PLACE,
                    "state": {"deviation": 71.2, "volatility": 0.06},
                    "banned": False,
                    "last_played": PLAYED,
                }
            ]
        }
    )

    ladder: str
    player: str
    names: list[str] | None = Field(
        default=None, description="Every name that leads to them; null for who is no admin."
    )
    standing: StandingTold | None = Field(description="null: no match of theirs is rated.")
    state: dict[str, float | bool | str | None] = Field(
        description="What the system keeps beside the rating, as of now."
    )
    banned: bool
    last_played: Moment | None


class PlayerMatch(Told):
    """A match of a player and what it did to them, as it is rated now."""

    match_id: str
    position: int
    played_at: Moment
    state: Literal["rated", "unrated", "void", "waits"]
    reason: str | None = Field(description="Why it is not rated.")
    team: int = Field(description="The player's, counted from 0.")
    teams: int
    place: int = Field(description="The team's; 1 is best.")
    quit: bool
    before: float | None
    after: float | None
    change: float | None
    expected: float | None = Field(description="The team's expected score before the match, 0 to 1.")
    factors: dict[str, float | bool | str | None] | None
    sentence: str | None = Field(description="Why the rating moved, as a person would tell it.")


class PlayerMatches(Told):
    """A player's matches, the latest first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ladder": "arena",
                    "player": "ann",
                    "items": [
                        {
                            "match_id": "m-1",
                            "position": 2,
                            "played_at": PLAYED,
                            "state": "rated",
                            "reason": None,
                            "team": 0,
                            "teams": 2,
                            "place": 1,
                            "quit": False,
                            "before": 1500.0,
                            "after": 1575.0,
                            "change": 75.0,
                            "expected": 0.5,
                            "factors": {"stake": 75.0},
                            "sentence": "won; wagered 5 % of 1500.00, 75.0000",
                        }
                    ],
                    "next": None,
                }
            ]
        }
    )

    ladder: str
    player: str
    items: list[PlayerMatch]
    next: str | None


class PathPoint(Told):
    """Where a match left the rating."""

    match_id: str
    played_at: Moment
    rating: float


class PlayerPath(Told):
    """A player's rating over time, the first point first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ladder": "arena",
                    "player": "ann",
                    "points": [{"match_id": "m-1", "played_at": PLAYED, "rating": 1575.0}],
                }
            ]
        }
    )

    ladder: str
    player: str
    points: list[PathPoint]


class PlayersFound(Told):
    """Names of players that hold a text; those that begin with it first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": ["ann", "anna", "joanna"], "next": None}]})

    items: list[str]
    next: str | None = Field(default=None, description="null: a closer text finds whom this one does not.")


class PlayerTold(Told):
    """A player and the ladders that know them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"player": "ann", "names": None, "ladders": ["arena", "duel"]}]}
    )

    player: str
    names: list[str] | None = Field(
        default=None, description="Every name that leads to them; null for who is no admin."
    )
    ladders: list[str]
