"""Rate matches one at a time, as they end, with the same kernels that rate a recorded history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenmatch.compile_notice import load_kernels
from evenmatch.errors import BadRowsError, InputError, RowProblem, UnknownNameError
from evenmatch.history import History, entries, microseconds
from evenmatch.match import Match, check_entry
from evenmatch.rating import Moment, changes, check_range, rules_of
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import Stakes, check_players, stakes
from evenmatch.systems import forecasts, loop
from evenmatch.systems.duel import DuelSystem
from evenmatch.systems.ladder_records import Learned, copy_records, join_records
from evenmatch.systems.system import Change, Records, Rules

if TYPE_CHECKING:  # pyarrow takes a tenth of the start of a process that rates one match
    from evenmatch.rating import Ratings


@dataclass(frozen=True)
class Receipt:
    """The result of rating one match: the rating changes of its players by team, in the order of the match."""

    match_id: str
    teams: tuple[tuple[Change, ...], ...]


@dataclass(frozen=True)
class MatchOdds:
    """The predicted result of a line-up.

    expected  each team's expected score: the mean of win + draw/2 over its opponents
    win       win[a][b]: the probability that team a finishes ahead of team b
    draw      draw[a][b]: the probability that they draw
    """

    expected: tuple[float, ...]
    win: tuple[tuple[float, ...], ...]
    draw: tuple[tuple[float, ...], ...]


class Rater:
    """The players of one ladder in memory, rated match by match. Not thread-safe.

    A match reported late counts as having ended when the latest rated match did.
    """

    def __init__(self, by: Rules | str | type[DuelSystem], ladder: str = "default") -> None:
        """Create an empty ladder. by: rules, or the name or class of a system."""
        by = rules_of(by)
        load_kernels(by)
        self.rules, self.ladder = by, ladder
        self._rows: dict[str, int] = {}
        self._state: Records = by.newcomers(64)
        self._newcomer: Records = by.newcomers(1)
        self._ladders: Records = by.ladders()
        self._time = np.iinfo(np.int64).min
        self._rated: Ratings | None = None

    @classmethod
    def after(cls, ratings: Ratings, ladder: str = "default") -> Rater:
        """Create the ladder from rated matches. Raises UnknownNameError if they do not contain this ladder."""
        table = ratings.matches
        if ladder not in table.ladders:
            raise UnknownNameError("ladder", ladder, table.ladders)
        code = table.ladders.index(ladder)
        rater = cls(ratings.rules, ladder)
        members = np.flatnonzero(table.player_ladder == code)
        rater._rows = {table.player_names[player]: row for row, player in enumerate(members.tolist())}
        rater._state = ratings.state[members]
        latest = np.flatnonzero(table.ladder == code)[-1]
        rater._ladders = ratings.ladders[[0, table.history.columns.ladder[latest]]]
        rater._time = int(table.history.columns.time[table.ladder == code].max())
        rater._rated = ratings
        return rater

    def __repr__(self) -> str:
        return (
            f"ladder {self.ladder!r} of {len(self):,} player{'' if len(self) == 1 else 's'} by {self.rules.system.name}"
        )

    def __contains__(self, player: str) -> bool:
        return player in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def rating(self, player: str) -> float:
        """The displayed rating; the newcomer rating for a player without a match here."""
        row = self._rows.get(player)
        return float((self._newcomer[0] if row is None else self._state[row])["rating"])

    def rate(self, match: Match) -> Receipt:
        """Rate a match and return its changes. Its context is not read.

        Raises BadRowsError and changes nothing if the system cannot rate it.
        """
        if match.ladder != self.ladder:
            raise InputError(f"match {match.id!r} is on ladder {match.ladder!r}; expected a match of {self.ladder!r}")
        names = [slot.player for team in match.teams for slot in team.players]
        history = History.of_match(match, self._time)
        refused = [reason for _, reason in self.rules.system.refusals(history.columns, self.rules.parameters)]
        if refused:
            raise BadRowsError("the match", [RowProblem(None, match.id, reason) for reason in refused])
        state, ladders = self._gather(names), copy_records(self._ladders)  # copies, since a rating may leave the range
        result = loop.replay(self.rules, history, state, ladders, journal=True, in_place=True)
        check_range(self.rules, history, state, result, names.__getitem__, lambda _: match.id)
        assert result.journal is not None
        receipt = changes(self.rules, history, result.expected, result.journal, 0, names)
        self._scatter(names, result.state)
        self._ladders = result.ladders
        self._time = int(history.columns.time[0])
        return Receipt(match.id, tuple(map(tuple, receipt)))

    def odds(
        self,
        teams: Sequence[Sequence[str]],
        at: Moment | None = None,
        context: Mapping[str, str] | None = None,
        entry: Mapping[str, float] | None = None,
    ) -> MatchOdds:
        """The odds of a line-up of two or more teams.

        at       None for the time of the latest match
        context  the value of each context column, such as {"map": "dust"}; a column left out, and a value that no
                 match had, are unknown
        entry    by name, a number known before the first match, see match.Appearance; ignored of rated players
        Raises UnknownNameError for a column that the rated matches do not have, or a name outside the line-up.
        """
        names = check_line_up(self.rules, teams)
        now, sizes = self._time if at is None else microseconds(at), [len(team) for team in teams]
        ladders, known = self._in_context(names, context) if context else (self._ladders, None)
        known = with_entry(self.rules, known, names, entry or {})
        return odds(self.rules, self._gather(names), sizes, now, ladders, known)

    def _in_context(self, names: Sequence[str], context: Mapping[str, str]) -> tuple[Records, forecasts.LineUpContext]:
        """The records of pool, ladder and context values, and what the rated matches say about players under them."""
        columns = () if self._rated is None else self._rated.matches.context
        for name in context:
            if name not in [column.name for column in columns]:
                raise UnknownNameError("context column", name, [column.name for column in columns])
        assert self._rated is not None
        ratings, c = self._rated, self._rated.matches.history.columns
        values = c.context.reshape(-1, len(columns))[ratings.matches.history.slot_match]
        offset = c.offset.reshape(-1, len(columns))
        player = np.array(ratings.matches.player_names)[c.player]
        found = np.full((len(names), len(columns)), len(ratings.offsets))  # the last one is a newcomer's
        ladders = [self._ladders]
        for number, column in enumerate(columns):
            value = context.get(column.name)
            record = -1 if value is None else column.records.get(value, -1)
            ladders.append(self.rules.values_of_context([value or ""]) if record < 0 else ratings.ladders[[record]])
            slots = np.flatnonzero(values[:, number] == record)
            met = dict(zip(player[slots].tolist(), offset[slots, number].tolist(), strict=True))
            found[:, number] = [met.get(name, len(ratings.offsets)) for name in names]
        offsets = join_records(ratings.offsets, self.rules.offsets(1))
        records = np.arange(2, 2 + len(columns), dtype=np.uint32)
        return np.concatenate(ladders), forecasts.LineUpContext(records, offsets, found.astype(np.uint32).ravel())

    def stakes(
        self,
        teams: Sequence[Sequence[str]],
        assumptions: StakeAssumptions | None = None,
        players: Sequence[str] | None = None,
        at: Moment | None = None,
        context: Mapping[str, str] | None = None,
        entry: Mapping[str, float] | None = None,
    ) -> Stakes:
        """The rating changes that a win, a draw, a loss or quitting would bring the players of a line-up.

        assumptions  about the match to come; None: the defaults of StakeAssumptions
        players      the players to return stakes for; None: the whole line-up
        at           when the match ends, not before the latest match; None: with the latest match
        context, entry  what it is played on, and what is known about newcomers, as for `odds`
        Raises InputError if the system cannot rate such teams, or one of `players` is not in them.
        """
        names = check_line_up(self.rules, teams)
        time = self._time if at is None else max(microseconds(at), self._time)
        assumptions = StakeAssumptions() if assumptions is None else assumptions
        sizes, chosen = [len(team) for team in teams], check_players(names, players)
        ladders, known = self._in_context(names, context) if context else (self._ladders, None)
        known = with_entry(self.rules, known, names, entry or {})
        return stakes(self.rules, self._gather(names), names, sizes, time, assumptions, chosen, ladders, known)

    @property
    def learned(self) -> tuple[Learned, ...]:
        """The numbers that the system has learned about the ladder; empty for systems that learn nothing about it."""
        return self.rules.system.learned(self._ladders, self.rules.parameters)

    def _gather(self, names: Sequence[str]) -> Records:
        rows = [self._rows.get(name, -1) for name in names]
        state: Records = self._state.take(rows)  # indexing would copy records field by field
        for position, row in enumerate(rows):
            if row < 0:
                state[position] = self._newcomer[0]
        return state

    def _scatter(self, names: Sequence[str], state: Records) -> None:
        for name in names:
            self._rows.setdefault(name, len(self._rows))
        if len(self._rows) > len(self._state):
            self._state = np.concatenate((self._state, self.rules.newcomers(len(self._rows) + len(self._state))))
        self._state.put([self._rows[name] for name in names], state)


def check_line_up(by: Rules, teams: Sequence[Sequence[str]]) -> list[str]:
    """Return all players of a line-up. Raises InputError for unsupported team counts or a repeated player."""
    names = [player for team in teams for player in team]
    exact = by.system.teams
    if len(teams) < 2 or not all(teams) or exact not in (None, len(teams)):
        expected = f"{exact or 'two or more'} teams of at least one player"
        raise InputError(f"the line-up has teams of {[len(team) for team in teams]} players; expected {expected}")
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"player {twice!r} is in the line-up more than once; expected once")
    return names


def with_entry(
    by: Rules, known: forecasts.LineUpContext | None, names: Sequence[str], entry: Mapping[str, float]
) -> forecasts.LineUpContext | None:
    """What is known about a line-up of these players, with the numbers known about newcomers.

    Raises UnknownNameError for a name that is not in the line-up, InputError for a number that cannot be.
    """
    for name in entry:
        if name not in names:
            raise UnknownNameError("player", name, names)
        check_entry(name, entry[name])
    if not entry:
        return known
    context = known or forecasts.LineUpContext(forecasts.NO_CONTEXT, by.offsets(0), forecasts.NO_CONTEXT)
    return context._replace(entry=entries([entry.get(name, np.nan) for name in names]))


def odds(
    by: Rules,
    state: Records,
    sizes: Sequence[int],
    now: int,
    ladders: Records | None = None,
    context: forecasts.LineUpContext | None = None,
) -> MatchOdds:
    """The odds between teams of these sizes; `state` has the records of their players, team after team.

    ladders  the records of the pool and of the ladder; None: before the first match
    context  what they play on; None: nothing is known
    """
    count = len(sizes)
    teams = forecasts.LineUpTeams(np.concatenate(([0], np.cumsum(sizes))), np.arange(sum(sizes)))
    predicted = forecasts.line_up_forecasts(by, state, teams, count, now, ladders, context)[0]
    win, draw = np.zeros((count, count)), np.zeros((count, count))
    pairs = np.triu_indices(count, 1)
    win[pairs], draw[pairs] = predicted.T
    draw += draw.T
    win.T[pairs] = 1 - predicted.sum(1)
    expected = (win + draw / 2).sum(1) / (count - 1)
    return MatchOdds(tuple(expected.tolist()), tuple(map(tuple, win.tolist())), tuple(map(tuple, draw.tolist())))
