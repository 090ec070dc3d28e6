"""What players and the game's backend wish of a ladder's queues, and what they are told at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeker:
    """One player of a party, and what they want; see matchmaking.Member for within, loose, roles, ping and max_ping.

    avoid  names of players whom they never want to meet
    """

    name: str
    within: float = 2.0
    loose: bool = True
    roles: tuple[str, ...] = ()
    ping: Mapping[str, float] = field(default_factory=dict)
    max_ping: float | None = None
    avoid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A party wants to wait in these queues.

    request  chosen by the sender: the same party and request again gives the same ticket
    """

    members: tuple[Seeker, ...]
    queues: tuple[str, ...]
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """A party wants to wait no longer. `player`: who of it says so; None: who speaks for all of them."""

    ticket: int
    player: str | None = None


@dataclass(frozen=True, slots=True)
class Accept:
    """A player of a ticket wants the match that is offered; `player` None: all of the ticket do.

    offer  which one is meant; None: the present one
    """

    ticket: int
    player: str | None = None
    offer: int | None = None


@dataclass(frozen=True, slots=True)
class Decline:
    """A player of a ticket does not want the match that is offered; as `Accept` otherwise."""

    ticket: int
    player: str | None = None
    offer: int | None = None


Answer = Leave | Accept | Decline
Wish = Join | Answer


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a wish: the ticket as it is then; `state` is waiting, offered, matched or gone."""

    ticket: int
    change: int
    state: str
    offer: int | None = None
    match_id: str | None = None
