"""Match reports of game servers, receipts with the rating changes, recorded matches and odds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.http.models.base import Moment, Name, Problem, RequestModel, ResponseModel, Seconds, examples
from evenmatch.http.models.options import OptionsRequest, OptionsResponse, checked_fields, response_fields
from evenmatch.options import options_of
from evenmatch.stake_assumptions import StakeAssumptions

PLAYED = "2026-11-21T18:30:00Z"
TEAMS = [
    {"score": 7, "players": [{"player": "ann", "score": 12, "seconds": 600}, {"player": "bob", "seconds": 600}]},
    {"score": 4, "players": [{"player": "eve", "seconds": 600}, {"player": "joe", "seconds": 120, "quit": True}]},
]
FACTORS = {"stake": 75.0, "rank_modifier": 1.0, "floored": False}
STAKES = {
    "before": 1575.0,
    "after": {"win": 1650.0, "draw": 1575.0, "loss": 1492.5, "quit": 1492.5},
    "change": {"win": 75.0, "draw": 0.0, "loss": -82.5, "quit": -82.5},
}
MATCH = {
    "match_id": "m-1",
    "ladder": "arena",
    "position": 2,
    "played_at": PLAYED,
    "duration": 600.0,
    "system": "wager",
    "state": "rated",
    "reason": None,
    "teams": [
        {
            "label": "0",
            "place": 1,
            "score": 7.0,
            "expected": 0.5,
            "players": [
                {
                    "player": "ann",
                    "score": 12.0,
                    "seconds": 600.0,
                    "quit": False,
                    "performance": None,
                    "keep": True,
                    "before": 1500.0,
                    "after": 1575.0,
                    "change": 75.0,
                    "percentile": None,
                    "division": None,
                    "factors": FACTORS,
                    "sentences": ["1500.00 → 1575.00  +75.00", "won; wagered 5 % of 1500.00, 75.0000"],
                }
            ],
        }
    ],
    "sentences": ["Team 0 won: an even match.", "Team 0: place 1, score 7, expected 50.0% before the match."],
}


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

    model_config = examples(
        {
            "match_id": "m-1",
            "ladder": "arena",
            "position": 2,
            "rated": True,
            "teams": [
                [
                    {
                        "player": "ann",
                        "team": 0,
                        "before": 1500.0,
                        "after": 1575.0,
                        "change": 75.0,
                        "expected": 0.5,
                        "result": 1.0,
                        "factors": FACTORS,
                        "percentile": None,
                        "division": None,
                    }
                ]
            ],
        }
    )

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


class OutcomesOut(ResponseModel):
    """A number for each outcome of a match for one player.

    win, draw, loss  of their team; of three and more teams: first place, all level, last place
    quit             the player leaves early, and the team loses
    """

    win: float
    draw: float
    loss: float
    quit: float


class PlayerStakesOut(ResponseModel):
    """The stakes of a player: ratings as the receipt of the match will have them, if it goes as assumed."""

    before: float
    after: OutcomesOut
    change: OutcomesOut


@response_fields(options_of(StakeAssumptions))
class AssumptionsOut(OptionsResponse):
    """The assumptions about the match to come, behind the stakes."""

    sentences: list[str] = Field(description="The assumptions and the meaning of the outcomes, in words.")


class PlayerOdds(ResponseModel):
    """A player of a line-up. newcomer: not on the ladder; counts with the system's starting rating."""

    player: str
    rating: float
    newcomer: bool
    stakes: PlayerStakesOut | None = Field(default=None, description="Null where they were not asked for.")


class TeamOdds(ResponseModel):
    """The odds of a team. win, draw: probabilities against each of the teams, in their order."""

    players: list[PlayerOdds]
    expected: float
    win: list[float]
    draw: list[float]


class OddsOut(ResponseModel):
    """The odds of a line-up, and its stakes if they were asked for."""

    model_config = examples(
        {
            "ladder": "arena",
            "teams": [
                {
                    "players": [{"player": "ann", "rating": 1575.0, "newcomer": False, "stakes": STAKES}],
                    "expected": 0.64,
                    "win": [0.0, 0.62],
                    "draw": [0.0, 0.04],
                }
            ],
        }
    )

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


class MatchOut(ResponseModel):
    """A recorded match as it counts now, with its rating changes and their reasons.

    state  rated; unrated: reported as unrated or with two names of one player, or the system cannot rate it; void:
           voided itself, or by the ban of a player; waits: the next rebuild will rate it
    """

    model_config = examples(MATCH)

    match_id: str
    ladder: str
    position: int = Field(description="Position in the ladder's ledger.")
    played_at: Moment
    duration: float | None
    system: str = Field(description="Rating system of the ladder.")
    state: Literal["rated", "unrated", "void", "waits"]
    reason: str | None = Field(default=None, description="Why the match is not rated.")
    late: str | None = Field(
        default=None, description="Where a match that was recorded late counts; null: it was recorded in time."
    )
    teams: list[TeamOut]
    sentences: list[str] = Field(
        description="The winner, the result of each team and the state of the match, in sentences."
    )


class MatchesPage(ResponseModel):
    """Matches of a ladder, latest first. Filtered by time, a page may be short or empty although `next` is not null."""

    model_config = examples({"ladder": "arena", "items": [MATCH], "next": None})

    ladder: str
    items: list[MatchOut]
    next: str | None
