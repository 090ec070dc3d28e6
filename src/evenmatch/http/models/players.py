"""Players: profile, matches, rating history and search; renaming, merging and erasing them."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel
from evenmatch.http.models.standings import PLACE, StandingOut

PLAYED = "2026-11-21T18:30:00Z"


class InactivityOut(ResponseModel):
    """The future of a player who completes no match."""

    rule: Literal["leave", "percentile", "rating"] = Field(description="The ladder's setting `inactivity`.")
    leaves_at: Moment | None = Field(description="When the standings stop listing the player; null: not listed.")
    falls_at: Moment | None = Field(
        description="When the shown percentile or the rating falls next; null: it does not fall."
    )
    amount: float | None = Field(description="Percentiles or points by which it falls then, at most.")
    text: str = Field(description="The events of the next year as a sentence; empty: none.")


class PlayerProfile(ResponseModel):
    """A player on a ladder. Only admins of the ladder see former names."""

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
                    "inactivity": {
                        "rule": "rating",
                        "leaves_at": "2026-12-21T18:30:00Z",
                        "falls_at": "2026-12-13T00:00:00Z",
                        "amount": 25.0,
                        "text": (
                            "Without a completed match, the rating falls by 25 a week from 2026-12-13 on, down to "
                            "1500.00, and the standings list this player no longer after 2026-12-21."
                        ),
                    },
                }
            ]
        }
    )

    ladder: str
    player: str
    names: list[str] | None = Field(
        default=None, description="All names of the player; null unless the caller is an admin."
    )
    standing: StandingOut | None = Field(description="null: no rated match.")
    state: dict[str, float | bool | str | None] = Field(
        description="Other values that the rating system stores for the player, as of now; empty: not shown."
    )
    banned: bool
    last_played: Moment | None
    inactivity: InactivityOut | None = Field(description="null: inactivity costs the player nothing.")


class PlayerMatch(ResponseModel):
    """A match of a player with its effect on their rating, as it is rated now."""

    match_id: str
    position: int
    played_at: Moment
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
    sentence: str | None = Field(description="Why the rating changed, in one sentence.")


class PlayerMatches(ResponseModel):
    """A player's matches, latest first."""

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


class PathPoint(ResponseModel):
    """The standing after a match; percentile and division as they were shown then."""

    match_id: str
    played_at: Moment
    rating: float | None = Field(description="null: the ladder does not show it.")
    percentile: int | None = Field(default=None, description="1 to 100; null: not shown.")
    division: str | None = None


class PathFall(ResponseModel):
    """A fall by inactivity: of the rating, by an event of the ledger, or of the shown percentile, as of now."""

    of: Literal["rating", "percentile"]
    fell_at: Moment
    before: float
    after: float
    text: str


class PlayerPath(ResponseModel):
    """A player's rating, percentile and division over time, oldest point first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ladder": "arena",
                    "player": "ann",
                    "points": [
                        {
                            "match_id": "m-1",
                            "played_at": PLAYED,
                            "rating": 1575.0,
                            "percentile": 93,
                            "division": "Diamond",
                        }
                    ],
                    "falls": [
                        {
                            "of": "rating",
                            "fell_at": PLAYED,
                            "before": 1575.0,
                            "after": 1550.0,
                            "text": "−25, not playing",
                        }
                    ],
                }
            ]
        }
    )

    ladder: str
    player: str
    points: list[PathPoint]
    falls: list[PathFall] = Field(description="Falls by inactivity, oldest first, where the ladder shows them.")


class PlayersFound(ResponseModel):
    """Names of players that contain a text; names that begin with it come first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": ["ann", "anna", "joanna"], "next": None}]})

    items: list[str]
    next: str | None = Field(
        default=None, description="Always null; use a longer text to find players who are missing here."
    )


class PlayerOut(ResponseModel):
    """A player and the ladders they are on."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"player": "ann", "names": None, "ladders": ["arena", "duel"]}]}
    )

    player: str
    names: list[str] | None = Field(
        default=None, description="All names of the player; null unless the caller is an admin."
    )
    ladders: list[str]


class RenameRequest(RequestModel):
    """A new name; reports under the old one still count for the player."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "anna"}]})

    to: Name


class PlayerRenamed(ResponseModel):
    """The current name of the player."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"player": "anna", "changed": True}]})

    player: str
    changed: bool = Field(description="False: it was already the player's name.")


class MergeRequest(RequestModel):
    """The player who remains after the merge."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"into": "ann"}]})

    into: Name


class PlayersMerged(ResponseModel):
    """The player who remains, and the ladders that were rated again."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "player": "ann",
                    "ladders": ["arena"],
                    "note": "a match … with two of the player's names … is not rated",
                }
            ]
        }
    )

    player: str
    ladders: list[str]
    note: str = Field(description="The rule for matches reported with two names of the player, in words.")


class PlayerErased(ResponseModel):
    """The pseudonym that replaces the player's names."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pseudonym": "erased-5d0c91aa2f7e"}]})

    pseudonym: str


class OddNameOut(ResponseModel):
    """A name that may pass as another one. like: names of other players on the ladder that look the same."""

    name: str
    player: str = Field(description="The present name of its player.")
    oddities: list[Literal["look-alike", "invisible", "mixed-scripts"]] = Field(
        description="look-alike: it looks like the names in `like`; invisible: it has control, zero-width or other "
        "unseen characters; mixed-scripts: letters of scripts that are not written together."
    )
    like: list[str]


class OddNamesPage(ResponseModel):
    """Names on a ladder that may pass as another one, by name. A page may be short although `next` is not null."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [{"name": "rnike", "player": "rnike", "oddities": ["look-alike"], "like": ["mike"]}],
                    "next": None,
                }
            ]
        }
    )

    items: list[OddNameOut]
    next: str | None
