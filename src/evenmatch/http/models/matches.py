"""Finished matches as game servers report them, and what they did to their players."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.http.models.base import Asked, Moment, Name, Seconds, Told, examples
from evenmatch.http.models.problems import Problem

PLAYED = "2026-11-21T18:30:00Z"
TEAMS = [
    {"score": 7, "players": [{"player": "ann", "score": 12, "seconds": 600}, {"player": "bob", "seconds": 600}]},
    {"score": 4, "players": [{"player": "eve", "seconds": 600}, {"player": "joe", "seconds": 120, "quit": True}]},
]
FACTORS = {"stake": 75.0, "rank_modifier": 1.0, "floored": False}
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


class AppearanceReport(Asked):
    """One player in a match; what was not recorded is left out."""

    player: Name
    score: float | None = Field(default=None, description="Points of the player in the match.")
    seconds: Seconds | None = Field(default=None, description="Seconds in the game.")
    quit: bool = Field(default=False, description="Left before the end and did not come back.")
    performance: Annotated[float, Field(ge=-1, le=1)] | None = Field(
        default=None, description="-1 poor, 0 average, 1 good."
    )
    keep: bool = Field(default=True, description="False: the match does not change this player's rating.")


class TeamReport(Asked):
    """A side: who was on it, and how it finished: by place, or by score."""

    players: list[AppearanceReport] = Field(min_length=1)
    place: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="1 is best; equal is a draw."
    )
    score: float | None = Field(default=None, description="The team's; higher is better, where no places are given.")


class MatchReport(Asked):
    """A finished match."""

    model_config = examples({"id": "m-1", "played_at": PLAYED, "duration": 600, "teams": TEAMS})

    id: Name = Field(description="Chosen by the sender: the same again changes nothing and gets the same answer.")
    played_at: Moment = Field(description="When it ended.")
    teams: list[TeamReport] = Field(min_length=2)
    duration: Seconds | None = Field(
        default=None, description="Seconds; the longest of any player where it is left out."
    )
    rated: bool = Field(default=True, description="False: it is recorded, and changes no rating.")


class BatchReport(Asked):
    """Several finished matches of one ladder, in the order in which they ended."""

    model_config = examples({"matches": [{"id": "m-1", "played_at": PLAYED, "teams": TEAMS}]})

    matches: list[MatchReport] = Field(min_length=1)


class PlayerChange(Told):
    """What a match did to one player, and why."""

    player: str
    team: int = Field(description="Counted from 0.")
    before: float
    after: float
    change: float
    expected: float = Field(description="The team's expected score before the match, 0 to 1.")
    result: float = Field(description="The team's score: 1 for ahead of all others, 0.5 for a draw.")
    factors: dict[str, float | bool | str | None] = Field(description="The system's own, by name.")
    percentile: int | None = Field(description="1 to 100; null while not placed.")
    division: str | None


class Receipt(Told):
    """What recording a match did."""

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
    position: int = Field(description="Its place in the ladder's ledger.")
    rated: bool
    teams: list[list[PlayerChange]]


class Outcome(Told):
    """What became of one match of a batch: a receipt, or why it was refused."""

    match_id: str
    receipt: Receipt | None = None
    problem: Problem | None = None


class BatchOutcome(Told):
    """What became of each match of a batch, in its order."""

    recorded: int
    refused: int
    outcomes: list[Outcome]


class TeamLineUp(Asked):
    """The players of a team, by name."""

    players: list[Name] = Field(min_length=1, max_length=256)


class LineUp(Asked):
    """Teams that might play."""

    model_config = examples({"teams": [{"players": ["ann", "bob"]}, {"players": ["eve", "joe"]}]})

    teams: list[TeamLineUp] = Field(min_length=2, max_length=256)


class PlayerOdds(Told):
    """A player of a line-up; a newcomer is not on the ladder, and counts as the system has newcomers begin."""

    player: str
    rating: float
    newcomer: bool


class TeamOdds(Told):
    """A team's prospects. win, draw: against each of the teams, in their order."""

    players: list[PlayerOdds]
    expected: float
    win: list[float]
    draw: list[float]


class Odds(Told):
    """What is to be expected of a line-up."""

    model_config = examples(
        {
            "ladder": "arena",
            "teams": [
                {
                    "players": [{"player": "ann", "rating": 1575.0, "newcomer": False}],
                    "expected": 0.64,
                    "win": [0.0, 0.62],
                    "draw": [0.0, 0.04],
                }
            ],
        }
    )

    ladder: str
    teams: list[TeamOdds]


class AppearanceTold(Told):
    """A player of a recorded match, as reported; then what the match did to them, where it is rated.

    percentile, division  as they were shown when the match was recorded
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
    sentences: list[str] = Field(default_factory=list, description="What happened to the rating and why, for people.")


class TeamTold(Told):
    """A team of a recorded match."""

    label: str
    place: int = Field(description="1 is best; equal places are a draw.")
    score: float | None
    expected: float | None = Field(default=None, description="Its expected score before the match, 0 to 1.")
    players: list[AppearanceTold]


class MatchTold(Told):
    """A recorded match as it counts now, with what it did and why.

    state  rated; unrated: as it was sent, or since the system cannot rate it; void: itself or by a player's ban; waits:
           a rebuild that is due will rate it
    """

    model_config = examples(MATCH)

    match_id: str
    ladder: str
    position: int = Field(description="Its place in the ladder's ledger.")
    played_at: Moment
    duration: float | None
    system: str = Field(description="The system that rates the ladder.")
    state: Literal["rated", "unrated", "void", "waits"]
    reason: str | None = Field(default=None, description="Why it is not rated.")
    teams: list[TeamTold]
    sentences: list[str] = Field(description="Who won, how each team did, what became of it: for people.")


class MatchesPage(Told):
    """Matches of a ladder, the latest first. By times, a page may be short, even empty, while there is a next one."""

    model_config = examples({"ladder": "arena", "items": [MATCH], "next": None})

    ladder: str
    items: list[MatchTold]
    next: str | None
