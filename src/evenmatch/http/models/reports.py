"""Match reports of game servers, and the receipts that answer them, as structs that are fast to read and write."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from evenmatch.http.models.base import ENTRY, LONGEST, Problem
from evenmatch.match import HIGHEST_ENTRY
from evenmatch.match_context import COLUMN, LONGEST_VALUE, MOST

PLAYED = "2026-11-21T18:30:00Z"
TEAMS = [
    {"score": 7, "players": [{"player": "ann", "score": 12, "seconds": 600}, {"player": "bob", "seconds": 600}]},
    {"score": 4, "players": [{"player": "eve", "seconds": 600}, {"player": "joe", "seconds": 120, "quit": True}]},
]
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
TimeText = Annotated[str, Meta(extra_json_schema={"format": "date-time", "examples": [PLAYED]})]
Seconds = Annotated[float, Meta(ge=0)]
Entry = Annotated[float, Meta(ge=-HIGHEST_ENTRY, le=HIGHEST_ENTRY)]
Place = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Context = Annotated[
    dict[Annotated[str, Meta(pattern=f"^{COLUMN}$")], Annotated[str, Meta(max_length=LONGEST_VALUE)]],
    Meta(max_length=MOST),
]
EventId = Annotated[
    Name | None,
    Meta(
        description="Chosen by you: a repeated request changes nothing; the same id with other content is a conflict."
    ),
]


class AppearanceReport(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One player in a match; omit values that were not measured."""

    player: Name
    score: Annotated[float | None, Meta(description="Points of the player in the match.")] = None
    seconds: Annotated[Seconds | None, Meta(description="Seconds in the match.")] = None
    quit: Annotated[bool, Meta(description="Left before the end and did not come back.")] = False
    performance: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None, Meta(description="-1 poor, 0 average, 1 good.")
    ] = None
    keep: Annotated[bool, Meta(description="False: the match does not change this player's rating.")] = True
    entry: Annotated[Entry | None, Meta(description=ENTRY)] = None


class TeamReport(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A team: its players and its result, by place or by score."""

    players: Annotated[list[AppearanceReport], Meta(min_length=1)]
    place: Annotated[Place | None, Meta(description="1 is best; equal places are a draw.")] = None
    score: Annotated[
        float | None, Meta(description="Score of the team; higher is better. Used if no places are given.")
    ] = None


class MatchReport(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A finished match."""

    id: Annotated[
        Name,
        Meta(description="Chosen by the sender: repeating the report changes nothing and returns the same receipt."),
    ]
    played_at: Annotated[TimeText, Meta(description="Time when the match ended.")]
    teams: Annotated[list[TeamReport], Meta(min_length=2)]
    duration: Annotated[Seconds | None, Meta(description="Seconds; default: the longest time of any player.")] = None
    rated: Annotated[bool, Meta(description="False: the match is recorded but changes no rating.")] = True
    context: Annotated[
        Context,
        Meta(
            description="What the match was played on, such as its map and mode. All is stored; the ladder's setting "
            "`context` says what its ratings learn from."
        ),
    ] = {}

    EXAMPLE: ClassVar[dict[str, Any]] = {
        "id": "m-1",
        "played_at": PLAYED,
        "duration": 600,
        "teams": TEAMS,
        "context": {"map": "dust"},
    }


class BatchReport(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Several finished matches of one ladder, in the order in which they ended."""

    matches: Annotated[list[MatchReport], Meta(min_length=1)]

    EXAMPLE: ClassVar[dict[str, Any]] = {"matches": [{"id": "m-1", "played_at": PLAYED, "teams": TEAMS}]}


class LateMatches(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Matches that ended before the ladder's newest match, to be rated at the time they were played."""

    matches: Annotated[list[MatchReport], Meta(min_length=1, max_length=1000)]
    reason: Annotated[str, Meta(max_length=2000)] | None = None
    id: EventId = None

    EXAMPLE: ClassVar[dict[str, Any]] = {
        "matches": [{"id": "m-0", "played_at": "2026-05-21T18:00:00Z", "teams": TEAMS}],
        "reason": "the server was offline",
    }


class PlayerChange(Struct, frozen=True, gc=False):
    """The rating change of one player in a match, with the factors that explain it."""

    player: str
    team: Annotated[int, Meta(description="Counted from 0.")]
    before: float
    after: float
    change: float
    expected: Annotated[float, Meta(description="The team's expected score before the match, 0 to 1.")]
    result: Annotated[
        float, Meta(description="The team's actual score, 0 to 1: 1 if it beat all others, 0.5 for a draw.")
    ]
    factors: Annotated[dict[str, float | bool | str | None], Meta(description="Factors of the rating system, by name.")]
    percentile: Annotated[int | None, Meta(description="1 to 100; null before the placement matches are completed.")]
    division: str | None


class Receipt(Struct, frozen=True, gc=False, omit_defaults=True):
    """The receipt of a recorded match: the rating change of each player."""

    match_id: str
    ladder: str
    position: Annotated[int, Meta(description="Position in the ladder's ledger.")]
    rated: bool
    teams: list[list[PlayerChange]]
    warnings: Annotated[
        list[str],
        Meta(
            description="Warnings in sentences, such as teams whose size is not the ladder's team_size; "
            "absent if there are none."
        ),
    ] = []


class Outcome(Struct, frozen=True, gc=False, omit_defaults=True):
    """The outcome of one match of a batch: a receipt, or the problem that refused it."""

    match_id: str
    receipt: Receipt | None = None
    problem: Problem | None = None


class BatchOutcome(Struct, frozen=True, gc=False):
    """The outcomes of the matches of a batch, in its order."""

    recorded: int
    refused: int
    outcomes: list[Outcome]
