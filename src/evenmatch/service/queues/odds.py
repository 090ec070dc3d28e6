"""Odds of matches by the ladder's own rating system, from the present states of the players."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from evenmatch.history import Floats
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Kind
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, events, player_states
from evenmatch.matchmaking import LineUps
from evenmatch.matchmaking.tickets import starts
from evenmatch.systems import forecasts
from evenmatch.systems.system import Records, Rules

FOLLOWED = 1000  # most events whose players are looked up; after more, all states are read again


class LadderOdds:
    """Predicts matches of one ladder as `POST …/odds` does: by its system, as of the last recorded match.

    It is the `odds` of the policies of all the ladder's queues. States are kept between ticks and read again when they
    change. Not thread-safe.

    players  returns the players whose states are likely to be needed, for reading them in one go
    """

    def __init__(self, database: Database, ladder: str, players: Callable[[], Iterable[int]]) -> None:
        self._database, self._ladder, self._players = database, ladder, players
        self._head: Head | None = None
        self._rules: Rules | None = None
        self._row: dict[int, int] = {}
        self._state: Records = np.empty(0, [])
        self._ladders: Records | None = None
        self._now, self._is_current = 0, False

    def begin_tick(self, now: int) -> None:
        """Predict matches at this time, microseconds; changes of the ladder are read at the next prediction."""
        self._now, self._is_current = now, False

    def __call__(self, line_ups: LineUps) -> Floats:
        """See matchmaking.OddsFunction. Raises StoreError."""
        chance = self._chances(line_ups)
        return chance[:, 0] if line_ups.teams == 2 else np.maximum(chance, 1 - chance).max(axis=1)

    def expected(self, matches: Sequence[Sequence[Sequence[int]]]) -> list[list[float] | None]:
        """The predicted score of each team of these matches, given by the ids of its players; a draw counts half.

        None: the system cannot predict the match, or a team is empty. Raises StoreError.
        """
        scores: list[list[float] | None] = [None] * len(matches)
        for count in {len(teams) for teams in matches}:
            chosen = [index for index, teams in enumerate(matches) if len(teams) == count and all(teams)]
            teams = [team for index in chosen for team in matches[index]]
            player = np.array([player for team in teams for player in team], np.int64)
            chance = self._chances(LineUps(count, starts([len(team) for team in teams]), player, np.empty(0)))
            first, second = np.triu_indices(count, 1)
            total = np.zeros((len(chosen), count))
            for pair in range(len(first)):
                total[:, first[pair]] += chance[:, pair]
                total[:, second[pair]] += 1 - chance[:, pair]
            for index, expected in zip(chosen, (total / (count - 1)).tolist(), strict=True):
                scores[index] = None if math.isnan(expected[0]) else expected
        return scores

    def _chances(self, line_ups: LineUps) -> Floats:
        """The predicted score of the first team against the second, for each pair of teams; float64 (M, pairs)."""
        players = line_ups.player.tolist()
        rules, state, now = self._states(players)
        if rules.system.teams not in (None, line_ups.teams):
            return np.full((len(line_ups), line_ups.teams * (line_ups.teams - 1) // 2), np.nan)
        rows = np.fromiter(map(self._row.__getitem__, players), np.int64, len(players))
        teams = forecasts.LineUpTeams(line_ups.start, rows)
        predicted = forecasts.line_up_forecasts(rules, state, teams, line_ups.teams, now, self._ladders)
        chance: Floats = predicted[:, :, 0] + predicted[:, :, 1] / 2
        return chance

    def _states(self, players: Sequence[int]) -> tuple[Rules, Records, int]:
        """The ladder's rules, the states that `_row` points into, and the time of the prediction."""
        if not self._is_current or not self._row.keys() >= set(players):
            with self._database.read() as store:
                self._catch_up(store)
                self._read({*players, *self._players()} - self._row.keys(), store)
            self._is_current = True
        assert self._head is not None
        assert self._rules is not None
        latest = self._now if self._head.time is None else max(self._now, self._head.time)
        return self._rules, self._state, latest

    def _catch_up(self, store: Store) -> None:
        """Forget the states that have changed since they were read."""
        old, head = self._head, store.head(self._ladder)
        if old is None or self._is_replaced(old, head):
            self._rules = corrections.read_plan(store, head, head.planned).last_rules
            self._row, self._state = {}, self._rules.newcomers(0)
        elif head.position != old.position:
            later = events.read_between(store, head.ladder, old.position, head.position)
            if any(kind == Kind.SEASON for kind, _, _ in later):
                self._row, self._state = {}, self._state[:0]
            for player in events.changed_players(later).tolist():
                self._row.pop(player, None)
        assert self._rules is not None
        self._head, self._ladders = head, player_states.read_ladders(head, self._rules)

    @staticmethod
    def _is_replaced(old: Head, head: Head) -> bool:
        """Whether all states must be read again."""
        same = (old.ladder, old.generation, old.corrected, old.planned)
        is_far = head.position - old.position > FOLLOWED
        return same != (head.ladder, head.generation, head.corrected, head.planned) or is_far

    def _read(self, players: set[int], store: Store) -> None:
        """Read the states of these players; those without a match here are newcomers."""
        if not players:
            return
        assert self._head is not None
        assert self._rules is not None
        ids: Ids = np.array(sorted(players), np.int64)
        roster = player_states.read_roster(store, self._head, self._rules, ids)
        state = self._rules.newcomers(len(ids))
        state[ids.searchsorted(roster.ids)] = roster.records
        if len(self._state) > 2 * (len(self._row) + len(ids)):  # most of the kept rows are out of date
            kept = np.fromiter(self._row.values(), np.int64, len(self._row))
            self._state, self._row = self._state[kept], dict(zip(self._row, range(len(kept)), strict=True))
        first = len(self._state)
        self._state = np.concatenate((self._state, state))
        self._row |= dict(zip(ids.tolist(), range(first, first + len(ids)), strict=True))
