"""Make a ladder's ratings anew from its ledger, beside those that are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.errors import InputError
from evenmatch.ledger import schema
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Correction, Kind
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.replay import engine_of
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.service.ladders import Wish, Wishing, correct, is_done
from evenmatch.service.replaying import Progress, Step, Tally, appearance_sums, begin, replay, systems_of, unchanged

AT_ONCE = 20_000  # rows in one transaction, so that others may write in between
FEW = 2000  # events that a swap catches up with, where they do not come faster than they are rated
ROUNDS = 10
APART = 200_000  # events between two checkpoints of a replay, at least


class Rebuilt(NamedTuple):
    """What a rebuild did: the new generation, from which position on, and how many matches have other lines now."""

    generation: int
    since: int
    matches: int
    changed: int


def is_due(head: Head, plan: Plan) -> bool:
    """Whether ratings are not what the ledger and the kernels of this version say."""
    return head.due is not None or head.engine != engine_of(plan.last_rules.system)


def rebuild(
    database: Database, ladder: str, clock: Callable[[], int], *, whole: bool = False, progress: Progress | None = None
) -> Rebuilt | None:
    """Write a new generation of a ladder's ratings and swap it in; None where none is due.

    whole  from the first event on, due or not. Reads and writes go on meanwhile; matches that come are caught up with.
    """
    while True:
        with database.write() as connection:
            store = Store(connection, database.rows)
            head = store.lock(ladder)
            plan = store.plan(head, head.corrected)
            if not whole and not is_due(head, plan):
                return None
            build = _open(database, store, head, plan, 1 if whole else None, clock())
        if build.finish(progress, clock):
            if whole:
                mend_appearances(database, ladder)
            return build.told()


def mend_appearances(database: Database, ladder: str) -> None:
    """List anew who appeared where, if the list is not that of the matches."""
    with database.write() as connection:
        store = Store(connection, database.rows)
        head = store.lock(ladder)
        sums = np.zeros(3, np.int64)
        for block, _ in store.blocks(head, 0, head.position):
            sums += appearance_sums(block)
        if store.appearances(head) == tuple(sums.tolist()):
            return
        store.run("DELETE FROM appearance WHERE ladder = ?", head.ladder)
        for block, _ in store.blocks(head, 0, head.position):
            sizes = np.diff(block.columns.slot_start[block.columns.team_start])
            store.add_appearances(head.ladder, block.ids, np.repeat(block.positions, sizes))


def correct_and_rebuild(
    database: Database,
    ladder: str,
    clock: Callable[[], int],
    wish: Wishing,
    event_id: str,
    progress: Progress | None = None,
    note: Callable[[Store], None] = lambda _: None,
) -> tuple[Wish | None, Rebuilt | None]:
    """Add a correction to the ledger together with the ratings that follow from it: both at once, or neither.

    note  called in the transaction that does it
    The first result is None where it was there already under this id, the second where no rating that there is changes.
    Raises what `wish` raises, BadRowsError where it leaves matches without a rating against its will, and InputError
    where a rating would leave what the system can hold.
    """
    while True:
        with database.write() as connection:
            store = Store(connection, database.rows)
            head = store.lock(ladder)
            if is_done(store, head, wish, event_id):
                return None, None
            wanted = wish(store, head)
            if wanted.since is None:
                correct(store, head, wanted.kind, wanted.body, event_id, clock(), since=None)
                note(store)
                return wanted, None
            corrections = store.corrections(head, head.corrected)
            plan = plan_of([*corrections, Correction(head.position + 1, wanted.kind, wanted.body)])
            build = _open(database, store, head, plan, wanted.since, clock(), Pending(wish, wanted, event_id, note))
        if build.finish(progress, clock):
            return wanted, build.told()


class Pending(NamedTuple):
    """A correction that enters the ledger with its ratings: the wish, what it came to, the event's id, its note."""

    wish: Wishing
    wanted: Wish
    event_id: str
    note: Callable[[Store], None]


