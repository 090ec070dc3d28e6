"""Queue simulator: run one matchmaker with one policy on a scenario or a recorded queue, tick by tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol, TextIO

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.lab.queue.journal import JournalWriter, QueueJournal, Teams, decisions
from evenmatch.lab.queue.runs import CANCELLED, EXPIRED, MATCHED, OVERTAKEN, WAITING, Run, collect_matches
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.ticket_source import WARMING, Crowd, append, pick
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Tickets, Whole
from evenmatch.policy import Policy


class Record:
    """Tickets and matches of a run so far."""

    def __init__(self) -> None:
        self._parts: list[Tickets] = []
        self._row: dict[int, int] = {}  # row of each waiting ticket
        self._count = 0
        self._fates: list[tuple[Whole, int, int]] = []  # rows, fate, time
        self._times: list[int] = []
        self._rows: list[Whole] = []
        self._proposals: list[Proposals] = []
        self._waiting: list[int] = []

    def join(self, tickets: Tickets) -> None:
        """Record tickets that joined."""
        self._parts.append(tickets)
        self._row.update(zip(tickets.id.tolist(), range(self._count, self._count + len(tickets)), strict=True))
        self._count += len(tickets)

    def leave(self, tickets: Sequence[int], fate: int, now: int) -> Whole:
        """Record tickets that left the queue with this fate; return their rows."""
        rows = np.array([self._row.pop(ticket) for ticket in tickets], np.int64)
        self._fates.append((rows, fate, now))
        return rows

    def decide(self, now: int, proposals: Proposals, waiting: int) -> None:
        """Record the matches of a tick and the number of players still waiting."""
        self._waiting.append(waiting)
        if len(proposals):
            self._times.append(now)
            self._rows.append(self.leave(proposals.ticket.tolist(), MATCHED, now))
            self._proposals.append(proposals)

    def tickets(self) -> Tickets:
        """All tickets in order of joining."""
        return append(self._parts)

    def run(
        self,
        name: str,
        policy: Policy,
        scenario: Scenario | None,
        tickets: Tickets,
        skill: Floats,
        ticks: Whole,
        *,
        cpu_seconds: float,
        passed_over: int,
        seed: int,
    ) -> Run:
        """Build the Run."""
        fate = np.full(self._count, WAITING, np.int8)
        left = np.full(self._count, ticks[-1] if len(ticks) else 0, np.int64)
        for rows, kind, now in self._fates:
            fate[rows] = kind
            left[rows] = now
        matches = collect_matches(self._times, self._rows, self._proposals)
        waiting = np.array(self._waiting, np.int64)
        return Run(
            *(name, policy, scenario, tickets, skill, fate, left, matches, ticks, waiting),
            cpu_seconds=cpu_seconds,
            passed_over=passed_over,
            seed=seed,
        )


Matchmaker = Callable[[Queue, int, Policy], Proposals]
Progress = Callable[[str, float], None]
TRIED_OUT = 600 * SECOND  # time of the warm-up call of a matchmaker


class ArrivalSource(Protocol):
    """Source of the tickets of a run: a scenario or a journal.

    ticks        int64 (N,)  times of the decisions, microseconds, ascending
    passed_over  players who did not join because they still waited or played
    """

    ticks: Whole
    passed_over: int

    def sample(self) -> Tickets:
        """Typical tickets for the warm-up call of a matchmaker."""
        ...

    def joining(self, at: int) -> Tickets:
        """Tickets that join at this tick."""
        ...

    def leaving(self, at: int) -> list[int]:
        """Tickets that are cancelled by this tick; those no longer waiting are ignored."""
        ...

    def decided(self, at: int, proposals: Proposals, gave_up: list[int]) -> None:
        """Receive the tickets that left the queue at this tick: matched, or cancelled and expired."""
        ...

    def skill(self, player: Whole) -> Floats:
        """True skill of these players; NaN if unknown."""
        ...


def simulate(
    scenario: Scenario,
    matchmaker: Matchmaker,
    policy: Policy,
    *,
    name: str = "",
    progress: Progress | None = None,
    journal: TextIO | None = None,
) -> Run:
    """Simulate a scenario; deterministic for a seed, with the same arrivals for every matchmaker and policy.

    name      name of the run in its summary
    progress  called with the name and the share of the run that is done
    journal   open text file to which every tick is written
    Only players who return after a match, in addition to the arrivals, and arrivals skipped because the player still
    waits or plays depend on the matches. Raises BadParameterError if parties are larger than the policy's teams.
    """
    writer = None if journal is None else JournalWriter(journal, name, policy, scenario)
    return play(Crowd(scenario, policy), matchmaker, policy, name, scenario, progress=progress, writer=writer)


def play(
    source: ArrivalSource,
    matchmaker: Matchmaker,
    policy: Policy,
    name: str,
    scenario: Scenario | None,
    *,
    progress: Progress | None = None,
    writer: JournalWriter | None = None,
) -> Run:
    """Run any source. A joining ticket replaces waiting tickets with the same number or a common player."""
    queue, record, cpu = Queue(), Record(), 0.0
    _warm_up(matchmaker, policy, source.sample())
    for index, now in enumerate(source.ticks.tolist()):
        tickets = source.joining(index)
        overtaken = _replaced_by(queue, tickets)
        _leave(queue, record, overtaken, OVERTAKEN, now)
        if len(tickets):
            queue.join_all(tickets)
            record.join(tickets)
        cancelled = [ticket for ticket in dict.fromkeys(source.leaving(index)) if ticket in queue]
        _leave(queue, record, cancelled, CANCELLED, now)
        began = time.process_time()
        proposals = matchmaker(queue, now, policy)
        cpu += time.process_time() - began
        expired = proposals.expired.tolist()
        if len(proposals):
            queue.leave_all(proposals.ticket)
        _leave(queue, record, expired, EXPIRED, now)
        record.decide(now, proposals, queue.players)
        source.decided(index, proposals, cancelled + expired)
        if writer is not None:
            writer.tick(now, tickets, source.skill(tickets.player), cancelled, proposals)
        if progress is not None:
            progress(name, (index + 1) / len(source.ticks))
    if writer is not None:
        writer.end()
    joined = record.tickets()
    return record.run(
        *(name, policy, scenario, joined, source.skill(joined.player), source.ticks),
        cpu_seconds=cpu,
        passed_over=source.passed_over,
        seed=0 if scenario is None else scenario.seed,
    )


def _leave(queue: Queue, record: Record, tickets: list[int], fate: int, now: int) -> None:
    if tickets:
        queue.leave_all(tickets)
        record.leave(tickets, fate, now)


def _replaced_by(queue: Queue, tickets: Tickets) -> list[int]:
    """Waiting tickets with the number of a joining one or a common player."""
    waiting = {ticket for ticket in tickets.id.tolist() if ticket in queue}
    waiting |= {ticket for player in tickets.player.tolist() if (ticket := queue.ticket_of(player)) is not None}
    return sorted(waiting)


def _warm_up(matchmaker: Matchmaker, policy: Policy, tickets: Tickets) -> None:
    """Call the matchmaker before the run, so that compiling and loading do not count as its CPU time.

    Once with tickets of all ages, once with filters so wide that matches are certain.
    """
    _, first = np.unique(tickets.player, return_index=True)
    fresh = np.zeros(len(tickets.player), np.bool_)
    fresh[first] = True
    if len(tickets):
        tickets = pick(tickets, np.flatnonzero(np.logical_and.reduceat(fresh, tickets.start[:-1])))
    oldest = TRIED_OUT if policy.max_wait is None else min(TRIED_OUT, int(policy.max_wait * SECOND))
    waits = np.linspace(0, oldest, len(tickets), endpoint=False).astype(np.int64)
    tickets = replace(tickets, id=np.arange(len(tickets)), queued=TRIED_OUT - waits)
    for within in (tickets.within, np.full(len(tickets.player), 100.0)):
        queue = Queue()
        queue.join_all(replace(tickets, within=within))
        matchmaker(queue, TRIED_OUT, policy)


def replay(
    journal: QueueJournal,
    policy: Policy,
    matchmaker: Matchmaker = propose,
    *,
    name: str = "",
    progress: Progress | None = None,
) -> Run:
    """Replay the recorded joins and cancels; the recorded policy gives the recorded decisions.

    If a player joins again while still waiting in the replay, the old ticket leaves the queue as OVERTAKEN. A ticket
    matched in the recording but not in the replay keeps waiting, since the time of its cancellation is unknown.
    """
    return play(_Recorded(journal), matchmaker, policy, name, journal.scenario, progress=progress)


def first_difference(journal: QueueJournal, run: Run) -> int | None:
    """Index of the first tick whose decisions in a replay differ from the recorded ones; None if there is none.

    Matches are equal if they have the same tickets in the same teams, in the same order.
    """
    by_time: dict[int, list[Teams]] = {}
    matches = run.matches
    decided = decisions(matches.start, run.tickets.id[matches.ticket], matches.team)
    for now, teams in zip(matches.time.tolist(), decided, strict=True):
        by_time.setdefault(now, []).append(teams)
    for index, tick in enumerate(journal.ticks):
        if by_time.get(tick.now, []) != list(tick.matches):
            return index
    return None


class _Recorded:
    """Joins and cancels of a journal as the source of a run."""

    def __init__(self, journal: QueueJournal) -> None:
        self.ticks: Whole = np.array([tick.now for tick in journal.ticks], np.int64)
        self.passed_over = 0
        self._ticks = journal.ticks
        joined = append([tick.joined for tick in journal.ticks])
        skill = np.concatenate([np.empty(0), *(tick.skill for tick in journal.ticks)])
        self._players, last = np.unique(joined.player, return_index=True)
        self._skill = skill[last]

    def skill(self, player: Whole) -> Floats:
        """True skill of these players; NaN if not recorded."""
        known: Floats = self._skill[np.searchsorted(self._players, player)]
        return known

    def sample(self) -> Tickets:
        """The first tickets that joined."""
        joined = append([tick.joined for tick in islice(self._ticks, WARMING)])
        return pick(joined, np.arange(min(len(joined), WARMING)))

    def joining(self, at: int) -> Tickets:
        """Tickets that joined before this tick."""
        return self._ticks[at].joined

    def leaving(self, at: int) -> list[int]:
        """Tickets cancelled before this tick."""
        return list(self._ticks[at].cancelled)

    def decided(self, at: int, proposals: Proposals, gave_up: list[int]) -> None:
        """Do nothing: recorded joins do not depend on decisions."""
