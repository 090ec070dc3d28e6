"""Where players stand when they join a queue, out of the view in memory, and who may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Store
from evenmatch.service.boards import View
from evenmatch.service.queueing.parties import Level
from evenmatch.service.service import Service


@dataclass(frozen=True, eq=False)
class Levels:
    """A ladder as those who join are measured against it."""

    view: View
    plan: Plan

    @property
    def ladder(self) -> int:
        """The ladder's id."""
        return self.view.head.ladder

    def of(self, players: Sequence[int]) -> dict[int, Level]:
        """Where these players stand; who never played here is a newcomer with the system's first rating."""
        taken, board = self.view.snapshot, self.view.snapshot.board
        row = board.find(players)
        known = row >= 0
        rating = np.full(len(row), float(self.plan.last_rules.newcomers(1)["rating"][0]))
        placed, hidden = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
        rating[known] = board.rating[row[known]]
        placed[known] = board.completed[row[known]] >= self.view.settings.standings.placement
        hidden[known] = board.hidden[row[known]]
        percentile = np.asarray(taken.against.queue_percentiles(rating))
        columns = zip(
            *(players, rating.tolist(), percentile.tolist(), (~placed).tolist(), hidden.tolist()), strict=True
        )
        return {
            player: Level(own, among, new, away or player in self.plan.bans)
            for player, own, among, new, away in columns
        }


class LevelBook:
    """The levels of all ladders that anybody asked for. Safe to share between threads."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._plans: dict[int, tuple[tuple[int, int], Plan]] = {}

    def of(self, ladder: str) -> Levels:
        """The levels of a ladder as of some seconds ago at most. Raises UnknownNameError where there is none."""
        view = self._service.view(ladder, fresh=False)
        head = view.head
        key, known = (head.generation, head.corrected), self._plans.get(head.ladder)
        if known is None or known[0] != key:
            database = self._service.database
            with database.read() as connection:
                known = key, Store(connection, database.rows).plan(head, head.corrected)
            self._plans[head.ladder] = known
        return Levels(view, known[1])
