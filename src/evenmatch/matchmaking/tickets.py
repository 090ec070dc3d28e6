"""Tickets: single parties that wait for a match, and many of them as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from numbers import Integral, Real
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evenmatch.attributes import MAP
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats
from evenmatch.policy import LARGEST_TEAM


class TicketChoice(NamedTuple):
    """The values and maps that all members of a ticket accept.

    accepted  sorted pairs of an attribute and the sorted values that all members accept; all values of an attribute
              that is left out
    vetoes    the maps that any member vetoes, sorted
    """

    accepted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    vetoes: tuple[str, ...] = ()


class ChoosingPlayer(Protocol):
    """A player with values of attributes and vetoes of maps."""

    @property
    def attributes(self) -> Mapping[str, Sequence[str]]:
        """The accepted values by attribute; none given: all."""

    @property
    def vetoes(self) -> Sequence[str]:
        """The vetoed maps."""


def common_choice(members: Mapping[str, ChoosingPlayer]) -> TicketChoice:
    """The choice of a party. `members` are keyed by the name used in messages.

    Raises InputError, which names two members, if their values of an attribute have nothing in common.
    """
    common: dict[str, set[str]] = {}
    for name, member in members.items():
        for attribute, values in member.attributes.items():
            if not values:
                continue
            common[attribute] = common.get(attribute, set(values)) & set(values)
            if not common[attribute]:
                raise InputError(_disagreement(attribute, name, members))
    vetoes = {veto for member in members.values() for veto in member.vetoes}
    if MAP in common and common[MAP] <= vetoes:
        raise InputError(f"{_names(members)}: every accepted map is vetoed ({', '.join(sorted(common[MAP]))})")
    accepted = tuple((attribute, tuple(sorted(values))) for attribute, values in sorted(common.items()))
    return TicketChoice(accepted, tuple(sorted(vetoes)))


def _disagreement(attribute: str, name: str, members: Mapping[str, ChoosingPlayer]) -> str:
    own = members[name].attributes[attribute]
    for other, member in members.items():
        values = member.attributes.get(attribute, ())
        if values and not set(own) & set(values):
            return (
                f"{other} and {name} are in one party and do not agree on {attribute}: {', '.join(values)} and "
                f"{', '.join(own)}; expected a common value"
            )
    return f"{_names(members)}: they do not all accept one value of {attribute}; expected a common value"


def _names(members: Mapping[str, ChoosingPlayer]) -> str:
    return ", ".join(members)


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
    newcomer    True until the player is placed
    roles       the roles that this player offers; empty: any role
    ping        milliseconds by region; empty: any region
    max_ping    the highest ping that this player accepts, in milliseconds
    avoid       players who must never be in the same match
    met         recent opponents and team-mates; a rematch with them costs waiting time
    attributes  the values that this player accepts, by attribute of the policy (`map`: maps); an attribute that is
                left out allows all values
    vetoes      maps that this player does not play
    """

    player: int
    percentile: float
    rating: float
    within: float = 2.0
    loose: bool = True
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
        _check_range(self.player, "max_ping", self.max_ping, 0, math.inf)
        for region, ping in self.ping.items():
            _check_range(self.player, f"ping to {region!r}", ping, 0, 1e9)
        for other in (*self.avoid, *(meeting.player for meeting in self.met)):
            check_number(f"player {self.player}: a player to avoid or met", other)
            if other == self.player:
                raise InputError(f"player {self.player} avoids or met themselves; expected other players")

    def reaches(self, region: str) -> bool:
        """Whether the player can play in a region: no pings are given, or the ping there is at most max_ping."""
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
                    f"ticket {self.id}: player {member.player} avoids player {min(unfriendly)} of the same party; "
                    "expected members who do not avoid each other"
                )
        regions = {region for member in self.members for region in member.ping}
        if regions and not any(all(member.reaches(region) for member in self.members) for region in regions):
            raise InputError(
                f"ticket {self.id}: no region is within the ping limits of all members; expected a common one among "
                f"{', '.join(sorted(regions))}"
            )
        common_choice({f"player {member.player}": member for member in self.members})

    @property
    def loose(self) -> bool:
        """Whether the filter of the party widens, which requires that no member is strict."""
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


