"""Match reports of game servers, receipts with the rating changes, recorded matches and odds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evenmatch.http.models.base import Moment, Name, Problem, RequestModel, ResponseModel, Seconds, examples
from evenmatch.http.models.options import OptionsRequest, OptionsResponse, checked_fields, response_fields
from evenmatch.http.models.records import Shown, fields_of
from evenmatch.options import options_of
from evenmatch.players.matches import MatchProfile
from evenmatch.players.odds import LineupMember
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import OutcomeNumbers

PLAYED = "2026-11-21T18:30:00Z"
TEAMS = [
    {"score": 7, "players": [{"player": "ann", "score": 12, "seconds": 600}, {"player": "bob", "seconds": 600}]},
    {"score": 4, "players": [{"player": "eve", "seconds": 600}, {"player": "joe", "seconds": 120, "quit": True}]},
]


class AppearanceReport(RequestModel):
    """One player in a match; omit values that were not measured."""

    player: Name
    score: float | None = Field(default=None, description="Points of the player in the match.")
    seconds: Seconds | None = Field(default=None, description="Seconds in the match.")
    quit: bool = Field(default=False, description="Left before the end and did not come back.")
    performance: Annotated[float, Field(ge=-1, le=1)] | None = Field(
        default=None, description="-1 poor, 0 average, 1 good."
    )
    keep: bool = Field(default=True, description="False: the match does not change this player's rating.")


class TeamReport(RequestModel):
    """A team: its players and its result, by place or by score."""

    players: list[AppearanceReport] = Field(min_length=1)
    place: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="1 is best; equal places are a draw."
    )
    score: float | None = Field(
        default=None, description="Score of the team; higher is better. Used if no places are given."
    )


class MatchReport(RequestModel):
    """A finished match."""

    model_config = examples({"id": "m-1", "played_at": PLAYED, "duration": 600, "teams": TEAMS})

    id: Name = Field(
        description="Chosen by the sender: repeating the report changes nothing and returns the same receipt."
    )
    played_at: Moment = Field(description="Time when the match ended.")
    teams: list[TeamReport] = Field(min_length=2)
    duration: Seconds | None = Field(default=None, description="Seconds; default: the longest time of any player.")
    rated: bool = Field(default=True, description="False: the match is recorded but changes no rating.")


class BatchReport(RequestModel):
    """Several finished matches of one ladder, in the order in which they ended."""

    model_config = examples({"matches": [{"id": "m-1", "played_at": PLAYED, "teams": TEAMS}]})

    matches: list[MatchReport] = Field(min_length=1)


class PlayerChange(ResponseModel):
    """The rating change of one player in a match, with the factors that explain it."""

    player: str
    team: int = Field(description="Counted from 0.")
    before: float
    after: float
    change: float
    expected: float = Field(description="The team's expected score before the match, 0 to 1.")
    result: float = Field(description="The team's actual score, 0 to 1: 1 if it beat all others, 0.5 for a draw.")
    factors: dict[str, float | bool | str | None] = Field(description="Factors of the rating system, by name.")
    percentile: int | None = Field(description="1 to 100; null before the placement matches are completed.")
    division: str | None


class ReceiptOut(ResponseModel):
    """The receipt of a recorded match: the rating change of each player."""

    match_id: str
    ladder: str
    position: int = Field(description="Position in the ladder's ledger.")
    rated: bool
    teams: list[list[PlayerChange]]
    warnings: list[str] = Field(
        default_factory=list,
        description="Sentences about odd contents, such as teams of another size than the ladder's team_size; absent "
        "if there are none.",
    )


class Outcome(ResponseModel):
    """The outcome of one match of a batch: a receipt, or the problem that refused it."""

    match_id: str
    receipt: ReceiptOut | None = None
    problem: Problem | None = None


class BatchOutcome(ResponseModel):
    """The outcomes of the matches of a batch, in its order."""

    recorded: int
    refused: int
    outcomes: list[Outcome]


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

    model_config = examples({"teams": [{"players": ["ann", "bob"]}, {"players": ["eve", "joe"]}]})

    teams: list[TeamLineUp] = Field(min_length=2, max_length=256)
    stakes: StakesRequest | None = Field(
        default=None,
        description="Also compute what the players would gain or lose; {}: all players, default assumptions.",
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
    """

    player: str
    score: float | None
    seconds: float | None
    quit: bool
    performance: float | None
    keep: bool
    before: float | None = None
    after: float | None = None
    change: float | None = None
    percentile: int | None = None
    division: str | None = None
    factors: dict[str, float | bool | str | None] | None = None
    sentences: list[str] = Field(default_factory=list, description="The rating change and its reasons, in sentences.")


class TeamOut(ResponseModel):
    """A team of a recorded match."""

    label: str
    place: int = Field(description="1 is best; equal places are a draw.")
    score: float | None
    expected: float | None = Field(default=None, description="The team's expected score before the match, 0 to 1.")
    players: list[AppearanceOut]


@fields_of(MatchProfile, "sides", "reasons")
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
