"""A ticket: one party that waits for a match, with what each member wants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import NamedTuple

from evenmatch.errors import InputError
from evenmatch.matchmaking.policy import LARGEST_TEAM

LARGEST_NUMBER = 2**62


class Met(NamedTuple):
    """Somebody met in a recent match; `time` in microseconds since the epoch, when that match ended."""

    player: int
    time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One player of a ticket. Raises InputError where a value is outside what is accepted.

    player      the player's number; one player has one
    percentile  the fractional one, 0..100: players below, and half of the equals (standings.queue_percentiles)
    rating      the number by which the policy foretells odds, in the ladder's own points
    within      the rank filter: how many percentiles away others may be
    loose       whether the filter widens with waiting; False: strict, `within` for ever
    deviation   how uncertain the percentile is, in percentiles
    newcomer    not placed yet
    roles       what this player offers to play; nothing stands for any role
    ping        milliseconds by region; nothing stands for any region
    max_ping    the most that this player accepts, in milliseconds
    avoid       players that are never to be met
    met         players met recently, whom to meet again at once is no pleasure
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

    def __post_init__(self) -> None:
        check_number("player", self.player)
        for name, values in (("roles", self.roles), ("avoid", self.avoid), ("met", self.met)):
            if not isinstance(values, tuple | list):
                raise InputError(f"player {self.player}: {name} is {values!r}; accepted is a tuple")
        object.__setattr__(self, "met", tuple(Met(*one) for one in self.met))
        _check_range(self.player, "percentile", self.percentile, 0, 100)
        _check_range(self.player, "rating", self.rating, -1e300, 1e300)
        _check_range(self.player, "within", self.within, 0, 100)
        _check_range(self.player, "deviation", self.deviation, 0, 100)
        _check_range(self.player, "max_ping", self.max_ping, 0, math.inf)
        for region, ping in self.ping.items():
            _check_range(self.player, f"ping to {region!r}", ping, 0, 1e9)
        for other in (*self.avoid, *(one.player for one in self.met)):
            check_number(f"player {self.player}: a player to avoid or met", other)
            if other == self.player:
                raise InputError(f"player {self.player} avoids or met themselves; accepted are others")

    def reaches(self, region: str) -> bool:
        """Whether the ping there is known and not above what this player accepts; any region is, where none is told."""
        return not self.ping or (region in self.ping and self.ping[region] <= self.max_ping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A party of one or more members that is never split. Raises InputError where it cannot stand.

    id      the ticket's number; one ticket has one
    queued  when the party began to wait, microseconds since the epoch
    """

    id: int
    queued: int
    members: tuple[Member, ...]

    def __post_init__(self) -> None:
        check_number("ticket", self.id)
        check_number(f"ticket {self.id}: queued", self.queued)
        if not isinstance(self.members, tuple | list) or not all(isinstance(one, Member) for one in self.members):
            raise InputError(f"ticket {self.id}: members is {self.members!r}; accepted is a tuple of Member")
        if not 1 <= len(self.members) <= LARGEST_TEAM:
            raise InputError(f"ticket {self.id} has {len(self.members)} members; accepted are 1 to {LARGEST_TEAM}")
        players = {member.player for member in self.members}
        if len(players) < len(self.members):
            raise InputError(f"ticket {self.id} has a player twice; accepted is each player once")
        for member in self.members:
            if unfriendly := players.intersection(member.avoid):
                raise InputError(
                    f"ticket {self.id}: player {member.player} avoids {min(unfriendly)}, who is in the same party; "
                    "accepted is a party whose members go together"
                )
        regions = {region for member in self.members for region in member.ping}
        if regions and not any(all(member.reaches(region) for member in self.members) for region in regions):
            raise InputError(
                f"ticket {self.id}: no region is within the ping limits of all its members; accepted is a party "
                f"with one in common (told: {', '.join(sorted(regions))})"
            )

    @property
    def loose(self) -> bool:
        """Whether the party's filter widens: strict if one member is strict."""
        return all(member.loose for member in self.members)

    @property
    def regions(self) -> frozenset[str] | None:
        """The regions where all members can play; None stands for any."""
        told = {region for member in self.members for region in member.ping}
        if not told:
            return None
        return frozenset(region for region in told if all(member.reaches(region) for member in self.members))


def check_number(name: str, value: object) -> None:
    """Raise InputError for what is no number that a column holds."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < LARGEST_NUMBER:
        raise InputError(f"{name}={value!r}: accepted is a whole number from 0 to 2^62 - 1")


def _check_range(player: int, name: str, value: object, low: float, high: float) -> None:
    known = isinstance(value, float | int | Real) and not isinstance(value, bool)
    if not known or not low <= value <= high:  # type: ignore[operator] # compared as it is: a float holds less
        top = f"to {high:g}" if math.isfinite(high) else "upwards"
        raise InputError(f"player {player}: {name} is {value!r}; accepted is a number from {low:g} {top}")
