"""A recorded queue once more, under another policy or another matchmaker."""

from __future__ import annotations

from itertools import islice

import numpy as np

from evenmatch.history import Floats
from evenmatch.lab.queue_columns import append, pick
from evenmatch.lab.queue_journal import Teams, decisions
from evenmatch.lab.queue_reading import Journal
from evenmatch.lab.queue_run import Run
from evenmatch.lab.queue_simulation import Matchmaker, Progress, play
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.tickets import Tickets, Whole

WARMING = 600


def replay(
    journal: Journal,
    policy: Policy,
    matchmaker: Matchmaker = propose,
    *,
    name: str = "",
    progress: Progress | None = None,
) -> Run:
    """What this policy would have made of the recorded joins and cancels; under the recorded one, the same decisions.

    A player who joins again in the recording while they still wait here leaves their old ticket, which counts as
    overtaken. A ticket that was matched in the recording and is not here waits on: nobody knows when it had given up.
    """
    return play(_Recorded(journal), matchmaker, policy, name, journal.scenario, progress=progress)


def first_difference(journal: Journal, run: Run) -> int | None:
    """The first tick, counted from 0, whose decisions in a replay differ from the recorded ones; None where none does.

    Matches are the same where they have the same tickets in the same teams, in the same order.
    """
    made: dict[int, list[Teams]] = {}
    matches = run.matches
    told = decisions(matches.start, run.tickets.id[matches.ticket], matches.team)
    for now, teams in zip(matches.time.tolist(), told, strict=True):
        made.setdefault(now, []).append(teams)
    for at, tick in enumerate(journal.ticks):
        if made.get(tick.now, []) != list(tick.matches):
            return at
    return None


class _Recorded:
    """The joins and cancels of a journal as the source of a run."""

    def __init__(self, journal: Journal) -> None:
        self.ticks: Whole = np.array([tick.now for tick in journal.ticks], np.int64)
        self.passed_over = 0
        self._ticks = journal.ticks
        joined = append([tick.joined for tick in journal.ticks])
        skill = np.concatenate([np.empty(0), *(tick.skill for tick in journal.ticks)])
        self._players, last = np.unique(joined.player, return_index=True)
        self._skill = skill[last]

    def skill(self, player: Whole) -> Floats:
        """The true skill of these players; nan where it was not recorded."""
        known: Floats = self._skill[np.searchsorted(self._players, player)]
        return known

    def sample(self) -> Tickets:
        """The first tickets that joined."""
        joined = append([tick.joined for tick in islice(self._ticks, WARMING)])
        return pick(joined, np.arange(min(len(joined), WARMING)))

    def joining(self, at: int) -> Tickets:
        """The tickets that joined before this tick."""
        return self._ticks[at].joined

    def leaving(self, at: int) -> list[int]:
        """The tickets that gave up before this tick."""
        return list(self._ticks[at].cancelled)

    def decided(self, at: int, proposals: Proposals, gave_up: list[int]) -> None:
        """Nothing follows: what was recorded comes as it came."""