def _open(
    database: Database,
    store: Store,
    head: Head,
    plan: Plan,
    since: int | None,
    now: int,
    pending: Pending | None = None,
) -> Build:
    """A generation to be written, numbered after all that there were.

    since  where a wished correction changes ratings, beside whatever is due
    """
    system = plan.last_rules.system
    wanted = [at for at in (since, head.due) if at is not None]
    if head.engine != engine_of(system) or not wanted:
        wanted.append(1)
    last: int = store.all("SELECT MAX(generation) FROM generation WHERE ladder = ?", head.ladder)[0][0]
    store.add_generation(
        head.ladder, last + 1, system.name, engine_of(system), planned=head.corrected, ready=False, now=now
    )
    return Build(database, head, plan, min(wanted), last + 1, pending)


@dataclass
class Build:
    """A generation while it is written: from `head`, by `plan`, other than the live one from `since` on."""

    database: Database
    head: Head
    plan: Plan
    since: int
    generation: int
    pending: Pending | None = None
    changed: int = 0

    def __post_init__(self) -> None:
        wanted = None if self.pending is None else self.pending.wanted
        self.tally = Tally(self.head.name, self.plan, wanted, self.since)

    def finish(self, progress: Progress | None, clock: Callable[[], int]) -> bool:
        """Write it and let readers see it, with the correction that it is for; False where it came too late."""
        try:
            self.write(progress)
            if self.swap(clock):
                self.tidy()
                return True
        except InputError:  # a rating that the system cannot hold, a match that it cannot rate
            self.discard()
            raise
        self.discard()
        return False

    def told(self) -> Rebuilt:
        """What it did."""
        return Rebuilt(self.generation, self.since, self.tally.rated, self.changed)

    def write(self, progress: Progress | None) -> None:
        """All of it, up to a head that is nearly the present one; some rows at a time."""
        with self.database.read() as connection:
            store = Store(connection, self.database.rows)
            self._systems = systems_of(store, self.head)
            self.roster = begin(store, self.head, self.plan, self.since)
            self._kept = self.roster.position
            self._write_to(store, self.head, progress)
        self.tally.check()
        for _ in range(ROUNDS):  # what is left for the swap, which others wait for, is to be little
            with self.database.read() as connection:
                store = Store(connection, self.database.rows)
                now = store.head(self.head.name)
                if now.position - self.roster.position < FEW:
                    break
                self._write_to(store, now, progress)
        self._copy_before()
        for part in _parts(self.roster):
            with self.database.write() as connection:
                store = Store(connection, self.database.rows)
                store.keep_states(self.head.ladder, self.generation, part, new=True)

    def _write_to(self, store: Store, head: Head, progress: Progress | None) -> None:
        """Lines and checkpoints, from where the roster is up to a head."""
        for step in replay(store, head, self.plan, self.roster, progress):
            self.tally.add(step)
            self._put_lines(step)
            if self.roster.position - self._kept >= max(APART, 4 * len(self.roster)):
                self._kept = self.roster.position
                with self.database.write() as writing:
                    Store(writing, self.database.rows).checkpoint(self.head.ladder, self.generation, self.roster)

    def _put_lines(self, step: Step) -> None:
        """The lines of a step that are not what was told."""
        now = step.rated.told()
        same = unchanged(step, now, self._systems, self.plan)
        at = step.block.positions
        which = np.flatnonzero(~same & (at >= self.since)).tolist()
        self.changed += len(which)
        rows = [(self.head.ladder, self.generation, int(at[one]), now[one]) for one in which]
        for first in range(0, len(rows), AT_ONCE):
            with self.database.write() as connection:
                columns = ("ladder", "generation", "position", "lines")
                self.database.rows.insert(connection, schema.journal, columns, rows[first : first + AT_ONCE])

    def _copy_before(self) -> None:
        """What the live generation has before the first change."""
        for first in range(1, self.since, AT_ONCE):
            last = min(first + AT_ONCE, self.since) - 1
            for table, columns in (("journal", "position, lines"), ("checkpoint", "position, time, states")):
                with self.database.write() as connection:
                    Store(connection, self.database.rows).run(
                        f"INSERT INTO {table} (ladder, generation, {columns}) SELECT ladder, ?, {columns} FROM {table} "
                        "WHERE ladder = ? AND generation = ? AND position BETWEEN ? AND ?",
                        *(self.generation, self.head.ladder, self.head.generation, first, last),
                    )

    def swap(self, clock: Callable[[], int]) -> bool:
        """Catch up with what came meanwhile and let readers see the new generation; False where it is too late."""
        with self.database.write() as connection:
            store = Store(connection, self.database.rows)
            now = store.lock(self.head.name)
            if not self._is_wanted(store, now):
                return False
            self.catch_up(store, now)
            store.run(
                "UPDATE generation SET time = ?, planned = ?, ready = 1 WHERE ladder = ? AND generation = ?",
                *(self.roster.time, now.corrected, now.ladder, self.generation),
            )
            store.run("UPDATE ladder SET generation = ?, due = NULL WHERE ladder = ?", self.generation, now.ladder)
            if self.pending is not None:
                wanted = self.pending.wanted
                head = store.head(self.head.name)
                correct(store, head, wanted.kind, wanted.body, self.pending.event_id, clock(), since=None)
                self.pending.note(store)
        return True

    def _is_wanted(self, store: Store, now: Head) -> bool:
        """Whether nothing has come since that this generation does not account for."""
        mine = store.all(
            "SELECT 1 FROM generation WHERE ladder = ? AND generation = ?", self.head.ladder, self.generation
        )
        if now.generation != self.head.generation or not mine:
            return False
        since = [one for one in store.corrections(now, now.corrected) if one.position > self.head.corrected]
        if not all(_is_harmless(one) for one in since):
            return False
        return self.pending is None or self.pending.wish(store, now) == self.pending.wanted

    def catch_up(self, store: Store, now: Head) -> None:
        """Rate the matches that were recorded since, inside the swapping transaction."""
        touched = [np.empty(0, np.int64)]
        for step in replay(store, now, self.plan, self.roster):
            self.tally.add(step)
            lines = step.rated.told()
            same = unchanged(step, lines, self._systems, self.plan)
            rows = [
                (now.ladder, self.generation, int(step.block.positions[one]), lines[one])
                for one in np.flatnonzero(~same).tolist()
            ]
            store.rows.insert(store.connection, schema.journal, ("ladder", "generation", "position", "lines"), rows)
            touched.append(step.block.ids)
        self.tally.check()
        ids = np.unique(self.plan.identity(np.concatenate(touched)))
        store.keep_states(now.ladder, self.generation, self.roster.part(ids))

    def discard(self) -> None:
        """Delete this generation, which nobody ever read."""
        _delete(self.database, self.head.ladder, "= ?", self.generation)

    def tidy(self) -> None:
        """Delete what follows from events under all generations before this one, and those that never became ready."""
        _delete(self.database, self.head.ladder, "< ?", self.generation)


