"""Rate a table of recorded matches: rules by name, ratings, standings, journal, and the explanation of one match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch import systems
from evenmatch.compile_notice import load_kernels
from evenmatch.errors import (
    BadRowsError,
    InputError,
    RatingRangeError,
    RowProblem,
    UnknownNameError,
    UsageError,
    needing,
)
from evenmatch.history import Floats, History, Times, match_results, microseconds, renumbered, team_results
from evenmatch.progress import shown_progress
from evenmatch.standings.activity import Activity
from evenmatch.standings.distribution import percentiles
from evenmatch.standings.division import DIVISIONS, Division, division_of
from evenmatch.systems import loop
from evenmatch.systems.duel import DuelSystem, is_duel_system
from evenmatch.systems.loop import Journal, Replay
from evenmatch.systems.system import Change, Records, Rules, System
from evenmatch.tables import Frame, MatchTable, table_of, write_arrow
from evenmatch.tables.display import as_html, counted
from evenmatch.tables.table import MICROSECONDS

__all__ = (
    "Ratings",
    "changes",
    "check_range",
    "explain",
    "rate",
    "rateable",
    "rules",
    "rules_of",
    "without",
)


def check_range(
    by: Rules,
    history: History,
    state: Records,
    result: Replay,
    player: Callable[[int], str],
    match: Callable[[int], str],
) -> None:
    """Raise RatingRangeError, naming player and match, if a rating left the range of the system."""
    if np.isfinite(result.state["rating"]).all():
        return
    after = result.journal.after if result.journal else loop.replay(by, history, state, journal=True).journal.after  # type: ignore[union-attr]
    slot = int(np.flatnonzero(~np.isfinite(after))[0])
    raise RatingRangeError(
        f"the rating of {player(int(history.columns.player[slot]))!r} leaves the range of {by.system.name} in match "
        f"{match(int(history.slot_match[slot]))!r}; nothing was rated"
    )


def changes(
    by: Rules, history: History, expected: Floats, journal: Journal, match: int, names: Sequence[str]
) -> list[list[Change]]:
    """The rating changes of one match (by index), team by team. Raises UsageError for an index without a match."""
    if not 0 <= match < len(history):
        raise UsageError(f"match is {match}; expected an index from 0 to {len(history) - 1}")
    c = history.columns
    first, end = c.team_start[match : match + 2].tolist()
    starts = c.slot_start[first : end + 1].tolist()
    slots = slice(starts[0], starts[-1])
    players, factors = c.player[slots].tolist(), by.system.name_factors(journal.factors[slots])
    before, after = journal.before[slots].tolist(), journal.after[slots].tolist()
    predicted, results = expected[first:end].tolist(), match_results(c.place[first:end].tolist())
    listed, stop = [], 0
    for team, (score, result) in enumerate(zip(predicted, results, strict=True)):
        start, stop = stop, starts[team + 1] - starts[0]
        listed.append(
            [
                Change(names[players[slot]], team, before[slot], after[slot], score, result, factors[slot])
                for slot in range(start, stop)
            ]
        )
    return listed


def rules(system: str | type[DuelSystem], preset: str | None = None, **parameters: object) -> Rules:
    """Create the rules of a rating system, a preset and parameters.

    system  its name, the path of a .py file, or a DuelSystem

    Raises UnknownNameError or BadParameterError.
    """
    return Rules.of(systems.find(system), preset, **parameters)


def rules_of(by: Rules | str | type[DuelSystem]) -> Rules:
    """Return rules unchanged; turn a system's name or class into its rules with default parameters."""
    if isinstance(by, Rules):
        return by
    if isinstance(by, str) or is_duel_system(by):
        return rules(by)
    raise UsageError(f"the rules are a {type(by).__name__}; expected a system's name or evenmatch.rules(…)")


if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from evenmatch.online import MatchOdds

