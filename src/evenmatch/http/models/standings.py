"""Who stands where."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from evenmatch.http.models.base import Told

ROW: JsonDict = {
    "rank": 1,
    "player": "ann",
    "rating": 1575.0,
    "percentile": 100,
    "division": "Champion",
    "matches": 14,
    "completed": 13,
}
PLACE: JsonDict = {**ROW, "placed": True, "active": True}


class StandingRow(Told):
    """A listed player of the standings; ties share a rank. Of a season that ended some may be without one."""

    rank: int | None
    player: str
    rating: float
    percentile: int | None = Field(description="1 to 100, among the active.")
    division: str | None
    matches: int
    completed: int = Field(description="Matches that the player did not quit.")


class StandingTold(StandingRow):
    """Where a player stands; rank, percentile and division are null for who is not listed."""

    placed: bool = Field(description="The placement matches are completed.")
    active: bool = Field(description="A match was completed within the ladder's active days.")


class StandingsPage(Told):
    """A page of a ladder's standings: the listed, best first."""

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
                }
            ]
        }
    )

    ladder: str
    title: str
    season: int | None = Field(description="The season that ended with these standings; null: they are those of now.")
    listed: int | None = Field(description="Players who are listed now.")
    active: int | None = Field(description="Players who count in the percentiles now.")
    players: int | None = Field(description="Players who have a rating now.")
    placement: int = Field(description="Matches to complete before a player is listed.")
    rebuild_due: bool = Field(description="Ratings are about to be made anew after a correction.")
    items: list[StandingRow]
    next: str | None


class Around(Told):
    """A player, and the listed players around the place of their rating, best first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ladder": "arena", "player": "ann", "standing": PLACE, "items": [PLACE]}]}
    )

    ladder: str
    player: str
    standing: StandingTold
    items: list[StandingTold]


class Among(Told):
    """Some players alone, with the ladder's ranks. missing: names that the ladder does not show."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ladder": "arena", "items": [PLACE], "missing": ["zoe"]}]}
    )

    ladder: str
    items: list[StandingTold]
    missing: list[str]


class Bin(Told):
    """Players whose rating is in this range; the upper end belongs to the next one, but for the last."""

    low: float
    high: float
    players: int


class DivisionCut(Told):
    """From which percentile and rating a division is reached now; null: nobody's rating reaches it."""

    name: str
    lowest: int
    rating: float | None


class DistributionTold(Told):
    """How the ratings of the active players are spread. The first and the last range may reach farther."""

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
    bins: list[Bin]
    divisions: list[DivisionCut]
