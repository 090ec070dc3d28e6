"""Rate a table of recorded matches: ratings, standings, the journal, and the story of one match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch import systems
from evenmatch.compile_notice import load_kernels
from evenmatch.errors import BadRowsError, InputError, Problem, RatingRangeError, UsageError
from evenmatch.history import Floats, History
from evenmatch.standings.activity import Activity
from evenmatch.standings.division import DIVISIONS, Division, division_of
from evenmatch.standings.percentile import percentiles
from evenmatch.systems import loop
from evenmatch.systems.loop import Journal, Replay
from evenmatch.systems.system import Change, Records, Rules
from evenmatch.tables import Frame, MatchTable, table_of
from evenmatch.tables.display import as_html, counted
from evenmatch.tables.table import MICROSECONDS

Progress = Callable[[int], None]
TEXT = pa.large_string()


def rules(system: str, preset: str | None = None, **parameters: object) -> Rules:
    """What to rate by: a system by name (or a path to a .py file that defines one), a preset, parameters by name.

    Raises UnknownNameError or BadParameterError, which say what is accepted.
    """
    return Rules.of(systems.find(system), preset, **parameters)


def rules_of(by: Rules | str) -> Rules:
    """Rules as they are; those of a system by its name, with its default parameters."""
    if isinstance(by, Rules):
        return by
    if isinstance(by, str):
        return rules(by)
    raise UsageError(f"what to rate by is a {type(by).__name__}; accepted is a system's name or evenmatch.rules(…)")


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """What came of rating matches.

    state     a record per player of the table, `rating` is the shown number
    expected  float64 (T,)  each team's expected score, said before its match was learned from
    journal   what every match did to everybody, where asked for
    """

    matches: MatchTable
    rules: Rules
    state: Records
    expected: Floats
    journal: Journal | None

    def __repr__(self) -> str:
        """ratings of 4,960 players by elo, after 25,557 matches, …"""
        return f"ratings of {counted(len(self.state), 'player')} by {self.rules.system.name}, after {self.matches!r}"

    def _repr_html_(self) -> str:
        """The same for a notebook, with the players of the highest rating."""
        return as_html(repr(self), self.standings())

    def standings(
        self,
        *,
        as_of: int | None = None,
        placement: int = 10,
        active_days: float = 30,
        divisions: Sequence[Division] = DIVISIONS,
    ) -> pa.Table:
        """One row per ladder and player, sorted by ladder, then rating downwards, then player.

        as_of        microseconds since the epoch, not before the last match; None: each ladder's last match
        placement    matches to complete before the percentile and the division are shown
        active_days  a player counts in the percentiles who completed a match in so many days before `as_of`
        Columns: ladder, player, rating, matches, last_played, percentile (null unless placed and active), placed,
        division, then the system's own.
        """
        table, activity = self.matches, Activity.of(self.matches.history)
        if as_of is not None and len(table) and as_of < table.history.columns.time[-1]:
            raise InputError("as_of is before the last match that was rated; rate only the matches until then")
        rating = self.state["rating"]
        last = np.array(
            [table.history.columns.time[table.ladder == at].max(initial=0) for at in range(len(table.ladders))]
        )
        now = last[table.player_ladder] if as_of is None else np.full(len(rating), as_of)
        active, placed = activity.active(now, active_days), activity.placed(placement)
        percentile = np.ones(len(rating), np.int64)
        for at in range(len(table.ladders)):
            here = table.player_ladder == at
            percentile[here] = percentiles(rating[here], active[here])
        hidden = ~(active & placed)
        order = self._order()
        division = np.array([d.name for d in divisions], object)[division_of(percentile, divisions)]
        columns = {
            "ladder": pa.array(table.ladders, TEXT).take(pa.array(table.player_ladder)),
            "player": table.player.cast(TEXT),
            "rating": pa.array(rating),
            "matches": pa.array(activity.matches),
            "last_played": pa.array(activity.last_played).cast(MICROSECONDS),
            "percentile": pa.array(percentile, mask=hidden),
            "placed": pa.array(placed),
            "division": pa.array(division, TEXT, mask=hidden),
            **{name: pa.array(column) for name, column in self.rules.system.columns(self.state).items()},
        }
        return pa.table(columns).take(pa.array(order))

    def journal_table(self) -> pa.Table:
        """One row per player and match: match_id, ladder, player, team, before, after, expected, then the factors."""
        journal = self._journal()
        table, history = self.matches, self.matches.history
        match, team = pa.array(history.slot_match), pa.array(history.slot_team)
        columns = {
            "match_id": table.match_id.cast(TEXT).take(match),
            "ladder": pa.array(table.ladders, TEXT).take(pa.array(table.ladder)).take(match),
            "player": table.player.take(pa.array(history.columns.player)),
            "team": table.team.take(team).cast(TEXT),
            "before": pa.array(journal.before),
            "after": pa.array(journal.after),
            "expected": pa.array(self.expected).take(team),
        }
        for factor in self.rules.system.factors:
            values = journal.factors[factor.name]
            words = pa.array(factor.labels, TEXT)
            columns[factor.name] = words.take(pa.array(values)) if factor.labels else pa.array(values, from_pandas=True)
        return pa.table(columns)

    def changes(self, match: int) -> list[list[Change]]:
        """What a match (by number) did to each player, team by team; needs the journal."""
        return changes(
            self.rules, self.matches.history, self.expected, self._journal(), match, self.matches.player_names
        )

    def _journal(self) -> Journal:
        if self.journal is None:
            raise InputError("these ratings were made without a journal; rate with journal=True")
        return self.journal

    def _order(self) -> NDArray[np.intp]:
        table = self.matches
        by_name = np.empty(len(table.player), np.int64)
        by_name[pc.sort_indices(table.player).to_numpy()] = np.arange(len(table.player))
        ladders = sorted(range(len(table.ladders)), key=lambda at: table.ladders[at])
        rank = np.empty(len(ladders), np.int64)
        rank[ladders] = np.arange(len(ladders))
        return np.lexsort((by_name, -self.state["rating"], rank[table.player_ladder]))


def rate(
    matches: MatchTable | Frame,
    by: Rules | str,
    *,
    journal: bool = False,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Ratings:
    """Rate every match in order, from newcomers on.

    matches   a table, or a data frame in the tidy long form
    by        rules, or the name of a system with its default parameters
    skip_bad  leave out bad rows of a data frame and matches that the system cannot rate (`.matches.skipped` lists them)
    progress  called now and then with the number of matches rated so far
    Raises BadRowsError with every match that the system cannot rate, before anything is rated.
    """
    matches, by = table_of(matches, skip_bad=skip_bad), rules_of(by)
    matches = rateable(matches, by, skip_bad=skip_bad)
    load_kernels(by)
    state = by.newcomers(len(matches.player))
    result = loop.replay(by, matches.history, state, journal=journal, progress=progress)
    check_range(
        by, matches.history, state, result, matches.player_names.__getitem__, lambda m: matches.match_id[m].as_py()
    )
    return Ratings(matches, by, result.state, result.expected, result.journal)


def rateable(matches: MatchTable, by: Rules, *, skip_bad: bool = False) -> MatchTable:
    """The same matches, or without those that the system cannot rate. Raises BadRowsError as `rate` does."""
    problems = matches.problems(by.system.refusals(matches.history.columns, by.parameters))
    if not problems:
        return matches
    refused = {problem.match_id for problem in problems}
    if not skip_bad or len(refused) == len(matches):
        raise BadRowsError(matches.source.name, problems, all_bad=len(refused) == len(matches))
    good = np.array([match_id not in refused for match_id in matches.match_id.to_pylist()])
    skipped: tuple[Problem, ...] = (*matches.skipped, *problems)
    return replace(matches.take(good), skipped=skipped, skipped_matches=matches.skipped_matches + len(refused))


def check_range(
    by: Rules,
    history: History,
    state: Records,
    result: Replay,
    player: Callable[[int], str],
    match: Callable[[int], str],
) -> None:
    """Raise RatingRangeError, with player and match, where a rating has left the range of the system's numbers."""
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
    """The changes of one match (by number), team by team."""
    c = history.columns
    first, end = c.team_start[match : match + 2].tolist()
    starts = c.slot_start[first : end + 1].tolist()
    here = slice(starts[0], starts[-1])
    before, after = journal.before[here].tolist(), journal.after[here].tolist()
    players, factors = c.player[here].tolist(), by.system.name_factors(journal.factors[here].tolist())
    places, foretold = c.place[first:end].tolist(), expected[first:end].tolist()
    listed: list[list[Change]] = []
    at = 0
    for team, place in enumerate(places):
        result = sum((other > place) + 0.5 * (other == place) for other in places) - 0.5
        result /= end - first - 1
        size = starts[team + 1] - starts[team]
        listed.append([])
        for slot in range(at, at + size):
            change = Change(
                names[players[slot]], team, before[slot], after[slot], foretold[team], result, factors[slot]
            )
            listed[team].append(change)
        at += size
    return listed


def explain(matches: MatchTable | Frame, by: Rules | str, match_id: str) -> Ratings:
    """The ratings of one match alone, with its journal, after all matches before it were rated.

    matches, by  as `rate` takes them
    Raises UnknownNameError where there is no such match, BadRowsError where the system cannot rate one of the matches.
    """
    matches, by = table_of(matches), rules_of(by)
    matches = rateable(matches, by)
    number = matches.find(match_id)
    load_kernels(by)
    before = by.newcomers(len(matches.player))
    if number:
        before = loop.replay(by, matches.history.take(slice(0, number)), before).state
    alone = matches.take(slice(number, number + 1))
    present = np.unique(matches.history.take(slice(number, number + 1)).columns.player)
    state = before[present]
    result = loop.replay(by, alone.history, state, journal=True)
    check_range(by, alone.history, state, result, alone.player_names.__getitem__, lambda _: match_id)
    return Ratings(alone, by, result.state, result.expected, result.journal)