Progress = Callable[[int], None]
Moment = datetime | np.datetime64  # without a time zone: UTC
MOST_ACTIVE = 5  # players in a plot that names none
WIDTH_95 = 1.96  # deviations of a normal distribution on either side of its mean that hold 95 %
TEXT = pa.large_string()


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """The result of rating matches.

    state     one record per player of the table; the field `rating` is the displayed rating
    expected  float64 (T,)  each team's expected score, predicted before its match was rated
    journal   the effect of every match on every player, if requested
    ladders   what the system learned about the ladders: a record of their pool, one per ladder of the table, and one
              per context value
    offsets   what the system learned about players under context values
    """

    matches: MatchTable
    rules: Rules
    state: Records
    expected: Floats
    journal: Journal | None
    ladders: Records
    offsets: Records

    def __repr__(self) -> str:
        """Summary line: ratings of 4,960 players by elo, after 25,557 matches, …"""
        return f"ratings of {counted(len(self.state), 'player')} by {self.rules.system.name}, after {self.matches!r}"

    def _repr_html_(self) -> str:
        """Summary for notebooks, with the highest-rated players."""
        return as_html(repr(self), self.standings())

    def standings(
        self,
        *,
        as_of: Moment | None = None,
        placement: int = 10,
        active_days: float = 30,
        divisions: Sequence[Division] = DIVISIONS,
    ) -> pa.Table:
        """One row per ladder and player, sorted by ladder, then descending rating, then player.

        as_of        not before the last match; None: each ladder's last match
        placement    completed matches required before percentile and division are shown
        active_days  percentiles count players who completed a match within this many days before `as_of`
        Columns: ladder, player, rating, matches, last_played, percentile (null unless placed and active), placed,
        division, then the system's own.
        """
        table, time = self.matches, self.matches.history.columns.time
        last = np.array([time[table.ladder == code].max(initial=0) for code in range(len(table.ladders))])
        rated = RatedPlayers(
            self.rules, self.state, Activity.of(table.history), table.player, table.player_ladder, table.ladders, last
        )
        now = None if as_of is None else microseconds(as_of)
        return rated.standings(as_of=now, placement=placement, active_days=active_days, divisions=divisions)

    def journal_table(self) -> pa.Table:
        """One row per player and match, in time order.

        Columns: match_id, played_at, ladder, player, team, before, after, expected, then the system's factors.
        """
        table, history = self.matches, self.matches.history
        ladder = pa.array(table.ladders, TEXT).take(pa.array(table.ladder))
        player = table.player.take(pa.array(history.columns.player))
        names = SlotNames(table.match_id, ladder, player, table.team)
        return journal_rows(self.rules.system, history, self.expected, self._journal, names)

    def changes(self, match: int) -> list[list[Change]]:
        """The rating changes of one match (by index), team by team. Raises UsageError for an index without a match."""
        return changes(self.rules, self.matches.history, self.expected, self._journal, match, self.matches.player_names)

    def path(self, player: str) -> pa.Table:
        """One row per match of a player, in time order. Raises UnknownNameError for an unknown player.

        Columns: played_at, match_id, ladder, before, after, result (of the team: the mean over its rivals of 1 for a
        win, 0.5 for a draw, 0 for a loss), expected.
        """
        history, journal = self.matches.history, self._journal
        slots = np.flatnonzero(np.isin(history.columns.player, self._rows(player)))
        match, team, c = history.slot_match[slots], history.slot_team[slots], history.columns
        return pa.table(
            {
                "played_at": pa.array(c.time[match]).cast(MICROSECONDS),
                "match_id": self.matches.match_id.take(pa.array(match)),
                "ladder": pa.array(self.matches.ladders, TEXT).take(pa.array(self.matches.ladder[match])),
                "before": pa.array(journal.before[slots]),
                "after": pa.array(journal.after[slots]),
                "result": pa.array(team_results(c.team_start, c.place)[team]),
                "expected": pa.array(self.expected[team]),
            }
        )

    def odds(
        self,
        *teams: Sequence[str],
        ladder: str | None = None,
        at: Moment | None = None,
        context: Mapping[str, str] | None = None,
    ) -> MatchOdds:
        """The odds of a line-up: `ratings.odds(["ann"], ["bob"])`. at: None for the time of the latest match.

        ladder   may be left out if there is only one
        context  the value of each context column; see Rater.odds
        Raises UnknownNameError for an unknown player, ladder or context column, InputError for a line-up that cannot
        play.
        """
        from evenmatch.online import Rater

        if ladder is None and len(self.matches.ladders) > 1:
            raise UsageError(f"the odds of which ladder? expected ladder= one of {', '.join(self.matches.ladders)}")
        rater = Rater.after(self, self.matches.ladders[0] if ladder is None else ladder)
        for player in (player for team in teams for player in team):
            if player not in rater:
                raise UnknownNameError("player", player, self.matches.player_names)
        return rater.odds(teams, at, context)

    def to_parquet(self, path: str | Path) -> None:
        """Write the standings to a Parquet file. Raises UsageError if the path cannot be written."""
        if not str(path).endswith(".parquet"):
            raise UsageError(f"{path}: expected a name that ends in .parquet; evenmatch.write also writes other files")
        write_arrow(self.standings(), Path(path))

    def plot(self, *players: str) -> Figure:
        """Plotly figure of the players' ratings over time; without names, of the five with the most matches.

        If the system estimates deviations, a band shows where the strength lies with 95 %. The line of a system that
        shows the mean minus some deviations runs below its band. Needs the extra `lab`. Raises UnknownNameError.
        """
        with needing("lab", "a plot"):
            from evenmatch.lab import charts
        if not players:
            count = np.bincount(self.matches.history.columns.player, minlength=len(self.state))
            players = tuple(self.matches.player_names[row] for row in np.argsort(-count, kind="stable")[:MOST_ACTIVE])
        rows = [row for player in dict.fromkeys(players) for row in self._rows(player)]
        return charts.rating_paths([charts.Path(*self._path(row)) for row in rows])

    def plot_distribution(self) -> Figure:
        """Plotly figure of how many players have which rating. Needs the extra `lab`."""
        with needing("lab", "a plot"):
            from evenmatch.lab import charts
        return charts.rating_distribution(self.state["rating"], charts.line_styles(["rating"])["rating"], height=380)

    def _rows(self, player: str) -> list[int]:
        """The rows of a player in `state`, one per ladder."""
        rows = np.flatnonzero(pc.equal(self.matches.player, player).to_numpy(zero_copy_only=False))
        if not len(rows):
            raise UnknownNameError("player", player, dict.fromkeys(self.matches.player_names))
        listed: list[int] = rows.tolist()
        return listed

    def _path(self, row: int) -> tuple[str, Times, Floats, Floats | None]:
        """Name, times, ratings and their interval (2, N), if the system estimates one, of a player on a ladder."""
        table, system, journal = self.matches, self.rules.system, self._journal
        slots = np.flatnonzero(table.history.columns.player == row)
        after, time = journal.after[slots], table.history.columns.time[table.history.slot_match[slots]]
        ladder = f" ({table.ladders[table.player_ladder[row]]})" if len(table.ladders) > 1 else ""
        interval = None
        if "deviation_after" in (journal.factors.dtype.names or ()):
            deviation = journal.factors["deviation_after"][slots]
            now = {name: column[row] for name, column in system.columns(self.state, self.rules.parameters).items()}
            below = (now["mean"] - after[-1]) / now["deviation"] if "mean" in now else 0.0  # deviations below the mean
            interval = after + np.outer((below - WIDTH_95, below + WIDTH_95), deviation)
        return table.player_names[row] + ladder, time, after, interval

    @cached_property
    def _journal(self) -> Journal:
        """The journal, made when it is first wanted: to rate the matches again gives the same bits."""
        if self.journal is not None:
            return self.journal
        history = self.matches.history
        again = loop.replay(self.rules, history, self.rules.newcomers(len(self.state)), journal=True).journal
        assert again is not None
        return again


