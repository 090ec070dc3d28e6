"""Queues, tickets and offers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenmatch.http.models.base import Asked, Moment, Name, Told, examples
from evenmatch.http.models.policies import PolicyOptions, QueuePolicy

Ping = Annotated[float, Field(ge=0, le=1e9, description="Milliseconds.")]


class Seeker(Asked):
    """A player of a party, and what they want."""

    player: Name
    within: Annotated[float, Field(ge=0, le=100)] = Field(
        default=2.0, description="Percentiles away that others may be."
    )
    loose: bool = Field(default=True, description="The filter widens with waiting; false: strict, `within` for ever.")
    roles: list[Name] = Field(default_factory=list, max_length=64, description="What they play; none stands for any.")
    ping: dict[Name, Ping] = Field(default_factory=dict, max_length=64, description="By region; none stands for any.")
    max_ping: Ping | None = Field(default=None, description="The most that this player accepts.")
    avoid: list[Name] = Field(default_factory=list, max_length=256, description="Players never to be met.")


class JoinQueue(Asked):
    """A party wants a match."""

    model_config = examples(
        {
            "queues": ["main"],
            "members": [
                {"player": "ann", "within": 5, "loose": False, "ping": {"eu": 20, "us": 110}},
                {"player": "bob", "ping": {"eu": 35}, "avoid": ["joe"]},
            ],
        }
    )

    members: list[Seeker] = Field(min_length=1, max_length=50)
    queues: list[Name] = Field(min_length=1, max_length=64, description="A ticket may wait in several.")
    request_id: Name | None = Field(default=None, description="Chosen by you: sent again, it gives the same ticket.")


class Say(Asked):
    """An answer to an offer."""

    model_config = examples({"player": "ann"})

    player: Name | None = Field(default=None, description="Who of the party says so; all of it where it is left out.")
    offer: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Which is meant; the present one by default."
    )


class WaitingTold(Told):
    """What a ticket waits for in one queue."""

    window: tuple[float, float] | None = Field(description="Percentiles in which all others must be.")
    strict: bool
    widens_in: float | None = Field(description="Seconds; null: it does not widen any more.")
    widens_to: tuple[float, float] | None
    needed: int = Field(description="Further players that a match needs.")
    within: int = Field(description="Players who could be in a match with it now.")
    estimate: float | None = Field(description="Seconds; null: nobody came near lately.")
    sentences: list[str] = Field(description="The same for people.")


class OfferTold(Told):
    """A match that is offered.

    accepted  how many of its players have;  own: of the ticket's own players whether they have
    match_id  the running match whose open seats are offered; null: a new match
    """

    offer: int
    queue: str
    deadline: Moment
    players: int
    accepted: int
    own: dict[str, bool]
    teams: list[int] = Field(description="How many players of each team are asked.")
    match_id: str | None
    region: str | None
    odds: float = Field(
        description="The chance of the first team; of the strongest against the weakest where there are more than two."
    )
    spread: float = Field(description="Percentiles between its lowest and its highest player.")
    costs: dict[str, float] = Field(description="In seconds of waiting that they are worth.")


class MatchedPlayer(Told):
    """A player of a match."""

    player: str
    role: str | None


class MatchedTold(Told):
    """The match that a ticket was made part of."""

    match_id: str
    state: Literal["open", "closed", "cancelled", "expired"]
    queue: str | None
    region: str | None
    started_at: Moment
    teams: list[list[MatchedPlayer]]


class TicketTold(Told):
    """A ticket as it is.

    state    waiting; offered: players are asked; matched: play; gone: it waits no longer, `ended` says why
    change   counts up; send it as `after` to wait for the next
    waiting  what it waits for, by queue, while it does
    matchmaker  starting: no matches are made until it runs, and that time does not count as waiting
    """

    ticket: int
    ladder: str
    state: Literal["waiting", "offered", "matched", "gone"]
    change: int
    players: list[str]
    queues: list[str]
    queued_at: Moment
    waited: float | None = Field(description="Seconds; null: it waits no more.")
    ended: str | None
    offer: OfferTold | None
    match: MatchedTold | None
    waiting: dict[str, WaitingTold]
    matchmaker: Literal["running", "starting"] = "running"


class Done(Told):
    """What became of a wish: the ticket's state from now on."""

    ticket: int
    ladder: str
    state: Literal["waiting", "offered", "matched", "gone"]
    change: int
    offer: int | None
    match_id: str | None


class QueueRulesAsked(Asked):
    """What holds around the policy; seconds. What is left out is as by default."""

    accept_within: float | None = None
    heartbeat: float | None = None
    tick: float | None = None
    penalty: float | None = None
    penalty_most: float | None = None
    penalty_fades: float | None = None
    longest_match: float | None = None


class SetQueue(Asked):
    """A queue: the policy by which it makes matches, and the rules around it."""

    model_config = examples({"policy": {"preset": "balanced", "team_size": 6}, "rules": {"accept_within": 20}})

    policy: PolicyOptions = Field(default=PolicyOptions(), strict=False)
    rules: QueueRulesAsked = Field(default_factory=QueueRulesAsked)


class QueueTold(Told):
    """A queue, and who waits in it."""

    ladder: str
    queue: str
    change: int
    policy: QueuePolicy
    rules: dict[str, float | None]
    matchmaker: Literal["running", "starting"] = Field(
        default="running", description="Starting: no matches are made until it runs."
    )
    tickets: int
    players: int
    by_percentile: list[int] = Field(description="Players who wait, by bands of ten percentiles.")
    by_region: dict[str, int] = Field(description="Players who could play there.")


class QueuesTold(Told):
    """The queues of a ladder."""

    items: list[QueueTold]


class PenaltyTold(Told):
    """What a player waits out for having let others down."""

    player: str
    ladder: str
    strikes: float = Field(description="Fading with time.")
    until: Moment | None = Field(description="When they may queue again; null: they may.")


class TicketOf(Told):
    """Where a player waits or plays; both null: nowhere."""

    player: str
    ladder: str
    ticket: int | None
    match_id: str | None
