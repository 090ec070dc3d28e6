"""The operations on a database of ladders, one method each."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Literal, Self

import numpy as np

from evenmatch.corrections import corrections, repair, verification
from evenmatch.corrections.effect import Effect, already_applied
from evenmatch.corrections.ladder_heads import LadderHead
from evenmatch.corrections.repair import RebuildResult
from evenmatch.corrections.replay import Progress
from evenmatch.corrections.verification import Verification
from evenmatch.errors import ConflictError, EvenmatchError, RowProblem, UsageError
from evenmatch.ladders import ladders, seasons
from evenmatch.ladders.ladders import ChangeRules, CorrectionRequest, Ladder, is_done
from evenmatch.ladders.seasons import Season, StandingRow
from evenmatch.ladders.settings import Settings, reset_factor
from evenmatch.ladders.standings import StandingsCache, View, divide, take
from evenmatch.ledger import ladder_rows as season_rows
from evenmatch.ledger import player_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store
from evenmatch.match import Match
from evenmatch.operations.clock import DatabaseClock
from evenmatch.operations.transactions import Transacting
from evenmatch.players import players
from evenmatch.recording import imports
from evenmatch.recording.insertion import InsertMatches
from evenmatch.recording.receipts import MatchReceipt
from evenmatch.recording.recorder import LARGEST, Outcome, Recorder
from evenmatch.recording.report_batch import ReportBatch
from evenmatch.standings.board import Standing
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable, from_matches
from evenmatch.times import iso_time

DATABASE = "evenmatch.db"


class Service(Transacting):
    """A database of ladders. Threads may share one instance; any number of processes may open the same database.

    Every method raises StoreError if the database fails. A call that did not return can be repeated.
    """

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        super().__init__(database, clock)
        self._boards = StandingsCache(database)
        self.match_limits = LARGEST
        self._replay_limit: int | None = None
        self.recorder = Recorder(database, self._boards, clock, lambda: self.match_limits)

    @classmethod
    def open(cls, url: str = DATABASE, clock: Callable[[], int] | None = None) -> Service:
        """Open the database at a path (SQLite) or URL (postgresql://…); create it if it does not exist.

        clock  returns microseconds since the epoch; None: the time of the database, see clock.DatabaseClock
        """
        database = Database.open(url)
        return cls(database, DatabaseClock(database.time) if clock is None else clock)

    def limited(self, replay_limit: int) -> Self:
        """A copy that raises ReplayTooLargeError instead of a replay with more events and states than this."""
        other = copy(self)
        other._replay_limit = replay_limit
        return other

    def close(self) -> None:
        """Wait for views that are being computed, then close the connections."""
        self._boards.close()
        super().close()

    # ladders

    def create_ladder(self, name: str, system: str, rules: Rules, settings: Settings | None = None) -> Ladder:
        """Create a ladder. `system` is where `rules` came from: a system's name, or the path of a .py file."""
        with self._writing() as store:
            ladders.create(store, name, ladders.lasting(system), rules, settings or Settings(), self.clock())
            self.note(store)
        return self.ladder(name)

    def ladders(self) -> list[Ladder]:
        """Every ladder, by name."""
        with self._reading() as store:
            return [ladders.describe(store, head) for head in store.heads()]

    def names(self) -> list[str]:
        """The names of all ladders."""
        with self._reading() as store:
            return [head.name for head in store.heads()]

    def ladder(self, name: str) -> Ladder:
        """The ladder with this name. Raises UnknownNameError."""
        with self._read(name) as (store, head):
            return ladders.describe(store, head)

    def change_settings(
        self, ladder: str, changes: Mapping[str, object], event_id: str | None = None, *, rebuild: bool = True
    ) -> Settings:
        """Change title, placement, divisions and other settings. Only `context` changes ratings.

        rebuild  False: leave the rebuild that other context columns need for later
        """
        with self._write(ladder) as (store, head):
            changed = ladders.change_settings(store, head, changes, event_id or _id("settings"), self.clock())
            self.note(store)
        self._boards.forget(ladder)
        if rebuild and "context" in changes:
            self.rebuild(ladder)
        return changed

    def change_rules(
        self,
        ladder: str,
        system: str,
        rules: Rules,
        *,
        start: bool = True,
        skip_bad: bool = False,
        progress: Progress | None = None,
        event_id: str | None = None,
    ) -> Effect:
        """Change the rating system or its parameters: from the first match, with a rebuild, or from now on.

        Raises BadRowsError with every match that the new system cannot rate; with `skip_bad` they stay unrated.
        """
        return self.correct(ladder, ChangeRules(system, rules, start, skip_bad), progress, event_id)

    # matches

    def record(self, match: Match, *, rated: bool = True) -> MatchReceipt:
        """Record a match on its ladder and rate it; the match is durable when this returns.

        Repeating the same id and content changes nothing and returns the first receipt. Raises ConflictError for the
        same id with other content, BadRowsError for a match that the system cannot rate.
        """
        (outcome,) = self.record_many(match.ladder, [match], rated=rated)
        if isinstance(outcome, EvenmatchError):
            raise outcome
        return outcome

    def record_many(self, ladder: str, matches: Sequence[Match], *, rated: bool = True) -> list[Outcome]:
        """Record several matches of one ladder in order. Return for each its receipt or the error that rejected it."""
        other = next((match for match in matches if match.ladder != ladder), None)
        if other is not None:
            raise UsageError(f"match {other.id!r} is on ladder {other.ladder!r}; expected matches of ladder {ladder!r}")
        return self.recorder.together.wait(ladder, ReportBatch.of(matches, [rated] * len(matches)))

    def import_matches(
        self,
        ladder: str,
        matches: MatchTable,
        *,
        rated: bool = True,
        skip_bad: bool = False,
        progress: Progress | None = None,
    ) -> imports.ImportResult:
        """Add past matches from a table; see recording.imports.import_matches."""
        target = (self.database, ladder, matches, self.clock, self.match_limits)
        imported = imports.import_matches(*target, rated=rated, skip_bad=skip_bad, progress=progress, note=self.note)
        self.divide(ladder)
        return imported

    def check_import(
        self, ladder: str, matches: MatchTable, *, rated: bool = True, skip_bad: bool = False
    ) -> MatchTable:
        """Return the matches that `import_matches` would add; see recording.imports.check."""
        target = (self.database, ladder, matches, self.clock, self.match_limits)
        return imports.check(*target, rated=rated, skip_bad=skip_bad)

    def late_matches(self, ladder: str, matches: MatchTable) -> imports.LateMatches:
        """Find the matches that would count as the newest of a ladder although they ended earlier."""
        return imports.late(self.database, ladder, matches)

    def insertion(
        self,
        ladder: str,
        matches: MatchTable | Sequence[Match],
        *,
        rated: bool = True,
        skip_bad: bool = False,
        reason: str | None = None,
    ) -> tuple[InsertMatches, Sequence[RowProblem]]:
        """The correction that inserts late matches into a ladder at the time they were played.

        The second result lists the problems of matches left out; for these and the errors see recording.imports.check.
        """
        matches = matches if isinstance(matches, MatchTable) else from_matches(matches)
        read = len(matches.skipped)
        target = (self.database, ladder, matches, self.clock, self.match_limits)
        matches = imports.check(*target, rated=rated, skip_bad=skip_bad)
        names = np.array(matches.player_names, object)
        return InsertMatches(imports.batch_of(matches, names, 0, len(matches), rated), reason), matches.skipped[read:]

    def forget(self, ladder: str) -> None:
        """Discard the cached standings of a ladder, after another process has changed its ratings."""
        self._boards.forget(ladder)

    # corrections

    def correct(
        self, ladder: str, request: CorrectionRequest, progress: Progress | None = None, event_id: str | None = None
    ) -> Effect:
        """Apply a correction: add it and the resulting ratings to the ledger; for `request` see corrections.

        event_id  chosen by the caller: repeating it changes nothing, repeating it with other content raises
                  ConflictError
        """
        effect = repair.correct_and_rebuild(
            *(self.database, ladder, self.clock, request, event_id or _id("correction"), progress, self.note),
            limit=self._replay_limit,
        )
        self._boards.forget(ladder)
        self.divide(ladder)
        return effect

    def preview(
        self, ladder: str, request: CorrectionRequest, progress: Progress | None = None, event_id: str | None = None
    ) -> Effect:
        """Compute what a correction would do, without changing anything."""
        with self._read(ladder) as (store, head):
            if event_id is not None and is_done(store, head, request, event_id):
                return already_applied(event_id, head.position)
            return corrections.preview(store, head, request(store, head), progress, self._replay_limit)

    def rebuild(self, ladder: str, *, whole: bool = False, progress: Progress | None = None) -> RebuildResult | None:
        """Rebuild a ladder's ratings from its ledger if a rebuild is due (None: it was not). whole: in any case."""
        rebuilt = repair.rebuild(
            self.database, ladder, self.clock, whole=whole, progress=progress, limit=self._replay_limit
        )
        if rebuilt is not None:
            self._boards.forget(ladder)
            self.divide(ladder)
        return rebuilt

    def verify(self, ladder: str, progress: Progress | None = None, kept: LadderHead | None = None) -> Verification:
        """Check a ladder's events and compare everything else with a replay, bit for bit; see verification.verify."""
        return verification.verify(self.database, ladder, progress, kept)

    # standings

    def view(self, ladder: str, *, fresh: bool = True, as_of: int | Literal["last"] | None = None) -> View:
        """The standings as of now, a time (microseconds) or the last match; see StandingsCache.view.

        Raises UsageError for a time before the last match: only the last match of each player is stored.
        """
        if as_of is None:
            return self._boards.view(ladder, self.clock(), fresh=fresh)
        with self._read(ladder) as (store, head):
            ended = self.clock() if head.time is None else head.time
            if as_of == "last":
                return take(store, ladder, ended)
            if head.time is not None and as_of < ended:
                raise UsageError(
                    f"as of {iso_time(as_of)}: the last match of ladder {ladder} ended at {iso_time(ended)}, and "
                    "earlier standings are not stored; expected that time, a later one, or last"
                )
            return take(store, ladder, as_of)

    def young_view(self, ladder: str) -> View | None:
        """The cached view if it is recent enough to show, else None; does not read the database."""
        return self._boards.young(ladder, self.clock())

    def shown_view(self, ladder: str) -> View:
        """A view for a page that updates itself when a newer view exists; see StandingsCache.shown."""
        return self._boards.shown(ladder, self.clock())

    def named(self, standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
        """Pair each standing with the player's name."""
        with self._reading() as store:
            names = player_rows.names_of(store, [standing.player for standing in standings])
        return [(names[standing.player], standing) for standing in standings]

    def divide(self, ladder: str) -> int:
        """Record the division of every player as of now. Return how many changed."""
        view, now = self.view(ladder), self.clock()
        with self._write(ladder) as (store, _):
            changed = divide(store, view, now)
        if changed is not None:
            self._boards.divided(view, now)
        return 0 if changed is None else changed

    def player(self, name: str) -> int:
        """The id of the player with this name. Raises UnknownNameError."""
        with self._reading() as store:
            return player_rows.find(store, name)

    def search(self, text: str, limit: int = 20) -> list[str]:
        """Player names that contain this text, ignoring case and diacritics."""
        with self._reading() as store:
            return [name for name, _ in player_rows.search(store, text, limit)]

    # seasons

    def open_season(
        self,
        ladder: str,
        *,
        title: str | None = None,
        reset: str | None = None,
        factor: float | None = None,
        event_id: str | None = None,
    ) -> Season:
        """Close the current season, store its standings, open the next; reset and factor default to the ladder's.

        event_id  chosen by the caller: repeating it returns the season that it opened instead of opening another
        Raises ConflictError if the ladder is archived.
        """
        season_id = event_id or _id("season")
        with self.settled(ladder) as (store, head):
            before = seasons.opened_before(store, head, title, reset, factor, season_id)
            if before is not None:
                return before
            settings = Settings.read(head.settings)
            settings.check_open(ladder)
            share, now = _reset_factor(settings, reset, factor), self.clock()
            season = seasons.open_season(store, head, take(store, ladder, now), title, share, season_id, now)
            self.note(store)
        self._boards.forget(ladder)
        return season

    def preview_season(
        self, ladder: str, *, title: str | None = None, reset: str | None = None, factor: float | None = None
    ) -> Effect:
        """Compute what `open_season` would do to every player, without changing anything."""
        with self._read(ladder) as (store, head):
            settings = Settings.read(head.settings)
            settings.check_open(ladder)
            share = _reset_factor(settings, reset, factor)
            return seasons.preview(store, head, title, share)

    @contextmanager
    def settled(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        """Lock a ladder for writing after bringing its ratings up to date with its ledger."""
        self.rebuild(ladder)
        with self._write(ladder, patient=True) as (store, head):
            if head.due is not None:
                raise ConflictError(f"ladder {ladder!r} is being corrected by another request; try again")
            yield store, head

    def seasons(self, ladder: str) -> list[Season]:
        """All seasons, oldest first."""
        with self._read(ladder) as (store, head):
            return season_rows.read_seasons(store, head.ladder)

    def finals(self, ladder: str, season: int, page: int = 1, size: int = 50) -> list[StandingRow]:
        """A page of the final standings of a season."""
        with self._read(ladder) as (store, head):
            return seasons.finals(store, head, season, page, size)

    # players

    def rename(self, name: str, to: str) -> bool:
        """Give a player another name; the old one stays an alias. False: it is already their name."""
        with self._writing() as store:
            renamed = players.rename(store, name, to, self.clock())
            if renamed:
                self.note(store)
            return renamed

    def foresee_merge(self, name: str, into: str) -> None:
        """Raise what `merge` would raise."""
        with self._reading() as store:
            players.foresee_merge(store, name, into, self.clock())

    def merge(self, name: str, into: str, *, rebuild: bool = True) -> list[str]:
        """Merge one player into another, rebuild their ladders unless the caller does, and return their names."""
        self.foresee_merge(name, into)
        with self._writing() as store:
            touched = players.merge(store, name, into, self.clock())
            self.note(store)
        for ladder in touched:
            self._boards.forget(ladder)
            if rebuild:
                self.rebuild(ladder)
        return touched

    def start_ratings(self, ladder: str, ratings: Mapping[str, float], event_id: str | None = None) -> int:
        """Give starting ratings to players who have not played here. Return how many; 0 if this was already applied."""
        with self.settled(ladder) as (store, head):
            count = players.start(store, head, dict(ratings), event_id or _id("start"), self.clock())
            if count:
                self.note(store)
        self._boards.forget(ladder)
        return count

    def erase(self, name: str) -> str:
        """Replace a player's names by a pseudonym, which is returned. No rating changes."""
        with self._writing() as store:
            pseudonym = players.erase(store, name, self.clock())
            self.note(store, pseudonym)
        for ladder in self.ladders():
            self._boards.forget(ladder.name)
        return pseudonym


def _reset_factor(settings: Settings, reset: str | None, factor: float | None) -> float:
    """The factor requested for a new season, or the ladder's own; see settings.reset_factor."""
    return reset_factor(settings.reset if reset is None else reset, settings.factor if factor is None else factor)


def _id(what: str) -> str:
    return f"{what}:{secrets.token_hex(8)}"
