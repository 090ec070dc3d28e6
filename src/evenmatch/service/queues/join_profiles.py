"""Ratings, percentiles and bans of players when they join a queue, from the view in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.ledger.plan import Plan
from evenmatch.ledger.tables import corrections
from evenmatch.service.queries.standings import View
from evenmatch.service.queues.parties import Level
from evenmatch.service.service import Service


@dataclass(frozen=True, eq=False)
class JoinProfiles:
    """A ladder's standings and rules, from which the levels of joining players are read."""

    view: View
    plan: Plan

    @property
    def ladder(self) -> int:
        """The ladder's id."""
        return self.view.head.ladder

    def of(self, players: Sequence[int]) -> dict[int, Level]:
        """The levels of players by id; a player without a match is a newcomer with the system's first rating."""
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
            player: Level(own_rating, own_percentile, is_new, is_hidden or player in self.plan.bans)
            for player, own_rating, own_percentile, is_new, is_hidden in columns
        }


class LevelBook:
    """Join profiles of all ladders, with cached plans. Thread-safe."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._plans: dict[int, tuple[tuple[int, int], Plan]] = {}

    def of(self, ladder: str) -> JoinProfiles:
        """The join profiles of a ladder, at most some seconds old. Raises UnknownNameError for an unknown ladder."""
        view = self._service.view(ladder, fresh=False)
        head = view.head
        key, known = (head.generation, head.corrected), self._plans.get(head.ladder)
        if known is None or known[0] != key:
            database = self._service.database
            with database.read() as store:
                known = key, corrections.read_plan(store, head, head.corrected)
            self._plans[head.ladder] = known
        return JoinProfiles(view, known[1])
