"""A ticket: one party that waits for a match, with the preferences of its members."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import NamedTuple

from evenmatch.errors import InputError
from evenmatch.matchmaking.ticket_choice import TicketChoice, common_choice
from evenmatch.policy import LARGEST_TEAM

LARGEST_NUMBER = 2**62


class Met(NamedTuple):
    """A player met in a recent match; `time`: when that match ended, microseconds since the epoch."""

    player: int
    time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One player of a ticket. Raises InputError for an invalid value.

    player      the unique number of the player
    percentile  the fractional percentile 0..100: players below plus half of the equal ones (queue_percentiles)
    rating      the rating from which the policy predicts odds, in points of the ladder
    within      the rank filter: the largest distance to other players, in percentiles
    loose       whether the filter widens with waiting; False: strict, always `within`
    deviation   the uncertainty of the percentile, in percentiles
    newcomer    not placed yet
    roles       the roles that this player offers; empty: any role
    ping        milliseconds by region; empty: any region
    max_ping    the highest ping that this player accepts, in milliseconds
    avoid       players who must never be in the same match
    met         players met recently, whose rematch costs waiting time
    attributes  the values that this player accepts, by attribute of the policy (`map`: maps); not named: all values
    vetoes      maps that this player does not play
    """

    player: int
    percentile: float
    rating: float
    within: float = 2.0
    loose: bool = True
    deviation: float = 0.0
    newcomer: bool = False
    roles: tuple[str, ...] = ()
    ping: Mapping[str, float] = field(default_factory=dict)
    max_ping: float = math.inf
    avoid: tuple[int, ...] = ()
    met: tuple[Met, ...] = ()
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    vetoes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_number("player", self.player)
        listed = {"roles": self.roles, "avoid": self.avoid, "met": self.met, "vetoes": self.vetoes}
        for name, values in (*listed.items(), *self.attributes.items()):
            if not isinstance(values, tuple | list):
                raise InputError(f"player {self.player}: {name} is {values!r}; expected a tuple")
        object.__setattr__(self, "met", tuple(Met(*meeting) for meeting in self.met))
        _check_range(self.player, "percentile", self.percentile, 0, 100)
        _check_range(self.player, "rating", self.rating, -1e300, 1e300)
        _check_range(self.player, "within", self.within, 0, 100)
        _check_range(self.player, "deviation", self.deviation, 0, 100)
        _check_range(self.player, "max_ping", self.max_ping, 0, math.inf)
        for region, ping in self.ping.items():
            _check_range(self.player, f"ping to {region!r}", ping, 0, 1e9)
        for other in (*self.avoid, *(meeting.player for meeting in self.met)):
            check_number(f"player {self.player}: a player to avoid or met", other)
            if other == self.player:
                raise InputError(f"player {self.player} avoids or met themselves; expected other players")

    def reaches(self, region: str) -> bool:
        """Whether the player can play in a region: its ping is known and at most max_ping, or no pings are given."""
        return not self.ping or (region in self.ping and self.ping[region] <= self.max_ping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A party of one or more members that is never split. Raises InputError if it is invalid.

    id      the unique number of the ticket
    queued  when the party began to wait, microseconds since the epoch
    """

    id: int
    queued: int
    members: tuple[Member, ...]

    def __post_init__(self) -> None:
        check_number("ticket", self.id)
        check_number(f"ticket {self.id}: queued", self.queued)
        if not isinstance(self.members, tuple | list) or not all(isinstance(member, Member) for member in self.members):
            raise InputError(f"ticket {self.id}: members is {self.members!r}; expected a tuple of Member")
        if not 1 <= len(self.members) <= LARGEST_TEAM:
            raise InputError(f"ticket {self.id} has {len(self.members)} members; expected 1 to {LARGEST_TEAM}")
        players = {member.player for member in self.members}
        if len(players) < len(self.members):
            raise InputError(f"ticket {self.id} has a player twice; expected each player once")
        for member in self.members:
            if unfriendly := players.intersection(member.avoid):
                raise InputError(
                    f"ticket {self.id}: player {member.player} avoids {min(unfriendly)}, who is in the same party; "
                    "expected a party whose members do not avoid each other"
                )
        regions = {region for member in self.members for region in member.ping}
        if regions and not any(all(member.reaches(region) for member in self.members) for region in regions):
            raise InputError(
                f"ticket {self.id}: no region is within the ping limits of all its members; expected a party "
                f"with one in common (given: {', '.join(sorted(regions))})"
            )
        common_choice({f"player {member.player}": member for member in self.members})

    @property
    def loose(self) -> bool:
        """Whether the filter of the party widens: only if no member is strict."""
        return all(member.loose for member in self.members)

    @property
    def regions(self) -> frozenset[str] | None:
        """The regions where all members can play; None: any region."""
        known = {region for member in self.members for region in member.ping}
        if not known:
            return None
        return frozenset(region for region in known if all(member.reaches(region) for member in self.members))

    @property
    def choice(self) -> TicketChoice:
        """The values and maps that all members accept."""
        if not any(member.attributes or member.vetoes for member in self.members):
            return TicketChoice()
        return common_choice({f"player {member.player}": member for member in self.members})


def check_number(name: str, value: object) -> None:
    """Raise InputError unless the value is a whole number from 0 to 2^62 - 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < LARGEST_NUMBER:
        raise InputError(f"{name}={value!r}: expected a whole number from 0 to 2^62 - 1")


def _check_range(player: int, name: str, value: object, low: float, high: float) -> None:
    is_number = isinstance(value, float | int | Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:  # type: ignore[operator] # not converted to float, which would lose digits
        top = f"to {high:g}" if math.isfinite(high) else "upwards"
        raise InputError(f"player {player}: {name} is {value!r}; expected a number from {low:g} {top}")
