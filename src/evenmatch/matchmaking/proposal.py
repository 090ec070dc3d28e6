"""Proposed matches, as single objects and as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.attributes import Fields, agreed_values, common_maps
from evenmatch.matchmaking.tickets import Masks, Whole

COSTS = ("spread", "odds", "rematch", "newcomers", "parties", "attributes")


class Proposal(NamedTuple):
    """A proposed match.

    teams    the ticket ids of each team; parties are never split
    players  the player numbers of each team
    region   where it is played; None: anywhere
    ping     the highest ping of its players there, milliseconds; 0 if no pings are given
    odds     the chance of the first team; with three or more, of the strongest against the weakest; NaN: unknown
    spread   percentiles between its lowest and its highest player
    waited   wait of its longest-waiting ticket, seconds
    costs    by name (see COSTS), in equivalent seconds of waiting
    roles    the role of each player, if the policy has roles; None: any role
    attributes  the value of each attribute that it is played with; without attributes on which its players disagree
    maps     the maps that all its players accept
    """

    teams: tuple[tuple[int, ...], ...]
    players: tuple[tuple[int, ...], ...]
    region: str | None
    ping: float
    odds: float
    spread: float
    waited: float
    costs: dict[str, float]
    roles: dict[int, str | None]
    attributes: dict[str, str]
    maps: tuple[str, ...]

    @property
    def tickets(self) -> tuple[int, ...]:
        """The ids of all its tickets."""
        return tuple(ticket for team in self.teams for ticket in team)


def _no_numbers() -> Whole:
    return np.empty(0, np.int64)


def _no_floats() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Proposals:
    """M proposed matches of T tickets with S players, as columns. The tickets of a match are ordered by team.

    start         int64 (M+1,)  first ticket of each match
    ticket, team  int64 (T,)    id, and the index of its team in the match
    member_start  int64 (T+1,)  first player of each ticket
    player, role  int64 (S,)    number, and index in role_names (-1: free choice)
    region        int64 (M,)    index in region_names; -1: anywhere
    ping, odds, spread, rating_spread, waited  float64 (M,)  as in `Proposal`
    costs         float64 (M, 6)  by COSTS
    accepts       uint64 (M,)   what all its players accept, as bits of `fields`; empty without attributes and maps
    expired       int64 (E,)    ids of tickets that reached the longest wait, ascending
    """

    start: Whole = field(default_factory=lambda: np.zeros(1, np.int64))
    ticket: Whole = field(default_factory=_no_numbers)
    team: Whole = field(default_factory=_no_numbers)
    member_start: Whole = field(default_factory=lambda: np.zeros(1, np.int64))
    player: Whole = field(default_factory=_no_numbers)
    role: Whole = field(default_factory=_no_numbers)
    region: Whole = field(default_factory=_no_numbers)
    ping: Floats = field(default_factory=_no_floats)
    odds: Floats = field(default_factory=_no_floats)
    spread: Floats = field(default_factory=_no_floats)
    rating_spread: Floats = field(default_factory=_no_floats)
    waited: Floats = field(default_factory=_no_floats)
    costs: Floats = field(default_factory=lambda: np.empty((0, len(COSTS))))
    expired: Whole = field(default_factory=_no_numbers)
    region_names: tuple[str, ...] = ()
    role_names: tuple[str, ...] = ()
    accepts: Masks = field(default_factory=lambda: np.empty(0, np.uint64))
    fields: Fields = ()

    def __len__(self) -> int:
        return len(self.start) - 1

    def __iter__(self) -> Iterator[Proposal]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Proposal:
        if not -len(self) <= index < len(self):
            raise IndexError(f"proposal {index} of {len(self)}")
        index %= len(self)
        first, stop = int(self.start[index]), int(self.start[index + 1])
        teams: list[list[int]] = [[] for _ in range(int(self.team[first:stop].max()) + 1)]
        players: list[list[int]] = [[] for _ in teams]
        for ticket in range(first, stop):
            team = int(self.team[ticket])
            teams[team].append(int(self.ticket[ticket]))
            players[team] += self.player[self.member_start[ticket] : self.member_start[ticket + 1]].tolist()
        members = slice(int(self.member_start[first]), int(self.member_start[stop]))
        names = (*self.role_names, None)  # -1 is the last
        assigned = zip(self.player[members].tolist(), self.role[members].tolist(), strict=True)
        region = int(self.region[index])
        accepts = int(self.accepts[index]) if self.fields else 0
        return Proposal(
            teams=tuple(map(tuple, teams)),
            players=tuple(map(tuple, players)),
            region=None if region < 0 else self.region_names[region],
            ping=float(self.ping[index]),
            odds=float(self.odds[index]),
            spread=float(self.spread[index]),
            waited=float(self.waited[index]),
            costs=dict(zip(COSTS, self.costs[index].tolist(), strict=True)),
            roles={player: names[role] for player, role in assigned} if self.role_names else {},
            attributes=agreed_values(accepts, self.fields),
            maps=common_maps(accepts, self.fields),
        )
