"""MatchTable: a History with the names of its matches, ladders, teams and players."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.errors import InputError, RowProblem, UnknownNameError, UsageError
from evenmatch.history import Flags, History, Integers, renumbered
from evenmatch.match import Appearance, Match, Team
from evenmatch.match_context import MOST, TAKEN
from evenmatch.tables.display import ROWS, as_html, counted, period
from evenmatch.tables.source import Source
from evenmatch.times import EPOCH

MICROSECONDS = pa.timestamp("us", "UTC")


class ContextColumn(NamedTuple):
    """A column that says what matches were played on.

    records  the index of each value's record; "" is an empty cell
    """

    name: str
    records: Mapping[str, int]


def values_of(columns: Iterable[ContextColumn]) -> dict[int, str]:
    """The context values by the index of their record."""
    return {record: value for column in columns for value, record in column.records.items()}


@dataclass(frozen=True, eq=False, repr=False)
class MatchTable:
    """Recorded matches, ready to rate: numeric columns and the names that they refer to.

    history      M matches in time order, T teams, P players (a player on two ladders counts twice)
    match_id     text (M,)      id of each match
    ladder       int32 (M,)     ladder of each match, an index into `ladders`
    ladders      text (L,)      names of the ladders
    team         text (T,)      label of each team, dictionary-encoded
    player       text (P,)      name of each player
    player_ladder int32 (P,)    ladder of each player
    row          int64 (M,)     first row of each match in the source
    source       the file or data frame, for messages
    skipped      why matches were left out, if bad ones were skipped
    skipped_matches  number of matches left out
    context      the context columns of the history
    """

    history: History
    match_id: pa.Array
    ladder: Integers
    ladders: tuple[str, ...]
    team: pa.Array
    player: pa.Array
    player_ladder: Integers
    row: NDArray[np.int64]
    source: Source
    skipped: tuple[RowProblem, ...] = field(default=())
    skipped_matches: int = 0
    context: tuple[ContextColumn, ...] = ()

    @classmethod
    def of(cls, history: History, ladder: str, names: Sequence[str]) -> MatchTable:
        """Name simulated matches of one ladder; `names` has a different name for each player index."""
        first = history.columns.team_start
        label = np.arange(first[-1]) - np.repeat(first[:-1], np.diff(first))
        return cls(
            history=history,
            match_id=pa.array([f"{ladder}-{number}" for number in range(1, len(history) + 1)], pa.large_string()),
            ladder=np.zeros(len(history), np.int32),
            ladders=(ladder,),
            team=pa.array(label).cast(pa.large_string()).dictionary_encode(),
            player=pa.array(names, pa.large_string()),
            player_ladder=np.zeros(len(names), np.int32),
            row=np.arange(len(history)),
            source=Source("the simulated matches"),
        )

    def __len__(self) -> int:
        return len(self.history)

    def __repr__(self) -> str:
        """Summary line: 25,557 matches, 4,960 players, 2004-07-09 to 2004-08-31."""
        if not len(self):
            return "0 matches"
        parts = [counted(len(self), "match", "matches"), counted(len(self.player), "player")]
        parts += [counted(len(self.ladders), "ladder")] if len(self.ladders) > 1 else []
        return ", ".join([*parts, period(self.history.columns.time)])

    def _repr_html_(self) -> str:
        """Summary for notebooks, with the first rows."""
        return as_html(repr(self), self.take(slice(0, ROWS)).to_arrow())

    @cached_property
    def player_names(self) -> list[str]:
        """Name of each player as a list of str."""
        names: list[str] = self.player.to_pylist()
        return names

    def take(self, matches: slice | NDArray[np.integer] | Flags) -> MatchTable:
        """Return only these matches (slice, ascending indices or mask), with their players and ladders."""
        chosen = np.arange(len(self))[matches]
        history = self.history.take(chosen)
        players, player = np.unique(history.columns.player, return_inverse=True)
        players = players.astype(np.int64)
        ladders, ladder = np.unique(self.ladder[chosen], return_inverse=True)
        teams = np.flatnonzero(
            np.isin(np.repeat(np.arange(len(self)), np.diff(self.history.columns.team_start)), chosen)
        )
        columns, former = renumbered(history.columns)
        number = dict(zip(former.tolist(), range(1, len(former) + 1), strict=True))
        context = [
            column._replace(records={value: number[at] for value, at in column.records.items() if at in number})
            for column in self.context
        ]
        return replace(
            self,
            history=History(columns._replace(player=player.astype(np.int32))),
            context=tuple(context),
            match_id=self.match_id.take(pa.array(chosen)),
            ladder=ladder.astype(np.int32),
            ladders=tuple(self.ladders[code] for code in ladders),
            team=self.team.take(pa.array(teams)),
            player=self.player.take(pa.array(players)),
            player_ladder=np.searchsorted(ladders, self.player_ladder[players]).astype(np.int32),
            row=self.row[chosen],
        )

    def on_ladder(self, name: str) -> MatchTable:
        """Return the matches of one ladder. Raises UnknownNameError for an unknown ladder."""
        if name not in self.ladders:
            raise UnknownNameError("ladder", name, self.ladders)
        return self.take(self.ladder == self.ladders.index(name))

    def pooled(self) -> MatchTable:
        """Return all matches on one ladder named "default".

        The history still has the ladder of each match: a system may learn how a map or mode differs.
        """
        encoded = self.player.dictionary_encode()
        code = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        c = self.history.columns
        history, columns = History(c._replace(player=code[c.player])), self.context
        context = c.context.reshape(len(self), len(columns))
        if len(self.ladders) > 1:
            context = np.column_stack((c.ladder, context))
            records = {self.ladders[ladder]: int(at) for ladder, at in zip(self.ladder, c.ladder, strict=True)}
            columns = (ContextColumn("ladder", records), *columns)
        return replace(
            self,
            history=history.with_context(context, values_of(columns)) if columns else history,
            context=columns,
            ladder=np.zeros(len(self), np.int32),
            ladders=("default",),
            player=encoded.dictionary,
            player_ladder=np.zeros(len(encoded.dictionary), np.int32),
        )

    def with_context(self, columns: Mapping[str, pa.ChunkedArray]) -> MatchTable:
        """Return the matches with these context columns, each with a value for every match.

        Raises UsageError if there are too many, InputError if one has too few or too many values.
        """
        if len(columns) > MOST:
            raise UsageError(f"{len(columns)} context columns; expected at most {MOST}")
        if not columns:
            return self
        context, listed, base = [], [], self.history.ladders + 1
        for name, cells in columns.items():
            if len(cells) != len(self):
                raise InputError(
                    f"context column {name!r} has {len(cells)} values; expected {len(self)}, one per match"
                )
            encoded = cells.cast(pa.large_string()).fill_null("").combine_chunks().dictionary_encode()
            values = encoded.dictionary.to_pylist()
            context.append(base + encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32))
            listed.append(ContextColumn(name, {value: base + at for at, value in enumerate(values)}))
            base += len(values)
        history = self.history.with_context(np.column_stack(context), values_of(listed))
        return replace(self, history=history, context=tuple(listed))

    def context_values(self, column: int) -> pa.Array:
        """The value of each match in a context column, by its index; text (M,)."""
        records = self.context[column].records
        names = dict(zip(records.values(), records, strict=True))
        found = self.history.columns.context.reshape(len(self), len(self.context))[:, column]
        return pa.array([names[record] for record in found.tolist()], pa.large_string())

    def find(self, match_id: str) -> int:
        """The index of a match by its id. Raises UnknownNameError for an unknown id."""
        number = pc.index(self.match_id, pa.scalar(match_id, self.match_id.type)).as_py()
        if number < 0:
            raise UnknownNameError("match", match_id, [])
        return int(number)

    def problems(self, found: Iterator[tuple[int, str]]) -> list[RowProblem]:
        """Convert (match index, reason) pairs to RowProblems with line and match id."""
        listed = list(found)
        lines = self.source.lines(self.row[[number for number, _ in listed]].tolist()) if listed else {}
        return [
            RowProblem(lines[int(self.row[number])], self.match_id[number].as_py(), reason, self.source.unit)
            for number, reason in listed
        ]

    def to_matches(self, ladder: str) -> Iterator[Match]:
        """Yield the matches as Match objects on this ladder."""
        c, names = self.history.columns, self.player_names
        slots = zip(
            [names[player] for player in c.player.tolist()],
            *(map(_known, column.tolist()) for column in (c.score, c.seconds)),
            c.quit.tolist(),
            map(_known, c.performance.tolist()),
            c.keep.tolist(),
            map(_known, c.entry.astype(str).astype(float).tolist()) if len(c.entry) else repeat(None, len(c.player)),
            strict=True,
        )
        appearances = [Appearance(*slot) for slot in slots]
        starts, first = c.slot_start.tolist(), c.team_start.tolist()
        places, scores = c.place.tolist(), list(map(_known, c.team_score.tolist()))
        teams = [
            Team(tuple(appearances[starts[team] : starts[team + 1]]), places[team], scores[team])
            for team in range(len(places))
        ]
        columns = [(number, column.name) for number, column in enumerate(self.context) if column.name != "ladder"]
        values = [self.context_values(number).to_pylist() for number, _ in columns]
        for index, (match_id, time, duration) in enumerate(
            zip(self.match_id.to_pylist(), c.time.tolist(), c.duration.tolist(), strict=True)
        ):
            moment = EPOCH + timedelta(microseconds=time)
            own = tuple(teams[first[index] : first[index + 1]])
            context = {name: of[index] for (_, name), of in zip(columns, values, strict=True)}
            yield Match(match_id, moment, own, ladder, _known(duration), context)

    def to_arrow(self) -> pa.Table:
        """Return the tidy long form, one row per player and match, without empty columns."""
        c, h = self.history.columns, self.history
        match, team = pa.array(h.slot_match), pa.array(h.slot_team)
        ladders = pa.array(self.ladders, pa.string())
        columns = {
            "match_id": self.match_id.take(match),
            "played_at": pa.array(c.time, pa.int64()).cast(MICROSECONDS).take(match),
            "ladder": ladders.take(pa.array(self.ladder)).take(match),
            "team": self.team.take(team),
            "player": self.player.take(pa.array(c.player)),
            "place": pa.array(c.place).take(team),
            "team_score": _number(c.team_score).take(team),
            "score": _number(c.score),
            "seconds": _number(c.seconds),
            "performance": _number(c.performance),
            "entry": _number(c.entry if len(c.entry) else np.full(len(c.player), np.nan)),
        }
        longest = np.full(len(h), np.nan)
        if len(h):
            longest = np.fmax.reduceat(c.seconds, h.match_slots[:-1])
        given = np.where(c.duration == longest, np.nan, c.duration)
        columns["duration"] = _number(given).take(match)
        columns = {
            name: column for name, column in columns.items() if column.null_count < len(column) or name == "place"
        }
        if c.quit.any():
            columns["quit"] = pa.array(c.quit)
        if not c.keep.all():
            columns["keep"] = pa.array(c.keep)
        order = [name for name in COLUMNS if name in columns]
        for number, column in enumerate(self.context):
            if column.name != "ladder":
                columns[column.name] = self.context_values(number).take(match)
                order.append(column.name)
        return pa.table({name: columns[name] for name in order})


COLUMNS: Sequence[str] = TAKEN
NEEDED: Sequence[str] = ("match_id", "played_at", "team", "player")


def _number(values: NDArray[np.floating]) -> pa.Array:
    return pa.array(values, from_pandas=True)


def _known(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124 - NaN stands for a value that was not recorded