@dataclass(frozen=True, eq=False)
class RatedPlayers:
    """P players on L ladders after their matches, for standings.

    player         text (P,)   name of each player
    player_ladder  int32 (P,)  ladder of each player, an index into `ladders`
    last           int64 (L,)  time of each ladder's last match
    """

    rules: Rules
    state: Records
    activity: Activity
    player: pa.Array | pa.ChunkedArray
    player_ladder: NDArray[np.int32]
    ladders: Sequence[str]
    last: NDArray[np.int64]

    def standings(
        self, *, as_of: int | None, placement: int, active_days: float, divisions: Sequence[Division]
    ) -> pa.Table:
        """As `Ratings.standings`."""
        if as_of is not None and len(self.last) and as_of < self.last.max():
            raise InputError("as_of is before the last match that was rated; rate only the matches up to that time")
        rating, activity = self.state["rating"], self.activity
        now = self.last[self.player_ladder] if as_of is None else np.full(len(rating), as_of)
        active, placed = activity.active(now, active_days), activity.placed(placement)
        percentile = np.ones(len(rating), np.int64)
        for code in range(len(self.ladders)):
            members = self.player_ladder == code
            percentile[members] = percentiles(rating[members], active[members])
        hidden = ~(active & placed)
        division = np.array([d.name for d in divisions], object)[division_of(percentile, divisions)]
        columns_of = self.rules.system.columns
        columns = {
            "ladder": pa.array(self.ladders, TEXT).take(pa.array(self.player_ladder)),
            "player": self.player.cast(TEXT),
            "rating": pa.array(rating),
            "matches": pa.array(activity.matches),
            "last_played": pa.array(activity.last_played).cast(MICROSECONDS),
            "percentile": pa.array(percentile, mask=hidden),
            "placed": pa.array(placed),
            "division": pa.array(division, TEXT, mask=hidden),
            **{name: pa.array(column) for name, column in columns_of(self.state, self.rules.parameters).items()},
        }
        return pa.table(columns).take(pa.array(self._order()))

    def _order(self) -> NDArray[np.intp]:
        by_name = np.empty(len(self.player), np.int64)
        by_name[pc.sort_indices(self.player).to_numpy()] = np.arange(len(self.player))
        ladders = sorted(range(len(self.ladders)), key=lambda code: self.ladders[code])
        rank = np.empty(len(ladders), np.int64)
        rank[ladders] = np.arange(len(ladders))
        return np.lexsort((by_name, -self.state["rating"], rank[self.player_ladder]))