Whole = NDArray[np.int64]
Masks = NDArray[np.uint64]
FOREVER = np.iinfo(np.int64).max  # the time at which players on an avoid list were met
MOST_REGIONS, MOST_ROLES = 60, 60
ANYWHERE = (1 << (MOST_REGIONS + 1)) - 1  # has one bit more than the mask of any ticket with pings


@dataclass(frozen=True, eq=False)
class Tickets:
    """T tickets with S members. The members of a ticket are contiguous.

    id, queued  int64 (T,)    number and microseconds since the epoch
    start       int64 (T+1,)  first member of each ticket
    player      int64 (S,)    percentile, rating, within float64 (S,)  loose, newcomer bool (S,)
    roles       uint64 (S,)   bit r: offers role_names[r]; 0: any role
    ping        float64 (T, R)  the members' worst ping to region_names[r]; inf if a member cannot play there;
                              a row of nan: any region
    named_start int64 (T+1,)  named int64 (N,)  players whom a member avoids or met
    met         int64 (N,)    when met, microseconds since the epoch; FOREVER: avoided
    choice      int64 (T,)    the row of `choices` with what each ticket accepts; empty: all tickets accept everything

    The constructor does not validate; `check` does.
    """

    id: Whole
    queued: Whole
    start: Whole
    player: Whole
    percentile: Floats
    rating: Floats
    within: Floats
    loose: Flags
    newcomer: Flags
    roles: Masks
    ping: Floats
    named_start: Whole
    named: Whole
    met: Whole
    region_names: tuple[str, ...] = ()
    role_names: tuple[str, ...] = field(default=())
    choice: Whole = field(default_factory=lambda: np.empty(0, np.int64))
    choices: tuple[TicketChoice, ...] = ()

    def __len__(self) -> int:
        return len(self.id)

    @classmethod
    def of(cls, tickets: Sequence[Ticket]) -> Tickets:
        """Convert tickets to columns."""
        members = [member for ticket in tickets for member in ticket.members]
        regions = tuple(sorted({region for member in members for region in member.ping}))
        roles = tuple(sorted({role for member in members for role in member.roles}))
        bit = {role: 1 << index for index, role in enumerate(roles)}
        named = [
            [(other, FOREVER) for member in ticket.members for other in member.avoid]
            + [tuple(met) for member in ticket.members for met in member.met]
            for ticket in tickets
        ]
        flat = list(chain.from_iterable(named))
        choice = [ticket.choice for ticket in tickets]
        choices = {own: row for row, own in enumerate(dict.fromkeys(choice))}
        is_choosy = any(own != TicketChoice() for own in choices)
        return cls(
            id=np.array([ticket.id for ticket in tickets], np.int64),
            queued=np.array([ticket.queued for ticket in tickets], np.int64),
            start=starts([len(ticket.members) for ticket in tickets]),
            player=np.array([member.player for member in members], np.int64),
            percentile=np.array([member.percentile for member in members], np.float64),
            rating=np.array([member.rating for member in members], np.float64),
            within=np.array([member.within for member in members], np.float64),
            loose=np.array([member.loose for member in members], np.bool_),
            newcomer=np.array([member.newcomer for member in members], np.bool_),
            roles=np.array([sum(bit[role] for role in set(member.roles)) for member in members], np.uint64),
            ping=np.array([_pings(ticket, regions) for ticket in tickets], np.float64).reshape(
                len(tickets), len(regions)
            ),
            named_start=starts([len(entries) for entries in named]),
            named=np.array([player for player, _ in flat], np.int64),
            met=np.array([time for _, time in flat], np.int64),
            region_names=regions,
            role_names=roles,
            choice=np.array([choices[own] for own in choice] if is_choosy else [], np.int64),
            choices=tuple(choices) if is_choosy else (),
        )

    @classmethod
    def plain(
        cls,
        id: Whole,  # noqa: A002 - a ticket's id
        queued: Whole,
        start: Whole,
        player: Whole,
        percentile: Floats,
        rating: Floats,
        within: Floats,
        loose: Flags,
    ) -> Tickets:
        """Tickets of parties of placed players, without region, role or avoid list; `start` as in the class."""
        members, none = len(player), np.empty(0, np.int64)
        return cls(
            *(id, queued, start, player, percentile, rating, within, loose),
            newcomer=np.zeros(members, np.bool_),
            roles=np.zeros(members, np.uint64),
            ping=np.empty((len(id), 0)),
            named_start=np.zeros(len(id) + 1, np.int64),
            named=none,
            met=none,
        )

    def check(self) -> None:
        """Raise InputError if the columns are inconsistent or contain invalid values."""
        self._check_lengths()
        for what, numbers in (("ticket", self.id), ("player", self.player), ("a player named", self.named)):
            if len(numbers) and not (numbers.min() >= 0 and numbers.max() < LARGEST_NUMBER):
                bad = numbers[(numbers < 0) | (numbers >= LARGEST_NUMBER)][0]
                raise InputError(f"{what} {bad}: expected a whole number from 0 to 2^62 - 1")
        for name, low, high in _RANGES:
            column = getattr(self, name)
            good = (column >= low) & (column <= high)
            if not good.all():
                bad = int(np.argmin(good))
                raise InputError(
                    f"player {self.player[bad]}: {name} is {column[bad]:g}; expected a number from {low:g} to {high:g}"
                )
        if (self.ping < 0).any():
            bad = int(np.flatnonzero((self.ping < 0).any(axis=1))[0])
            raise InputError(f"ticket {self.id[bad]} has a ping below 0; expected milliseconds, 0 or more")
        for names, most, what in ((self.region_names, MOST_REGIONS, "region"), (self.role_names, MOST_ROLES, "role")):
            if len(names) > most or len(set(names)) < len(names):
                raise InputError(f"{len(names)} {what}_names; expected at most {most}, without duplicates")
        if int(self.roles.max(initial=0)) >> len(self.role_names):
            raise InputError("roles has a bit without a name in role_names; expected a name for each")
        if len(self.choice) and not (self.choice.min() >= 0 and self.choice.max() < len(self.choices)):
            raise InputError(f"choice has a row that choices lacks; expected 0 to {len(self.choices) - 1}")

    def _check_lengths(self) -> None:
        count, members = len(self), len(self.player)
        for name, start, rows in (("start", self.start, members), ("named_start", self.named_start, len(self.named))):
            if len(start) != count + 1 or start[0] != 0 or start[-1] != rows or (np.diff(start) < 0).any():
                raise InputError(f"{name} must rise from 0 to {rows} in {count} steps without decreasing")
        columns = dict.fromkeys(_OF_MEMBERS, members) | {"queued": count, "met": len(self.named)}
        for name, rows in columns.items():
            if len(getattr(self, name)) != rows:
                raise InputError(f"{name} has {len(getattr(self, name))} values; expected {rows}")
        if len(self.choice) not in (0, count):
            raise InputError(f"choice has {len(self.choice)} values; expected {count}, or none")
        if self.ping.shape != (count, len(self.region_names)):
            raise InputError(
                f"ping is {self.ping.shape}; expected a row for each of {count} tickets and a column for each of "
                f"{len(self.region_names)} regions"
            )
        sizes = np.diff(self.start)
        if len(sizes) and not (sizes.min() >= 1 and sizes.max() <= LARGEST_TEAM):
            bad = int(np.flatnonzero((sizes < 1) | (sizes > LARGEST_TEAM))[0])
            raise InputError(f"ticket {self.id[bad]} has {sizes[bad]} members; expected 1 to {LARGEST_TEAM}")


_RANGES = (("percentile", 0, 100), ("within", 0, 100), ("rating", -1e300, 1e300))
_OF_MEMBERS = ("percentile", "rating", "within", "loose", "newcomer", "roles")


def starts(counts: Sequence[int] | Whole) -> Whole:
    """The offset of each group's first row, and the total; int64 (N+1,)."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.asarray(counts, np.int64))))


def rows_of(first: Whole, count: Whole) -> Whole:
    """Concatenate the ranges first[i], first[i] + 1, … of count[i] numbers."""
    start = starts(count)
    return np.arange(start[-1]) + np.repeat(first - start[:-1], count)


def _pings(ticket: Ticket, regions: tuple[str, ...]) -> list[float]:
    """The worst ping of the party to each region; inf if a member cannot play there, nan if no pings are given."""
    able = ticket.regions
    if able is None:
        return [np.nan] * len(regions)
    return [
        max(member.ping[region] for member in ticket.members if member.ping) if region in able else np.inf
        for region in regions
    ]