def _delete(database: Database, ladder: int, which: str, generation: int) -> None:
    """Delete what follows from events under some generations, some rows at a time."""
    for table, key in (("journal", "position"), ("state", "player"), ("checkpoint", "position")):
        while True:
            with database.write() as connection:
                store = Store(connection, database.rows)
                end: int | None = store.all(
                    f"SELECT MAX({key}), COUNT(*) FROM (SELECT {key} FROM {table} WHERE ladder = ? "
                    f"AND generation {which} ORDER BY generation, {key} LIMIT ?) AS part",
                    *(ladder, generation, AT_ONCE),
                )[0][0]
                if end is None:
                    break
                store.run(
                    f"DELETE FROM {table} WHERE ladder = ? AND generation {which} AND {key} <= ?",
                    *(ladder, generation, end),
                )

    with database.write() as connection:
        Store(connection, database.rows).run(
            f"DELETE FROM generation WHERE ladder = ? AND ready = 0 AND generation {which}", ladder, generation
        )


def _is_harmless(correction: Correction) -> bool:
    """Whether ratings are the same with and without it."""
    presentation = correction.kind == Kind.CHANGED and correction.body.get("system") is None
    return presentation or correction.kind in (Kind.RENAMED, Kind.ERASED)


def _parts(roster: Roster) -> Iterator[Roster]:
    for first in range(0, len(roster), AT_ONCE):
        yield roster.part(roster.ids[first : first + AT_ONCE])
