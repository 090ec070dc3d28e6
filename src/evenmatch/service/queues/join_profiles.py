"""Ratings, percentiles and bans of players when they join a queue, from the view in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.history import Floats
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import corrections, player_states
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

    def of(self, store: Store, players: Sequence[int], now: int) -> dict[int, Level]:
        """The levels of players by id; a player without a match is a newcomer with the system's first rating.

        Players who are not created yet may have any negative ids.
        now  microseconds: uncertainty grows with time
        """
        taken, board = self.view.snapshot, self.view.snapshot.board
        row = board.find(players)
        known = row >= 0
        shown = np.full(len(row), float(self.plan.last_rules.newcomers(1)["rating"][0]))
        placed, hidden = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
        shown[known] = board.rating[row[known]]
        placed[known] = taken.placed[row[known]]
        hidden[known] = board.hidden[row[known]]
        percentile = taken.against.queue_percentiles
        rating, doubt = self._strengths(store, np.asarray(players, np.int64), shown, now)
        deviation = (percentile(shown + doubt) - percentile(shown - doubt)) / 2
        columns = (rating, percentile(shown), deviation)
        listed = zip(players, *(column.tolist() for column in columns), placed.tolist(), hidden.tolist(), strict=True)
        return {
            player: Level(own, place, doubtful, not is_placed, is_hidden or player in self.plan.bans)
            for player, own, place, doubtful, is_placed, is_hidden in listed
        }

    def _strengths(self, store: Store, players: Ids, shown: Floats, now: int) -> tuple[Floats, Floats]:
        """The strength of players and its deviation, in points; `shown`: their shown ratings.

        While the view is older than the ladder's ratings, the shown ratings are used: it is replaced within seconds,
        and the levels are then read again.
        """
        head, rules = store.head(self.view.head.name), self.plan.last_rules
        if (head.generation, head.corrected) != (self.view.head.generation, self.view.head.corrected):
            return shown, np.zeros(len(players))
        ids = np.unique(players)
        roster = player_states.read_roster(store, head, rules, ids[ids > 0])
        state = rules.newcomers(len(ids))
        state[ids.searchsorted(roster.ids)] = roster.records
        latest = now if head.time is None else max(now, head.time)
        state = rules.system.as_of(state, latest, rules.parameters)[ids.searchsorted(players)]
        strength = rules.system.strength(state, rules.parameters)
        has_deviation = "deviation" in (state.dtype.names or ())
        return strength, state["deviation"].copy() if has_deviation else np.zeros(len(players))


class LevelBook:
    """Join profiles of all ladders. Thread-safe."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def of(self, ladder: str) -> JoinProfiles:
        """The join profiles of a ladder, at most some seconds old. Raises UnknownNameError for an unknown ladder."""
        view = self._service.view(ladder, fresh=False)
        head, database = view.head, self._service.database
        plan = database.plans.find(head.ladder, head.corrected)
        if plan is None or plan.upto != head.corrected:
            with database.read() as store:
                plan = corrections.read_plan(store, head, head.corrected)
        return JoinProfiles(view, plan)
