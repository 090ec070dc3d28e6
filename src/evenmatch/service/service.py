"""Everything that can be done with a database of ladders, each as one call."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from evenmatch.errors import ConflictError, EvenmatchError, UsageError
from evenmatch.ledger import people
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store
from evenmatch.match import Match
from evenmatch.service import corrections, importing, ladders, players, rebuilding, seasons, verifying
from evenmatch.service.boards import Boards, View, divide, take
from evenmatch.service.corrections import Preview
from evenmatch.service.importing import Imported
from evenmatch.service.ladders import ChangeRules, Ladder, Wish, Wishing, is_done
from evenmatch.service.rebuilding import Rebuilt
from evenmatch.service.receipts import Receipt
from evenmatch.service.recording import Outcome, Recorder
from evenmatch.service.replaying import Progress
from evenmatch.service.seasons import Final, Season
from evenmatch.service.settings import Settings, reset_factor
from evenmatch.service.sheet import Sheet
from evenmatch.service.times import iso_time
from evenmatch.service.transacting import Transacting
from evenmatch.service.verifying import Verified
from evenmatch.standings.board import Standing
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

DATABASE = "evenmatch.db"


def microseconds() -> int:
    """Now, since the Unix epoch."""
    return time.time_ns() // 1000


class Service(Transacting):
    """A database of ladders. Any number of threads may share one; any number of processes may open the same database.

    Raises StoreError wherever the database fails: what was not acknowledged can be sent again.
    """

    def __init__(self, database: Database, clock: Callable[[], int] = microseconds) -> None:
        super().__init__(database, clock)
        self._boards = Boards(database)
        self._recorder = Recorder(database, self._boards, clock)

    @classmethod
    def open(cls, url: str = DATABASE, clock: Callable[[], int] = microseconds) -> Service:
        """The database at a path (SQLite) or URL (postgresql://…), made where it is not there.

        clock  microseconds since the epoch; tests set their own
        """
        return cls(Database.open(url), clock)

    def close(self) -> None:
        """Close its connections, once nothing goes on in them."""
        self._boards.close()
        super().close()

    # ladders

    def create_ladder(self, name: str, system: str, rules: Rules, settings: Settings | None = None) -> Ladder:
        """Make a ladder. `system` is what `rules` were made from: a name, or the path of a .py file."""
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
        """A ladder. Raises UnknownNameError where there is none of that name."""
        with self._read(name) as (store, head):
            return ladders.describe(store, head)

    def change_settings(self, ladder: str, changes: Mapping[str, object], event_id: str | None = None) -> Settings:
        """Change title, placement, divisions and the like; ratings stay."""
        with self._write(ladder) as (store, head):
            changed = ladders.change_settings(store, head, changes, event_id or _id("settings"), self.clock())
            self.note(store)
        self._boards.forget(ladder)
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
    ) -> Rebuilt | None:
        """Rate by another system or other parameters: from the start, with a rebuild, or from now on.

        Raises BadRowsError with every match that the new system cannot rate; `skip_bad` leaves those unrated.
        """
        return self._correct(ladder, ChangeRules(system, rules, start, skip_bad), progress, event_id)[1]

    # matches

    def record(self, match: Match, *, rated: bool = True) -> Receipt:
        """Record a match on its ladder and rate it; durable when this returns.

        The same id and content again changes nothing and returns the first receipt. Raises ConflictError for the same
        id with other content, BadRowsError for a match that the system cannot rate.
        """
        (outcome,) = self.record_many(match.ladder, [match], rated=rated)
        if isinstance(outcome, EvenmatchError):
            raise outcome
        return outcome

    def record_many(self, ladder: str, matches: Sequence[Match], *, rated: bool = True) -> list[Outcome]:
        """The same for several of one ladder, in order: of each its receipt, or the error why it was refused."""
        other = next((match for match in matches if match.ladder != ladder), None)
        if other is not None:
            raise UsageError(f"match {other.id!r} is of ladder {other.ladder!r}; accepted are those of {ladder!r}")
        return self.record_sheet(ladder, Sheet.of(matches, [rated] * len(matches)))

    def record_sheet(self, ladder: str, sheet: Sheet) -> list[Outcome]:
        """The same for matches of which each says whether it is rated; all must be of this ladder."""
        return self._recorder.record(ladder, sheet)

    def import_matches(
        self,
        ladder: str,
        matches: MatchTable,
        *,
        rated: bool = True,
        skip_bad: bool = False,
        progress: Progress | None = None,
    ) -> Imported:
        """Add recorded matches; see importing.import_matches."""
        done = importing.import_matches(
            self.database, ladder, matches, self.clock, rated=rated, skip_bad=skip_bad, progress=progress
        )
        self.divide(ladder)
        return done

    # corrections

    def correct(
        self, ladder: str, wish: Wishing, progress: Progress | None = None, event_id: str | None = None
    ) -> Wish | None:
        """Add a correction to the ledger with the ratings that follow from it; for `wish` see corrections.

        event_id  chosen by the caller: the same again changes nothing (the result is None), the same with other content
                  raises ConflictError
        """
        return self._correct(ladder, wish, progress, event_id)[0]

    def _correct(
        self, ladder: str, wish: Wishing, progress: Progress | None, event_id: str | None
    ) -> tuple[Wish | None, Rebuilt | None]:
        named = event_id or _id("correction")
        done = rebuilding.correct_and_rebuild(self.database, ladder, self.clock, wish, named, progress, self.note)
        self._boards.forget(ladder)
        self.divide(ladder)
        return done

    def preview(
        self, ladder: str, wish: Wishing, progress: Progress | None = None, event_id: str | None = None
    ) -> Preview:
        """What a correction would do; nothing is changed."""
        with self._read(ladder) as (store, head):
            if event_id is not None and is_done(store, head, wish, event_id):
                return Preview(f"{event_id!r} was done already", [], 0, 0, 0, done=True)
            return corrections.preview(store, head, wish(store, head), progress)

    def rebuild(self, ladder: str, *, whole: bool = False, progress: Progress | None = None) -> Rebuilt | None:
        """Bring a ladder's ratings up to its ledger, where that is due; None: it was not. whole: from nothing."""
        made = rebuilding.rebuild(self.database, ladder, self.clock, whole=whole, progress=progress)
        if made is not None:
            self._boards.forget(ladder)
            self.divide(ladder)
        return made

    def verify(self, ladder: str, progress: Progress | None = None) -> Verified:
        """Compare a ladder's ratings and journal with a replay from nothing, bit for bit."""
        return verifying.verify(self.database, ladder, progress)

    # standings

    def view(self, ladder: str, *, fresh: bool = True, as_of: int | Literal["last"] | None = None) -> View:
        """Who stands where as of now, as of a time (microseconds) or as of the last match; see boards.Boards.view.

        Raises UsageError for a time before the last match: of each player the last match alone is kept.
        """
        if as_of is None:
            return self._boards.view(ladder, self.clock(), fresh=fresh)
        with self._read(ladder) as (store, head):
            ended = self.clock() if head.time is None else head.time
            if as_of == "last":
                return take(store, ladder, ended)
            if head.time is not None and as_of < ended:
                raise UsageError(
                    f"as of {iso_time(as_of)}: the last match of ladder {ladder} ended at {iso_time(ended)}, and who "
                    "was active before is not kept; accepted is that time or a later one, or last"
                )
            return take(store, ladder, as_of)

    def young_view(self, ladder: str) -> View | None:
        """The view that is kept, if it is young enough to be shown; the database is not asked."""
        return self._boards.young(ladder, self.clock())

    def shown_view(self, ladder: str) -> View:
        """A view for who watches a page, which is told when there is a newer one; see boards.Boards.shown."""
        return self._boards.shown(ladder, self.clock())

    def named(self, standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
        """The same with the players' names."""
        with self._reading() as store:
            names = people.names_of(store, [one.player for one in standings])
        return [(names[one.player], one) for one in standings]

    def divide(self, ladder: str) -> int:
        """Record everybody's division as of now; how many changed."""
        view, now = self.view(ladder), self.clock()
        with self._write(ladder) as (store, _):
            changed = divide(store, view, now)
        if changed is None:
            return 0
        self._boards.divided(view, now)
        return changed

    def player(self, name: str) -> int:
        """A player's id. Raises UnknownNameError."""
        with self._reading() as store:
            return people.find(store, name)

    def search(self, text: str, limit: int = 20) -> list[str]:
        """Names of players that hold this text."""
        with self._reading() as store:
            return [name for name, _ in people.search(store, text, limit)]

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
        """End the present season, keep its standings, begin the next; reset and factor are the ladder's by default.

        event_id  chosen by the caller: the same again opens no other season, and gives the one it opened
        Raises ConflictError where the ladder is archived.
        """
        named = event_id or _id("season")
        with self._settled(ladder) as (store, head):
            settings = Settings.read(head.settings)
            settings.check_open(ladder)
            left = _left(settings, reset, factor)
            now = self.clock()
            made = seasons.open_season(store, head, take(store, ladder, now), title, left, named, now)
            self.note(store)
        self._boards.forget(ladder)
        return made

    def preview_season(
        self, ladder: str, *, title: str | None = None, reset: str | None = None, factor: float | None = None
    ) -> Preview:
        """What `open_season` would do to everybody; nothing is changed."""
        with self._read(ladder) as (store, head):
            number = seasons.seasons(store, head)[-1].number + 1
            settings = Settings.read(head.settings)
            settings.check_open(ladder)
            left = _left(settings, reset, factor)
            return seasons.preview(store, head, title or f"Season {number}", left)

    @contextmanager
    def _settled(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        """A ladder to write to, whose ratings are as its ledger says."""
        self.rebuild(ladder)
        with self._write(ladder) as (store, head):
            if head.due is not None:
                raise ConflictError(f"ladder {ladder!r} was corrected at this moment; try again")
            yield store, head

    def seasons(self, ladder: str) -> list[Season]:
        """All seasons, the first one first."""
        with self._read(ladder) as (store, head):
            return seasons.seasons(store, head)

    def finals(self, ladder: str, season: int, page: int = 1, size: int = 50) -> list[Final]:
        """A page of the standings with which a season ended."""
        with self._read(ladder) as (store, head):
            return seasons.finals(store, head, season, page, size)

    # players

    def rename(self, name: str, to: str) -> bool:
        """Give a player another name; what comes under the old one still reaches them. False: it is theirs already."""
        with self._writing() as store:
            renamed = players.rename(store, name, to, self.clock())
            if renamed:
                self.note(store)
            return renamed

    def merge(self, name: str, into: str) -> list[str]:
        """Make one player of two and rebuild their ladders, whose names are returned."""
        with self._reading() as store:
            players.foresee_merge(store, name, into)
        with self._writing() as store:
            touched = players.merge(store, name, into, self.clock())
            self.note(store)
        for ladder in touched:
            self._boards.forget(ladder)
            self.rebuild(ladder)
        return touched

    def start_ratings(self, ladder: str, ratings: Mapping[str, float], event_id: str | None = None) -> int:
        """Begin players who have not played here at ratings from elsewhere; how many, 0 where that was done already."""
        with self._settled(ladder) as (store, head):
            count = players.start(store, head, dict(ratings), event_id or _id("start"), self.clock())
            if count:
                self.note(store)
        self._boards.forget(ladder)
        return count

    def erase(self, name: str) -> str:
        """Replace a player by a pseudonym, which is returned; nobody's rating changes."""
        with self._writing() as store:
            pseudonym = players.erase(store, name, self.clock())
            self.note(store, pseudonym)
        for ladder in self.ladders():
            self._boards.forget(ladder.name)
        return pseudonym


def _left(settings: Settings, reset: str | None, factor: float | None) -> float:
    """What a season leaves of everybody's distance from the mean, as asked for or as the ladder has it."""
    return reset_factor(settings.reset if reset is None else reset, settings.factor if factor is None else factor)


def _id(what: str) -> str:
    return f"{what}:{secrets.token_hex(8)}"
