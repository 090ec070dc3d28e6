"""Replay a recorded queue with another policy or matchmaker."""

from __future__ import annotations

from itertools import islice

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.queue.journal import QueueJournal, Teams, decisions
from evenmatch.lab.queue.runs import Run
from evenmatch.lab.queue.simulation import Matchmaker, Progress, play
from evenmatch.lab.queue.ticket_columns import append, pick
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.tickets import Tickets, Whole
from evenmatch.policy import Policy

WARMING = 600


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
