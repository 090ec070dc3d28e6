"""Rate a table of recorded matches: rules by name, ratings, standings, journal, and the explanation of one match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch import systems
from evenmatch.compile_notice import load_kernels
from evenmatch.errors import BadRowsError, InputError, RatingRangeError, RowProblem, UsageError
from evenmatch.history import Floats, History, match_results
from evenmatch.standings.activity import Activity
from evenmatch.standings.distribution import percentiles
from evenmatch.standings.division import DIVISIONS, Division, division_of
from evenmatch.systems import loop
from evenmatch.systems.loop import Journal, Replay
from evenmatch.systems.system import Change, Records, Rules, System
from evenmatch.tables import Frame, MatchTable, table_of
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
    """The rating changes of one match (by index), team by team."""
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


def rules(system: str, preset: str | None = None, **parameters: object) -> Rules:
    """Create the rules of a rating system from its name (or the path of a .py file), a preset and parameters.

    Raises UnknownNameError or BadParameterError.
    """
    return Rules.of(systems.find(system), preset, **parameters)


def rules_of(by: Rules | str) -> Rules:
    """Return rules unchanged; turn a system name into its rules with default parameters."""
    if isinstance(by, Rules):
        return by
    if isinstance(by, str):
        return rules(by)
    raise UsageError(f"the rules are a {type(by).__name__}; expected a system's name or evenmatch.rules(…)")


Progress = Callable[[int], None]
TEXT = pa.large_string()


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """The result of rating matches.

    state     one record per player of the table; the field `rating` is the displayed rating
    expected  float64 (T,)  each team's expected score, predicted before its match was rated
    journal   the effect of every match on every player, if requested
    ladders   what the system learned about the ladders: a record of their pool, then one per ladder of the table
    """

    matches: MatchTable
    rules: Rules
    state: Records
    expected: Floats
    journal: Journal | None
    ladders: Records

    def __repr__(self) -> str:
        """Summary line: ratings of 4,960 players by elo, after 25,557 matches, …"""
        return f"ratings of {counted(len(self.state), 'player')} by {self.rules.system.name}, after {self.matches!r}"

    def _repr_html_(self) -> str:
        """Summary for notebooks, with the highest-rated players."""
        return as_html(repr(self), self.standings())

    def standings(
        self,
        *,
        as_of: int | None = None,
        placement: int = 10,
        active_days: float = 30,
        divisions: Sequence[Division] = DIVISIONS,
    ) -> pa.Table:
        """One row per ladder and player, sorted by ladder, then descending rating, then player.

        as_of        microseconds since the epoch, not before the last match; None: each ladder's last match
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
        return rated.standings(as_of=as_of, placement=placement, active_days=active_days, divisions=divisions)

    def journal_table(self) -> pa.Table:
        """One row per player and match: match_id, ladder, player, team, before, after, expected, then the factors."""
        table, history = self.matches, self.matches.history
        ladder = pa.array(table.ladders, TEXT).take(pa.array(table.ladder))
        player = table.player.take(pa.array(history.columns.player))
        names = SlotNames(table.match_id, ladder, player, table.team)
        return journal_rows(self.rules.system, history, self.expected, self._journal(), names)

    def changes(self, match: int) -> list[list[Change]]:
        """The rating changes of one match (by index), team by team; requires the journal."""
        return changes(
            self.rules, self.matches.history, self.expected, self._journal(), match, self.matches.player_names
        )

    def _journal(self) -> Journal:
        if self.journal is None:
            raise InputError("these ratings have no journal; call rate with journal=True")
        return self.journal


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
    """One row per player and match: match_id, ladder, player, team, before, after, expected, then the factors."""
    match, team = pa.array(history.slot_match), pa.array(history.slot_team)
    columns = {
        "match_id": names.match_id.cast(TEXT).take(match),
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
    by        rules, or the name of a system with its default parameters
    skip_bad  leave out bad rows of a data frame and matches the system cannot rate (listed in `.matches.skipped`)
    progress  called from time to time with the number of matches rated so far
    Raises BadRowsError with every match the system cannot rate, before anything is rated.
    """
    matches, by = table_of(matches, skip_bad=skip_bad), rules_of(by)
    matches = rateable(matches, by, skip_bad=skip_bad)
    load_kernels(by)
    state = by.newcomers(len(matches.player))
    result = loop.replay(by, matches.history, state, journal=journal, progress=progress)
    check_range(
        by, matches.history, state, result, matches.player_names.__getitem__, lambda m: matches.match_id[m].as_py()
    )
    return Ratings(matches, by, result.state, result.expected, result.journal, result.ladders)


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
    load_kernels(by)
    before, ladders = by.newcomers(len(matches.player)), by.ladders(matches.history.ladders)
    if number:
        earlier = loop.replay(by, matches.history.take(slice(0, number)), before, ladders)
        before, ladders = earlier.state, earlier.ladders
    ladders = ladders[[0, matches.history.columns.ladder[number]]]
    alone = matches.take(slice(number, number + 1))
    present = np.unique(matches.history.take(slice(number, number + 1)).columns.player)
    state = before[present]
    result = loop.replay(by, alone.history, state, ladders, journal=True)
    check_range(by, alone.history, state, result, alone.player_names.__getitem__, lambda _: match_id)
    return Ratings(alone, by, result.state, result.expected, result.journal, result.ladders)
