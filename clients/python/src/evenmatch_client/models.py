"""Answers of the service as structs. They ignore fields that a newer service adds."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

TicketState = Literal["waiting", "offered", "matched", "elsewhere", "gone"]
Stage = Literal["matched", "announced", "rated"]


class Fault(Struct):
    """What is wrong with a part of a request."""

    where: str
    reason: str


class Problem(Struct):
    """Why a request was refused (RFC 9457). type: for programs;  detail: for people."""

    type: str
    title: str
    status: int
    detail: str = ""
    request_id: str | None = None
    problems: list[Fault] | None = None
    retry_after: float | None = None
    until: str | None = None


class PlayerChange(Struct):
    """What a match did to a player. expected, result: the team's score, 0 to 1; percentile: None before placement."""

    player: str
    team: int
    before: float
    after: float
    change: float
    expected: float
    result: float
    factors: dict[str, float | bool | str | None]
    percentile: int | None
    division: str | None


class Receipt(Struct):
    """A recorded match. teams: the changes of each team's players; warnings: sentences about odd contents."""

    match_id: str
    ladder: str
    position: int
    rated: bool
    teams: list[list[PlayerChange]]
    warnings: list[str] = []


class Outcome(Struct):
    """What became of one match of a batch: a receipt or a problem."""

    match_id: str
    receipt: Receipt | None = None
    problem: Problem | None = None


class BatchOutcome(Struct):
    """What became of a batch, in its order."""

    recorded: int
    refused: int
    outcomes: list[Outcome]


class PlayerRecord(Struct):
    """A player's results. rating_change: in 7 days; None: no rated match, or the rating is not shown."""

    won: int
    drew: int
    lost: int
    last_completed: datetime | None
    rating_change: float | None


class StandingRow(Struct):
    """A listed player. rating: None if the ladder does not show it; record: None if the season has ended."""

    rank: int | None
    player: str
    rating: float | None
    percentile: int | None
    division: str | None
    matches: int
    completed: int
    record: PlayerRecord | None = None


class StandingsPage(Struct):
    """A page of standings. moved: whether the standings moved on since the page before."""

    ladder: str
    items: list[StandingRow]
    next: str | None
    season: int | None = None
    listed: int | None = None
    moved: bool = False


class TicketLink(Struct):
    """Another ticket of a playlist."""

    ladder: str
    ticket: int
    state: TicketState


class TicketChange(Struct):
    """A ticket right after a request changed it. change: grows with every change of the ladder's queues."""

    ticket: int
    ladder: str
    state: TicketState
    change: int
    offer: int | None = None
    match_id: str | None = None
    playlist: dict[str, int] = {}


class Offer(Struct):
    """An offered match. own: whether each player of the ticket has accepted; teams: names of the offered players."""

    offer: int
    queue: str
    deadline: datetime
    players: int
    accepted: int
    own: dict[str, bool]
    teams: list[list[str]]
    match_id: str | None = None
    region: str | None = None
    odds: list[float] | None = None


class MatchedPlayer(Struct):
    """A player of a formed match."""

    player: str
    role: str | None = None


class Connection(Struct):
    """Where the players of a ticket connect. tokens: what each of them presents there, by name."""

    address: str
    tokens: dict[str, str] = {}


class TicketRating(Struct):
    """What a match did to a player of a ticket; None: not rated, or hidden. page: path of the page that explains it."""

    page: str
    before: float | None = None
    after: float | None = None
    change: float | None = None
    percentile: int | None = None
    division: str | None = None


class TicketReceipt(Struct):
    """The receipt of a match for the players of a ticket, by name."""

    rated: bool
    players: dict[str, TicketRating]


class FormedMatch(Struct):
    """The match that a ticket got.

    reason      why it was cancelled
    connection  None until it is announced
    receipt     None until it is recorded
    """

    match_id: str
    state: str
    started_at: datetime
    teams: list[list[MatchedPlayer]]
    queue: str | None = None
    region: str | None = None
    map: str | None = None
    attributes: dict[str, str] = {}
    reason: str | None = None
    connection: Connection | None = None
    receipt: TicketReceipt | None = None


class Waiting(Struct):
    """What a ticket waits for in a queue, also in sentences. estimate: seconds; None: not known."""

    strict: bool
    needed: int
    within: int
    sentences: list[str]
    window: tuple[float, float] | None = None
    estimate: float | None = None
    upper: float | None = None


class Ticket(Struct):
    """A party in its queues. waited: seconds; follow: the ticket of its playlist that has an offer or a match."""

    ticket: int
    ladder: str
    state: TicketState
    change: int
    players: list[str]
    queues: list[str]
    waiting: dict[str, Waiting] = {}
    waited: float | None = None
    ended: str | None = None
    offer: Offer | None = None
    match: FormedMatch | None = None
    playlist: list[TicketLink] = []
    follow: TicketLink | None = None

    @property
    def is_over(self) -> bool:
        """Whether the ticket is matched or gone."""
        return self.state in ("matched", "gone")

    def has_reached(self, stage: Stage) -> bool:
        """Whether the ticket has come as far as a stage, or cannot come that far any more."""
        if self.state != "matched" or self.match is None or stage == "matched":
            return self.is_over
        has_ended = self.match.state != "open"
        return has_ended or (stage == "announced" and self.match.connection is not None)


class Attendance(Struct):
    """A span of time in which a player was in a live match. left: None while they are."""

    came: datetime
    left: datetime | None


class LivePlayer(Struct):
    """A player of a live match."""

    player: str
    there: bool
    spells: list[Attendance]
    role: str | None = None
    ticket: int | None = None


class LiveMatch(Struct):
    """A live match."""

    match_id: str
    ladder: str
    change: int
    state: Literal["open", "closed", "cancelled", "expired"]
    made_by: Literal["queue", "announcement"]
    confirmed: bool
    connected: bool
    started_at: datetime
    teams: list[list[LivePlayer]]
    queue: str | None = None
    region: str | None = None
    openings: list[int] | None = None


class LiveMatches(Struct):
    """The live matches of a ladder."""

    items: list[LiveMatch]


class Token(Struct):
    """A player's token."""

    token: str
    player: str


class Job(Struct):
    """A background job. done, total: ledger events; told: why it failed."""

    job: str
    ladder: str
    kind: str
    state: Literal["running", "done", "failed", "cancelled"]
    done: int
    total: int
    told: str | None = None
    result: dict[str, Any] | None = None
    problems: list[Fault] = field(default_factory=list)
