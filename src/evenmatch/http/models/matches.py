"""Recorded matches, and the odds of line-ups."""

from __future__ import annotations

from pydantic import Field

from evenmatch.http.models.base import ContextIn, Entry, Name, RequestModel, ResponseModel, examples
from evenmatch.http.models.from_options import OptionsRequest, OptionsResponse, checked_fields, response_fields
from evenmatch.http.models.from_records import Shown, fields_of
from evenmatch.match_context import MOST
from evenmatch.options import options_of
from evenmatch.players.matches import MatchProfile
from evenmatch.players.odds import LineupMember
from evenmatch.players.result_moment import ResultMoment
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import OutcomeNumbers


class TeamLineUp(RequestModel):
    """The players of a team, by name."""

    players: list[Name] = Field(min_length=1, max_length=256)


@checked_fields(options_of(StakeAssumptions))
class StakesRequest(OptionsRequest):
    """The stakes to compute: the players, and how the match is assumed to go where more than its result counts."""

    model_config = examples({"players": ["ann"], "seconds": 900})

    players: list[Name] | None = Field(
        default=None, min_length=1, max_length=256, description="Players of the line-up; null: all of them."
    )


class LineUp(RequestModel):
    """A hypothetical line-up of teams."""

    model_config = examples(
        {"teams": [{"players": ["ann", "bob"]}, {"players": ["eve", "joe"]}], "context": {"map": "dust"}}
    )

    teams: list[TeamLineUp] = Field(min_length=2, max_length=256)
    stakes: StakesRequest | None = Field(
        default=None,
        description="Also compute what the players would gain or lose; {}: all players, default assumptions.",
    )
    context: ContextIn = Field(
        default_factory=dict,
        max_length=MOST,
        description="What they play on, by the ladder's context columns; columns left out and new values are unknown.",
    )
    entry: dict[Name, Entry] = Field(
        default_factory=dict,
        description="By newcomer: a number known before the first match, as in reports. Only `even` reads it.",
    )


class PlayerStakesOut(ResponseModel):
    """The stakes of a player: ratings as the receipt of the match will have them, if it goes as assumed."""

    before: float
    after: Shown[OutcomeNumbers]
    change: Shown[OutcomeNumbers]


@response_fields(options_of(StakeAssumptions))
class AssumptionsOut(OptionsResponse):
    """The assumptions about the match to come, behind the stakes."""

    sentences: list[str] = Field(description="The assumptions and the meaning of the outcomes, in words.")


@fields_of(LineupMember)
class PlayerOdds(ResponseModel):
    """A player of a line-up."""

    stakes: PlayerStakesOut | None = Field(default=None, description="Null where they were not asked for.")


class TeamOdds(ResponseModel):
    """The odds of a team. win, draw: probabilities against each of the teams, in their order."""

    players: list[PlayerOdds]
    expected: float
    win: list[float]
    draw: list[float]


class OddsOut(ResponseModel):
    """The odds of a line-up, and its stakes if they were asked for."""

    ladder: str
    teams: list[TeamOdds]
    assumptions: AssumptionsOut | None = Field(default=None, description="Of the stakes; null without them.")


class AppearanceOut(ResponseModel):
    """A player of a recorded match, as reported, and the rating change if the match is rated.

    percentile, division  as shown when the match was recorded
    headline   a sentence to the player: the result, what was expected, and how the rating changed
    otherwise  what another result would have done to the rating; null: not known, or the player left
    factors    those that are not the same for the whole team
    """

    player: str
    score: float | None
    seconds: float | None
    quit: bool
    performance: float | None
    keep: bool
    entry: float | None
    before: float | None = None
    after: float | None = None
    change: float | None = None
    percentile: int | None = None
    division: str | None = None
    headline: str | None = None
    otherwise: str | None = None
    factors: dict[str, float | bool | str | None] | None = None


class TeamOut(ResponseModel):
    """A team of a recorded match."""

    label: str
    place: int = Field(description="1 is best; equal places are a draw.")
    score: float | None
    expected: float | None = Field(default=None, description="The team's expected score before the match, 0 to 1.")
    factors: dict[str, float | bool | str | None] = Field(description="Those that are the same for all its players.")
    players: list[AppearanceOut]


@fields_of(MatchProfile, "sides", "explanations")
class MatchOut(ResponseModel):
    """A recorded match as it counts now, with its rating changes and their reasons."""

    ladder: str
    system: str = Field(description="Rating system of the ladder.")
    teams: list[TeamOut]
    sentences: list[str] = Field(
        description="The winner, the result of each team and the state of the match, in sentences."
    )


class MatchesPage(ResponseModel):
    """Matches of a ladder, latest first. Filtered by time, a page may be short or empty although `next` is not null."""

    ladder: str
    items: list[MatchOut]
    next: str | None


@fields_of(ResultMoment)
class PlayerResult(ResponseModel):
    """A match as one of its players sees it right after it."""

    ladder: str
