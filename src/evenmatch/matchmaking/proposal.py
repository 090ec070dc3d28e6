"""Proposed matches: one by one for people, as columns for whatever handles many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.tickets import Whole

COSTS = ("spread", "odds", "rematch", "newcomers", "parties")


class Proposal(NamedTuple):
    """A match that could begin.

    teams    for each team its tickets' numbers; no party is split
    players  for each team its players' numbers
    region   where it is played; None: anywhere
    ping     the worst of its players there, milliseconds; 0 where none was told
    odds     the chance of the first team; of the strongest against the weakest where there are more than two
    spread   percentiles between its lowest and its highest player
    waited   seconds that its longest-waiting ticket has waited
    costs    by name, in seconds of waiting that they are worth; `COSTS` are their names
    roles    by player, where the policy has roles: what each is asked to play; None for a free choice
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

    @property
    def tickets(self) -> tuple[int, ...]:
        """The numbers of all its tickets."""
        return tuple(ticket for team in self.teams for ticket in team)


@dataclass(frozen=True, eq=False)
class Proposals:
    """M proposed matches of T tickets with S players, as columns; a match's tickets go by team.

    start         int64 (M+1,)  first ticket of each match
    ticket, team  int64 (T,)    number, and place of its team in the match: 0, 1 …
    member_start  int64 (T+1,)  first player of each ticket
    player, role  int64 (S,)    number, and what to play (of role_names; -1: a free choice)
    region        int64 (M,)    of region_names; -1: anywhere
    ping, odds, spread, rating_spread, waited  float64 (M,)  as in `Proposal`
    costs         float64 (M, 5)  by COSTS
    expired       int64 (E,)    tickets that have waited as long as the policy lets anybody wait, ascending
    """

    start: Whole
    ticket: Whole
    team: Whole
    member_start: Whole
    player: Whole
    role: Whole
    region: Whole
    ping: Floats
    odds: Floats
    spread: Floats
    rating_spread: Floats
    waited: Floats
    costs: Floats
    expired: Whole = field(default_factory=lambda: np.empty(0, np.int64))
    region_names: tuple[str, ...] = ()
    role_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.start) - 1

    def __iter__(self) -> Iterator[Proposal]:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, at: int) -> Proposal:
        if not -len(self) <= at < len(self):
            raise IndexError(f"proposal {at} of {len(self)}")
        at %= len(self)
        first, stop = int(self.start[at]), int(self.start[at + 1])
        teams: list[list[int]] = [[] for _ in range(int(self.team[first:stop].max()) + 1)]
        players: list[list[int]] = [[] for _ in teams]
        for ticket in range(first, stop):
            team = int(self.team[ticket])
            teams[team].append(int(self.ticket[ticket]))
            players[team] += self.player[self.member_start[ticket] : self.member_start[ticket + 1]].tolist()
        members = slice(int(self.member_start[first]), int(self.member_start[stop]))
        names = (*self.role_names, None)  # -1 is the last
        asked = zip(self.player[members].tolist(), self.role[members].tolist(), strict=True)
        region = int(self.region[at])
        return Proposal(
            teams=tuple(map(tuple, teams)),
            players=tuple(map(tuple, players)),
            region=None if region < 0 else self.region_names[region],
            ping=float(self.ping[at]),
            odds=float(self.odds[at]),
            spread=float(self.spread[at]),
            waited=float(self.waited[at]),
            costs=dict(zip(COSTS, self.costs[at].tolist(), strict=True)),
            roles={player: names[role] for player, role in asked} if self.role_names else {},
        )
