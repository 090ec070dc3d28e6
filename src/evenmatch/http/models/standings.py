"""Standings of a ladder, and the distribution of ratings."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from evenmatch.http.models.base import ResponseModel

ROW: JsonDict = {
    "rank": 1,
    "player": "ann",
    "rating": 1575.0,
    "percentile": 100,
    "division": "Champion",
    "matches": 14,
    "completed": 13,
}
PLACE: JsonDict = {**ROW, "placed": True, "active": True, "expected_move": None}


class StandingRow(ResponseModel):
    """A listed player of the standings; ties share a rank. In a season that ended, a rank may be null.

    Where a ladder shows percentiles or divisions instead of ratings, players with equal ones are ties.
    """

    rank: int | None
    player: str
    rating: float | None = Field(description="null: the ladder does not show it.")
    percentile: int | None = Field(description="1 to 100, among the active players.")
    division: str | None
    matches: int
    completed: int = Field(description="Matches that the player did not quit.")


class StandingOut(StandingRow):
    """The standing of a player; rank, percentile and division are null if the player is not listed."""

    placed: bool = Field(description="Placement has ended: the matches are completed, or the percentile has steadied.")
    active: bool = Field(description="A match was completed within the ladder's active days.")
    expected_move: float | None = Field(
        description="With placement=auto: percentiles by which the next match is expected to move a player who is not "
        "placed; null: not known yet, or not shown."
    )


class StandingsPage(ResponseModel):
    """A page of a ladder's standings: listed players, best first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ladder": "arena",
                    "title": "Arena 6v6",
                    "season": None,
                    "listed": 31,
                    "active": 40,
                    "players": 57,
                    "placement": 10,
                    "rebuild_due": False,
                    "items": [ROW],
                    "next": None,
                    "moved": False,
                }
            ]
        }
    )

    ladder: str
    title: str
    season: int | None = Field(description="The season that ended with these standings; null: the current standings.")
    listed: int | None = Field(description="Players who are listed now.")
    active: int | None = Field(description="Players who count in the percentiles now.")
    players: int | None = Field(description="Players who have a rating now.")
    placement: int | Literal["auto"] = Field(
        description="Matches that a player must complete to be listed; auto: until the percentile has steadied."
    )
    rebuild_due: bool = Field(description="Ratings will be recomputed soon, after a correction.")
    items: list[StandingRow]
    next: str | None
    moved: bool = Field(
        description="false: all pages up to this one are of one moment. true: the standings have moved on since the "
        "page before, and this page is of the present ones, so players may be repeated or missing: to read the "
        "standings of one moment, begin again without `cursor`."
    )


class NeighboursOut(ResponseModel):
    """A player and the listed players with the nearest ratings, best first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ladder": "arena", "player": "ann", "standing": PLACE, "items": [PLACE]}]}
    )

    ladder: str
    player: str
    standing: StandingOut
    items: list[StandingOut]


class SelectedStandings(ResponseModel):
    """Selected players with their ranks on the ladder. missing: names that the ladder does not show."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ladder": "arena", "items": [PLACE], "missing": ["zoe"]}]}
    )

    ladder: str
    items: list[StandingOut]
    missing: list[str]


class DistributionBin(ResponseModel):
    """The number of players in a range of ratings; `high` is excluded, except in the last range."""

    low: float
    high: float
    players: int


class DivisionCut(ResponseModel):
    """The percentile and rating at which a division begins now; rating null: no player reaches it."""

    name: str
    lowest: int
    rating: float | None


class DistributionOut(ResponseModel):
    """The distribution of the active players' ratings. The first and the last range may be wider.

    bins  empty where the ladder does not show ratings; of placed players alone where it shows those of placed players
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ladder": "arena",
                    "active": 40,
                    "bins": [{"low": 1400.0, "high": 1500.0, "players": 19}],
                    "divisions": [{"name": "Gold", "lowest": 46, "rating": 1493.5}],
                }
            ]
        }
    )

    ladder: str
    active: int
    bins: list[DistributionBin]
    divisions: list[DivisionCut]
