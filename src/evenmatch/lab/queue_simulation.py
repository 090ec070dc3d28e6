"""The queue simulator: one scenario, one matchmaker, one policy, tick by tick."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TextIO

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.queue_columns import pick
from evenmatch.lab.queue_crowd import Crowd
from evenmatch.lab.queue_journal import Writer
from evenmatch.lab.queue_matches import SECOND
from evenmatch.lab.queue_record import Record
from evenmatch.lab.queue_run import CANCELLED, EXPIRED, OVERTAKEN, Run
from evenmatch.lab.queue_scenario import Scenario
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Tickets, Whole

Matchmaker = Callable[[Queue, int, Policy], Proposals]
Progress = Callable[[str, float], None]
TRIED_OUT = 600 * SECOND  # the time at which a matchmaker is called before its run


class Source(Protocol):
    """Where the tickets of a run come from: a scenario, or a journal.

    ticks        int64 (N,)  when decisions are taken, microseconds, ascending
    passed_over  players who were to join, but still waited or played
    """

    ticks: Whole
    passed_over: int

    def sample(self) -> Tickets:
        """Some tickets of the kind that comes, on which a matchmaker can be tried out."""
        ...

    def joining(self, at: int) -> Tickets:
        """The tickets that join at this tick."""
        ...

    def leaving(self, at: int) -> list[int]:
        """The tickets that give up by this tick; those that do not wait are passed over."""
        ...

    def decided(self, at: int, proposals: Proposals, gave_up: list[int]) -> None:
        """What became of tickets at this tick: matched, or out of the queue without one."""
        ...

    def skill(self, player: Whole) -> Floats:
        """The true skill of these players; nan where it is not known."""
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
    """The run of a scenario; the same for the same seed, and with the same arrivals for every matchmaker and policy.

    name      of the run, in its summary
    progress  called with the name and the share of the run that is done
    journal   an open text file, in which every tick is written
    Only returns after matches, which are on top of the arrivals, and who is passed over because they still wait or
    play depend on the matches. Raises BadParameterError where parties are larger than the policy's teams.
    """
    writer = None if journal is None else Writer(journal, name, policy, scenario)
    return play(Crowd(scenario, policy), matchmaker, policy, name, scenario, progress=progress, writer=writer)


def play(
    source: Source,
    matchmaker: Matchmaker,
    policy: Policy,
    name: str,
    scenario: Scenario | None,
    *,
    progress: Progress | None = None,
    writer: Writer | None = None,
) -> Run:
    """The run of any source. A ticket whose number or player waits already takes the place of the one that waits."""
    queue, record, cpu = Queue(), Record(), 0.0
    _try_out(matchmaker, policy, source.sample())
    for at, now in enumerate(source.ticks.tolist()):
        tickets = source.joining(at)
        overtaken = _in_the_way(queue, tickets)
        _leave(queue, record, overtaken, OVERTAKEN, now)
        if len(tickets):
            queue.join_all(tickets)
            record.join(tickets)
        cancelled = [ticket for ticket in dict.fromkeys(source.leaving(at)) if ticket in queue]
        _leave(queue, record, cancelled, CANCELLED, now)
        began = time.process_time()
        proposals = matchmaker(queue, now, policy)
        cpu += time.process_time() - began
        expired = proposals.expired.tolist()
        if len(proposals):
            queue.leave_all(proposals.ticket)
        _leave(queue, record, expired, EXPIRED, now)
        record.decide(now, proposals, queue.players)
        source.decided(at, proposals, cancelled + expired)
        if writer is not None:
            writer.tick(now, tickets, source.skill(tickets.player), cancelled, proposals)
        if progress is not None:
            progress(name, (at + 1) / len(source.ticks))
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


def _in_the_way(queue: Queue, tickets: Tickets) -> list[int]:
    """The tickets that wait under the number or with a player of one that joins."""
    waiting = {ticket for ticket in tickets.id.tolist() if ticket in queue}
    waiting |= {ticket for player in tickets.player.tolist() if (ticket := queue.ticket_of(player)) is not None}
    return sorted(waiting)


def _try_out(matchmaker: Matchmaker, policy: Policy, tickets: Tickets) -> None:
    """Call the matchmaker, so that what it compiles or loads at first is not counted as its speed.

    Once with tickets of all ages as they come, once with filters so wide that there are matches for sure.
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
