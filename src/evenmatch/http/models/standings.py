"""Standings of a ladder, and the distribution of ratings."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenmatch.http.models.base import ResponseModel
from evenmatch.http.models.from_records import Shown, fields_of
from evenmatch.ladders.seasons import StandingRow
from evenmatch.players.records import PlayerRecord
from evenmatch.standings.board import Standing


@fields_of(Standing, "player")
class StandingOut(ResponseModel):
    """The standing of a player; rank, percentile and division are null if the player is not listed."""

    player: str
    record: Shown[PlayerRecord]


class StandingsPage(ResponseModel):
    """A page of a ladder's standings: listed players, best first."""

    ladder: str
    title: str
    season: int | None = Field(description="The season that ended with these standings; null: the current standings.")
    listed: int | None = Field(description="Players who are listed now.")
    active: int | None = Field(description="Players who count in the percentiles now.")
    players: int | None = Field(description="Players who have a rating now.")
    placement: int | Literal["auto"] = Field(
        description="Matches that a player must complete to be listed; auto: until the percentile has steadied."
    )
    rebuild_due: bool = Field(description="True if a correction is pending and ratings will soon be recomputed.")
    items: list[Shown[StandingRow]]
    next: str | None
    moved: bool = Field(
        description="false: all pages up to this one show the same moment. true: this page shows newer standings than "
        "the previous page, so players may be repeated or missing; to read all standings at one moment, start again "
        "without `cursor`."
    )


class NeighboursOut(ResponseModel):
    """A player and the listed players with the nearest ratings, best first."""

    ladder: str
    player: str
    standing: StandingOut
    items: list[StandingOut]


class SelectedStandings(ResponseModel):
    """Selected players with their ranks on the ladder. missing: names that the ladder does not show."""

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

    ladder: str
    active: int
    bins: list[DistributionBin]
    divisions: list[DivisionCut]
