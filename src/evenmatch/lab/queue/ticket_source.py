"""Tickets of a simulated queue, tick by tick: of a scenario, or drawn from the tickets of a real queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.errors import BadParameterError
from evenmatch.history import Floats
from evenmatch.lab.queue.population import arrival_times, populate
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import Masks, TicketChoice, Tickets, Whole, rows_of, starts
from evenmatch.policy import Policy

MEMBERS = ("player", "percentile", "rating", "within", "loose", "newcomer", "roles")


def pick(tickets: Tickets, rows: Whole) -> Tickets:
    """Select these rows, in this order; rows may repeat."""
    sizes, names = np.diff(tickets.start)[rows], np.diff(tickets.named_start)[rows]
    member, name = rows_of(tickets.start[rows], sizes), rows_of(tickets.named_start[rows], names)
    return replace(
        tickets,
        id=tickets.id[rows],
        queued=tickets.queued[rows],
        start=starts(sizes),
        ping=tickets.ping[rows],
        named_start=starts(names),
        named=tickets.named[name],
        met=tickets.met[name],
        choice=tickets.choice[rows] if len(tickets.choice) else tickets.choice,
        **{column: getattr(tickets, column)[member] for column in MEMBERS},
    )


def append(parts: Sequence[Tickets]) -> Tickets:
    """Concatenate tickets; the result has the regions and roles of all parts."""
    regions = tuple(dict.fromkeys(name for part in parts for name in part.region_names))
    roles = tuple(dict.fromkeys(name for part in parts for name in part.role_names))
    none = np.empty(0, np.int64)
    choices = {
        choice: row for row, choice in enumerate(dict.fromkeys(choice for part in parts for choice in _choices(part)))
    }
    return Tickets(
        **{
            column: np.concatenate([getattr(part, column) for part in parts]) if parts else none.astype(kind)
            for column, kind in _KINDS.items()
        },
        start=starts(np.concatenate([none, *(np.diff(part.start) for part in parts)])),
        named_start=starts(np.concatenate([none, *(np.diff(part.named_start) for part in parts)])),
        ping=np.concatenate([np.empty((0, len(regions))), *(_pings(part, regions) for part in parts)]),
        roles=np.concatenate([np.empty(0, np.uint64), *(_roles(part, roles) for part in parts)]),
        region_names=regions,
        role_names=roles,
        choice=np.concatenate([none, *(_choice(part, choices) for part in parts)]),
        choices=tuple(choices),
    )


def _choices(tickets: Tickets) -> tuple[TicketChoice, ...]:
    return tickets.choices if len(tickets.choice) else (TicketChoice(),)


def _choice(tickets: Tickets, rows: Mapping[TicketChoice, int]) -> Whole:
    """The rows of these choices for each ticket."""
    if not len(tickets.choice):
        return np.full(len(tickets), rows[TicketChoice()])
    return np.array([rows[choice] for choice in tickets.choices], np.int64)[tickets.choice]


_KINDS = {
    **dict.fromkeys(("id", "queued", "player", "named", "met"), np.int64),
    **dict.fromkeys(("percentile", "rating", "within"), np.float64),
    **dict.fromkeys(("loose", "newcomer"), np.bool_),
}


def _pings(tickets: Tickets, names: tuple[str, ...]) -> Floats:
    """Pings to regions of these names: inf for regions a ticket lacks, NaN for tickets that play anywhere."""
    if tickets.region_names == names:
        return tickets.ping
    pings = np.full((len(tickets), len(names)), np.inf)
    for index, name in enumerate(tickets.region_names):
        pings[:, names.index(name)] = tickets.ping[:, index]
    pings[np.isnan(tickets.ping).all(axis=1)] = np.nan
    return pings


def _roles(tickets: Tickets, names: tuple[str, ...]) -> Masks:
    if tickets.role_names == names[: len(tickets.role_names)]:
        return tickets.roles
    masks = np.zeros(len(tickets.roles), np.uint64)
    for index, name in enumerate(tickets.role_names):
        bit = tickets.roles >> np.uint64(index) & np.uint64(1)
        masks |= bit << np.uint64(names.index(name))
    return masks


VISITS, RETURNS = 2, 4  # indices of random streams; draws from VISITS do not depend on the matchmaker
WARMING = 600  # most tickets for the warm-up call of a matchmaker


class Crowd:
    """Source of a scenario's tickets. Arrivals are numbered from 0 in order of time, returns after them.

    ticks        int64 (N,)  times of the decisions, microseconds
    passed_over  players who arrived while they still waited or played
    """

    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        if len(scenario.parties) > policy.team_size:
            raise BadParameterError(
                f"parties of up to {len(scenario.parties)} do not fit into teams of {policy.team_size}: give shares "
                f"for at most {policy.team_size} sizes"
            )
        times = arrival_times(scenario)
        rng = np.random.default_rng([scenario.seed, VISITS])
        self.population = populate(scenario, len(times))
        parties = len(self.population.parties)
        rounds = -(-len(times) // parties)
        party = np.concatenate([np.empty(0, np.int64), *(rng.permutation(parties) for _ in range(rounds))])[
            : len(times)
        ]
        self.arriving = replace(pick(self.population.parties, party), id=np.arange(len(times)), queued=times)
        count = int(np.floor(scenario.seconds / scenario.tick + 1e-9))
        self.ticks = np.rint(np.arange(1, count + 1) * scenario.tick * SECOND).astype(np.int64)
        self.passed_over = 0
        self._scenario = scenario
        self._arriving_party = party
        self._party: list[int] = party.tolist()  # party of each ticket, including returns
        self._arrived = np.searchsorted(times, self.ticks, side="right")
        self._tracked = rounds > 1 or scenario.return_share > 0  # whether a player may still wait or play when arriving
        self._away = np.zeros(parties, np.bool_)
        self._rng = np.random.default_rng([scenario.seed, RETURNS])
        self._ended_matches: dict[int, list[_EndedMatch]] = defaultdict(list)  # by tick
        self._cancels: dict[int, list[Whole]] = defaultdict(list)
        self._plan_cancels(self.arriving, rng)

    def skill(self, player: Whole) -> Floats:
        """True skill of these players."""
        return self.population.skill[player]

    def sample(self) -> Tickets:
        """Typical tickets for the warm-up call of a matchmaker."""
        return pick(self.arriving, np.arange(min(len(self.arriving), WARMING, len(self._away))))

    def joining(self, at: int) -> Tickets:
        """Tickets that join at this tick."""
        rows = np.arange(self._arrived[at - 1] if at else 0, self._arrived[at])
        if not self._tracked:
            return pick(self.arriving, rows)
        returning = self._returning(at)
        party = self._arriving_party[rows]
        first = np.zeros(len(rows), np.bool_)
        first[np.unique(party, return_index=True)[1]] = True  # a party may occur twice where two rounds meet
        joining = first & ~self._away[party]
        self.passed_over += int(np.diff(self.arriving.start)[rows[~joining]].sum())
        self._away[party[joining]] = True
        return append((pick(self.arriving, rows[joining]), *returning))

    def leaving(self, at: int) -> list[int]:
        """Tickets whose patience ends by this tick, whether they still wait or not."""
        return [ticket for part in self._cancels.pop(at, ()) for ticket in part.tolist()]

    def decided(self, at: int, proposals: Proposals, gave_up: list[int]) -> None:
        """Receive the tickets that left the queue at this tick: matched, or cancelled and expired."""
        if not self._tracked:
            return
        self._away[[self._party[ticket] for ticket in gave_up]] = False
        s = self._scenario
        length = self._rng.normal(s.match_seconds, s.match_seconds_sd, len(proposals))
        back = self._rng.random(len(proposals.ticket)) < s.return_share
        ends = self.ticks[at] + np.rint(np.maximum(length, s.tick) * SECOND).astype(np.int64)
        for match, (end, tick) in enumerate(
            zip(ends.tolist(), np.searchsorted(self.ticks, ends).tolist(), strict=True)
        ):
            first, stop = int(proposals.start[match]), int(proposals.start[match + 1])
            party = np.array([self._party[ticket] for ticket in proposals.ticket[first:stop].tolist()], np.int64)
            self._ended_matches[tick].append(_EndedMatch(end, party, back[first:stop], proposals, first, stop))

    def _returning(self, at: int) -> list[Tickets]:
        """Tickets of the parties that queue again after a match that has ended."""
        tickets = []
        for ended in self._ended_matches.pop(at, ()):
            self._away[ended.party[~ended.back]] = False
            if ended.back.any():
                party = ended.party[ended.back]
                again = replace(
                    pick(self.population.parties, party),
                    id=len(self._party) + np.arange(len(party)),
                    queued=np.full(len(party), ended.time),
                )
                self._party += party.tolist()
                self._plan_cancels(again, self._rng)
                tickets.append(ended.with_met(again))
        return tickets

    def _plan_cancels(self, tickets: Tickets, rng: np.random.Generator) -> None:
        if self._scenario.patience is None:
            return
        until = tickets.queued + np.rint(rng.exponential(self._scenario.patience, len(tickets)) * SECOND)
        tick = np.searchsorted(self.ticks, until)
        order = np.argsort(tick, kind="stable")
        cuts = np.flatnonzero(np.diff(tick[order])) + 1
        for part in np.split(order, cuts):
            if len(part):
                self._cancels[int(tick[part[0]])].append(tickets.id[part])


class _EndedMatch:
    """A match that ends at `time`: its parties, and which of them queue again."""

    def __init__(self, time: int, party: Whole, back: np.ndarray, proposals: Proposals, first: int, stop: int) -> None:
        self.time, self.party, self.back = time, party, back
        begun = proposals.member_start[first : stop + 1]
        self._player = proposals.player[begun[0] : begun[-1]]
        self._start = begun - begun[0]

    def with_met(self, tickets: Tickets) -> Tickets:
        """Tickets of the returning parties, with the players of the other parties as recently met."""
        own = np.repeat(np.arange(len(self.party)), np.diff(self._start))
        row, member = np.nonzero(np.flatnonzero(self.back)[:, None] != own)
        names = np.diff(tickets.named_start)
        rows = np.concatenate((np.repeat(np.arange(len(tickets)), names), row))
        order = np.argsort(rows, kind="stable")
        return replace(
            tickets,
            named_start=starts(np.bincount(rows, minlength=len(tickets))),
            named=np.concatenate((tickets.named, self._player[member]))[order],
            met=np.concatenate((tickets.met, np.full(len(member), self.time)))[order],
        )


class TicketSample:
    """An ArrivalSource: tickets of a queue, in random order, at random times with a steady rate.

    Every ticket is used once before any is reused. A ticket whose players are still waiting is skipped.

    tickets   those to draw from, at least one
    arrivals  players per second
    seconds   simulated time;  tick  seconds between two decisions
    """

    def __init__(self, tickets: Tickets, arrivals: float, seconds: float, tick: float, seed: int) -> None:
        rng = np.random.default_rng([seed, len(tickets)])
        mean_size = len(tickets.player) / len(tickets)
        times = np.sort(rng.random(rng.poisson(arrivals / mean_size * seconds))) * seconds
        rounds = -(-len(times) // len(tickets))
        rows = np.concatenate([np.empty(0, np.int64), *(rng.permutation(len(tickets)) for _ in range(rounds))])
        queued = np.floor(times * SECOND).astype(np.int64)
        self._arriving = replace(pick(tickets, rows[: len(times)]), id=np.arange(len(times)), queued=queued)
        count = int(np.floor(seconds / tick + 1e-9))
        self.ticks: Whole = np.rint(np.arange(1, count + 1) * tick * SECOND).astype(np.int64)
        self.passed_over = 0
        self._arrived = np.searchsorted(queued, self.ticks, side="right")
        self._waiting: set[int] = set()

    def sample(self) -> Tickets:
        """Typical tickets for the warm-up call of a matchmaker."""
        return pick(self._arriving, np.arange(min(len(self._arriving), WARMING)))

    def joining(self, index: int) -> Tickets:
        """Tickets that join at this tick."""
        kept = []
        for row in range(self._arrived[index - 1] if index else 0, self._arrived[index]):
            players = self._players(row)
            if self._waiting.isdisjoint(players):
                self._waiting.update(players)
                kept.append(row)
            else:
                self.passed_over += len(players)
        return pick(self._arriving, np.array(kept, np.int64))

    def leaving(self, _index: int) -> list[int]:
        """No tickets: players wait until they have a match."""
        return []

    def decided(self, _index: int, proposals: Proposals, gave_up: list[int]) -> None:
        """Receive the tickets that left the queue at this tick."""
        for ticket in [*proposals.ticket.tolist(), *gave_up]:
            self._waiting.difference_update(self._players(ticket))

    def skill(self, player: Whole) -> Floats:
        """NaN for each of these players: true skill is unknown."""
        return np.full(len(player), np.nan)

    def _players(self, row: int) -> list[int]:
        start = self._arriving.start
        players: list[int] = self._arriving.player[start[row] : start[row + 1]].tolist()
        return players