class SlotNames(NamedTuple):
    """The names of M matches, T teams and S slots: match_id and ladder text (M,), player (S,), team (T,)."""

    match_id: pa.Array
    ladder: pa.Array
    player: pa.Array
    team: pa.Array


def journal_rows(system: System, history: History, expected: Floats, journal: Journal, names: SlotNames) -> pa.Table:
    """One row per player and match, with the columns of `Ratings.journal_table`."""
    match, team = pa.array(history.slot_match), pa.array(history.slot_team)
    columns = {
        "match_id": names.match_id.cast(TEXT).take(match),
        "played_at": pa.array(history.columns.time).cast(MICROSECONDS).take(match),
        "ladder": names.ladder.take(match),
        "player": names.player,
        "team": names.team.take(team).cast(TEXT),
        "before": pa.array(journal.before),
        "after": pa.array(journal.after),
        "expected": pa.array(expected).take(team),
    }
    for factor in system.factors:
        values = journal.factors[factor.name]
        words = pa.array(factor.labels, TEXT)
        columns[factor.name] = words.take(pa.array(values)) if factor.labels else pa.array(values, from_pandas=True)
    return pa.table(columns)


def rate(
    matches: MatchTable | Frame,
    by: Rules | str,
    *,
    journal: bool = False,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Ratings:
    """Rate all matches in time order; every player starts as a newcomer.

    matches   a table, or a data frame in the tidy long form
    by        rules, or the name or class of a system with its default parameters
    skip_bad  leave out bad rows of a data frame and matches the system cannot rate (listed in `.matches.skipped`)
    progress  called from time to time with the number of matches rated so far; None: shown on terminals, in notebooks
    Raises BadRowsError with every match the system cannot rate, before anything is rated.
    """
    matches, by = table_of(matches, skip_bad=skip_bad), rules_of(by)
    matches = rateable(matches, by, skip_bad=skip_bad)
    load_kernels(by, in_context=matches.history.contexts > 0)
    state = by.newcomers(len(matches.player))
    with nullcontext() if progress else shown_progress() as report:
        if report is not None:
            total, what = max(len(matches), 1), f"rating with {by.system.name}"
            progress = lambda done: report(what, done / total)  # noqa: E731
        result = loop.replay(by, matches.history, state, journal=journal, progress=progress)
    check_range(
        by, matches.history, state, result, matches.player_names.__getitem__, lambda m: matches.match_id[m].as_py()
    )
    return Ratings(matches, by, result.state, result.expected, result.journal, result.ladders, result.offsets)


def rateable(matches: MatchTable, by: Rules, *, skip_bad: bool = False) -> MatchTable:
    """Return the matches that the system can rate; raises BadRowsError for any others unless `skip_bad`."""
    return without(matches, by.system.refusals(matches.history.columns, by.parameters), skip_bad=skip_bad)


def without(matches: MatchTable, refused: Iterable[tuple[int, str]], *, skip_bad: bool) -> MatchTable:
    """The matches without the refused ones, given as (index, reason); raises BadRowsError unless `skip_bad`."""
    problems = matches.problems(iter(refused))
    if not problems:
        return matches
    bad = {problem.match_id for problem in problems}
    if not skip_bad or len(bad) == len(matches):
        raise BadRowsError(matches.source.name, problems, all_bad=len(bad) == len(matches))
    good = np.array([match_id not in bad for match_id in matches.match_id.to_pylist()])
    skipped: tuple[RowProblem, ...] = (*matches.skipped, *problems)
    return replace(matches.take(good), skipped=skipped, skipped_matches=matches.skipped_matches + len(bad))


def explain(matches: MatchTable | Frame, by: Rules | str, match_id: str) -> Ratings:
    """Rate all matches up to and including this one, and return the ratings with the journal of this match.

    matches, by  as for `rate`
    Raises UnknownNameError for an unknown match id, BadRowsError if the system cannot rate one of the matches.
    """
    matches, by = table_of(matches), rules_of(by)
    matches = rateable(matches, by)
    number = matches.find(match_id)
    load_kernels(by, in_context=matches.history.contexts > 0)
    history = matches.history
    before, ladders, offsets = (
        by.newcomers(len(matches.player)),
        by.ladders(history.ladders),
        by.offsets(history.offsets),
    )
    if number:
        earlier = loop.replay(by, history.take(slice(0, number)), before, ladders, offsets)
        before, ladders, offsets = earlier.state, earlier.ladders, earlier.offsets
    chosen = history.take(slice(number, number + 1)).columns
    ladders = ladders[[0, *renumbered(chosen)[1]]]
    alone = matches.take(slice(number, number + 1))
    state = before[np.unique(chosen.player)]
    result = loop.replay(by, alone.history, state, ladders, offsets, journal=True)
    check_range(by, alone.history, state, result, alone.player_names.__getitem__, lambda _: match_id)
    return Ratings(alone, by, result.state, result.expected, result.journal, result.ladders, result.offsets)
