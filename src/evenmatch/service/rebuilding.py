"""Make a ladder's ratings anew from its ledger, beside those that are read; and compare them, bit for bit."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError, StoreError
from evenmatch.history import Flags
from evenmatch.ledger import people, schema
from evenmatch.ledger.codec import line_type, same_bits, same_ratings
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Correction
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.replay import Block, Rated, advance, engine_of, finish
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.service.ladders import Wish, correct

Progress = Callable[[int], None]
AT_ONCE = 20_000  # rows in one transaction, so that others may write in between
APART = 200_000  # events between two checkpoints of a replay, at least


class Step(NamedTuple):
    """A stretch of a replay: its matches, (id, generation, told) of each, and how they are rated now."""

    block: Block
    rows: list[Row]
    rated: Rated


class Rebuilt(NamedTuple):
    """What a rebuild did: the new generation, from which position on, and how many matches have other lines now."""

    generation: int
    since: int
    matches: int
    changed: int


def replay(store: Store, head: Head, plan: Plan, roster: Roster, progress: Progress | None = None) -> Iterator[Step]:
    """Rate everything after the roster's position, up to the head, into the roster."""
    for block, rows in store.blocks(head, roster.position, head.position):
        ids = dict(zip(block.positions.tolist(), [row[0] for row in rows], strict=True))
        rated = advance(roster, plan, block, lambda one: _name(store, one), ids.__getitem__)
        yield Step(block, rows, rated)
        if progress:
            progress(roster.position)
    finish(roster, plan, head.position)


def _name(store: Store, player: int) -> str:
    return people.names_of(store, [player]).get(player, f"#{player}")


def begin(store: Store, head: Head, plan: Plan, since: int) -> Roster:
    """The roster that a replay of the events from `since` on starts from: the latest checkpoint before, or nobody."""
    kept = store.last_checkpoint(head, since)
    if kept is None:
        return Roster.empty(plan.rules_at(1))
    position, time, states = kept
    try:
        return Roster.unpack(states, plan.rules_at(since), position, time)
    except (zlib.error, ValueError) as error:
        told = f"the checkpoint of ladder {head.name!r} at position {position} is damaged ({error})"
        raise StoreError(f"{told}; `evenmatch rebuild --whole` makes all ratings anew without it") from error


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
            return build.told()


def correct_and_rebuild(
    database: Database,
    ladder: str,
    clock: Callable[[], int],
    wish: Callable[[Store, Head], Wish],
    event_id: str,
    progress: Progress | None = None,
) -> tuple[Wish, Rebuilt | None]:
    """Add a correction to the ledger together with the ratings that follow from it: both at once, or neither.

    The second result is None where no rating that there is changes. Raises what `wish` raises, and InputError where a
    rating would leave what the system can hold.
    """
    while True:
        with database.write() as connection:
            store = Store(connection, database.rows)
            head = store.lock(ladder)
            wanted = wish(store, head)
            if wanted.since is None:
                correct(store, head, wanted.kind, wanted.body, event_id, clock(), since=None)
                return wanted, None
            corrections = store.corrections(head, head.corrected)
            plan = plan_of([*corrections, Correction(head.position + 1, wanted.kind, wanted.body)])
            build = _open(database, store, head, plan, wanted.since, clock())
        if build.finish(progress, clock, wanted, event_id):
            return wanted, build.told()


def _open(database: Database, store: Store, head: Head, plan: Plan, since: int | None, now: int) -> Build:
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
    return Build(database, head, plan, min(wanted), last + 1)


@dataclass
class Build:
    """A generation while it is written: from `head`, by `plan`, other than the live one from `since` on."""

    database: Database
    head: Head
    plan: Plan
    since: int
    generation: int
    rated: int = 0
    changed: int = 0

    def finish(
        self, progress: Progress | None, clock: Callable[[], int], wish: Wish | None = None, event_id: str = ""
    ) -> bool:
        """Write it and let readers see it, with the correction that it is for; False where it came too late."""
        try:
            self.write(progress)
            if self.swap(clock, wish, event_id):
                self.tidy()
                return True
        except InputError:  # a rating that the system cannot hold
            self.discard()
            raise
        self.discard()
        return False

    def told(self) -> Rebuilt:
        """What it did."""
        return Rebuilt(self.generation, self.since, self.rated, self.changed)

    def write(self, progress: Progress | None) -> None:
        """All of it up to the head, some rows at a time."""
        with self.database.read() as connection:
            store = Store(connection, self.database.rows)
            self._systems = systems_of(store, self.head)
            self.roster = begin(store, self.head, self.plan, self.since)
            kept = self.roster.position
            for step in replay(store, self.head, self.plan, self.roster, progress):
                self._put_lines(step)
                if self.roster.position - kept >= max(APART, 4 * len(self.roster)):
                    kept = self.roster.position
                    with self.database.write() as writing:
                        Store(writing, self.database.rows).checkpoint(self.head.ladder, self.generation, self.roster)
        self._copy_before()
        for part in _parts(self.roster):
            with self.database.write() as connection:
                store = Store(connection, self.database.rows)
                store.keep_states(self.head.ladder, self.generation, part, new=True)

    def _put_lines(self, step: Step) -> None:
        """The lines of a step that are not what was told."""
        now = step.rated.told()
        same = unchanged(step, now, self._systems, self.plan)
        at = step.block.positions
        which = np.flatnonzero(~same & (at >= self.since)).tolist()
        self.rated += int(step.rated.counted[at >= self.since].sum())
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

    def swap(self, clock: Callable[[], int], wish: Wish | None, event_id: str) -> bool:
        """Catch up with what came meanwhile and let readers see the new generation; False where it is too late."""
        with self.database.write() as connection:
            store = Store(connection, self.database.rows)
            now = store.lock(self.head.name)
            mine = store.all(
                "SELECT 1 FROM generation WHERE ladder = ? AND generation = ?", self.head.ladder, self.generation
            )
            if now.generation != self.head.generation or now.corrected != self.head.corrected or not mine:
                return False
            self.catch_up(store, now)
            store.run(
                "UPDATE generation SET time = ?, ready = 1 WHERE ladder = ? AND generation = ?",
                *(self.roster.time, now.ladder, self.generation),
            )
            store.run("UPDATE ladder SET generation = ?, due = NULL WHERE ladder = ?", self.generation, now.ladder)
            if wish is not None:
                correct(store, store.head(self.head.name), wish.kind, wish.body, event_id, clock(), since=None)
        return True

    def catch_up(self, store: Store, now: Head) -> None:
        """Rate the matches that were recorded since, inside the swapping transaction."""
        touched = [np.empty(0, np.int64)]
        for step in replay(store, now, self.plan, self.roster):
            lines = step.rated.told()
            same = unchanged(step, lines, self._systems, self.plan)
            rows = [
                (now.ladder, self.generation, int(step.block.positions[one]), lines[one])
                for one in np.flatnonzero(~same).tolist()
            ]
            store.rows.insert(store.connection, schema.journal, ("ladder", "generation", "position", "lines"), rows)
            touched.append(step.block.ids)
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


def _parts(roster: Roster) -> Iterator[Roster]:
    for first in range(0, len(roster), AT_ONCE):
        yield roster.part(roster.ids[first : first + AT_ONCE])


def systems_of(store: Store, head: Head) -> dict[int, str]:
    """The system of each generation that a ladder ever had."""
    return dict(store.all("SELECT generation, system FROM generation WHERE ladder = ?", head.ladder))


def unchanged(step: Step, now: list[bytes], systems: Mapping[int, str], plan: Plan) -> Flags:
    """Which matches of a step have the lines that were first told, what was shown beside them left out."""
    system = plan.last_rules.system
    told = [bytes(row[2]) for row in step.rows]
    ours = [systems[row[1]] == system.name for row in step.rows]
    return same_lines(line_type(system), told, now, ours)


def same_lines(kind: np.dtype[np.void], told: list[bytes], now: list[bytes], ours: list[bool]) -> Flags:
    """Which matches have the same lines twice; those whose lines are of another system (not `ours`) have not."""
    same = np.array([len(a) == len(b) and mine for a, b, mine in zip(told, now, ours, strict=True)], np.bool_)
    both = np.flatnonzero(same & np.array([len(one) > 0 for one in now], np.bool_))
    if len(both):
        chosen = both.tolist()
        a, b = (np.frombuffer(b"".join([lines[at] for at in chosen]), kind) for lines in (told, now))
        sizes = np.array([len(now[at]) // kind.itemsize for at in chosen])
        starts = np.cumsum(sizes) - sizes
        same[both] = np.logical_and.reduceat(same_ratings(a, b), starts)
    return same


@dataclass(frozen=True)
class Verified:
    """What a comparison of a ladder with a replay of its ledger found.

    differences  what is not equal, in words; nothing where all is well
    due          a correction waits for a rebuild from this position on; None: none
    same_engine  False: the kernels are not those the ratings were made with; a rebuild brings them up to date
    """

    ladder: str
    events: int
    matches: int
    players: int
    differences: tuple[str, ...]
    due: int | None
    same_engine: bool

    @property
    def is_equal(self) -> bool:
        """Whether everything is as a replay from nothing makes it, with no rebuild due."""
        return not self.differences and self.due is None and self.same_engine


def verify(database: Database, ladder: str, progress: Progress | None = None) -> Verified:
    """Replay a ladder from nothing and compare every line and state bit for bit."""
    with database.read() as connection:
        store = Store(connection, database.rows)
        head = store.head(ladder)
        plan = store.plan(head, head.planned)
        roster = Roster.empty(plan.rules_at(1))
        found: list[str] = _gaps(store, head)
        systems, matches, slots = systems_of(store, head), 0, np.zeros(3, np.int64)
        for stop in [*store.checkpoints(head), head.position]:
            for step in replay(store, head._replace(position=stop), plan, roster, progress):
                found += _compare_lines(store, head, plan, step, systems)
                matches += len(step.block)
                slots += _appearances(step.block)
            if stop < head.position:
                found += _compare_checkpoint(store, head, plan, roster)
        if store.appearances(head) != tuple(slots.tolist()):
            found.append("the list of who appeared where is not that of the matches")
        found += _compare_states(store, head, plan, roster)
        same_engine = head.engine == engine_of(plan.last_rules.system)
        return Verified(ladder, head.position, matches, len(roster), tuple(found), head.due, same_engine)


def _gaps(store: Store, head: Head) -> list[str]:
    count, first, last = store.all(
        "SELECT COUNT(*), COALESCE(MIN(position), 1), COALESCE(MAX(position), 0) FROM event WHERE ladder = ?",
        head.ladder,
    )[0]
    if (count, first, last) == (head.position, 1, head.position):
        return []
    return [f"{count} events stand at positions {first} to {last}; 1 to {head.position} without a gap were expected"]


def _compare_lines(store: Store, head: Head, plan: Plan, step: Step, systems: Mapping[int, str]) -> list[str]:
    positions = step.block.positions.tolist()
    kept: dict[int, bytes] = dict(
        store.all(
            "SELECT position, lines FROM journal WHERE ladder = ? AND generation = ? AND position BETWEEN ? AND ?",
            *(head.ladder, head.generation, positions[0], positions[-1]),
        )
    )
    system = plan.last_rules.system
    live = [bytes(kept[at] if at in kept else row[2]) for at, row in zip(positions, step.rows, strict=True)]
    ours = [at in kept or systems[row[1]] == system.name for at, row in zip(positions, step.rows, strict=True)]
    same = same_lines(line_type(system), live, step.rated.told(), ours)
    wrong = np.flatnonzero(~same).tolist()
    return [f"match {step.rows[at][0]!r} at position {positions[at]} has another line than a replay" for at in wrong]


def _appearances(block: Block) -> NDArray[np.int64]:
    """How many slots, and the sums of their players and positions: what the list of appearances must come to."""
    sizes = np.diff(block.columns.slot_start[block.columns.team_start])
    return np.array([len(block.ids), block.ids.sum(), (block.positions * sizes).sum()], np.int64)


def _compare_checkpoint(store: Store, head: Head, plan: Plan, roster: Roster) -> list[str]:
    told = f"the checkpoint at position {roster.position} is not what a replay gives"
    try:
        kept = begin(store, head, plan, roster.position + 1)
    except StoreError:
        return [told]
    same = (kept.position, kept.time) == (roster.position, roster.time) and np.array_equal(kept.ids, roster.ids)
    same = same and bool(same_bits(kept.records, roster.records).all() and same_bits(kept.tally, roster.tally).all())
    return [] if same else [told]


def _compare_states(store: Store, head: Head, plan: Plan, roster: Roster) -> list[str]:
    live = store.roster(head, plan.last_rules)
    if not np.array_equal(live.ids, roster.ids):
        missing = np.setxor1d(live.ids, roster.ids)[:5].tolist()
        return [f"players {missing} have a state in the ladder or in the replay alone"]
    same = same_bits(live.records, roster.records) & same_bits(live.tally, roster.tally)
    shown = np.array(store.ratings(head), np.float64)
    same &= same_bits(shown, np.ascontiguousarray(roster.records["rating"]))
    found = [f"player {_name(store, int(one))!r} has another state than a replay" for one in roster.ids[~same]]
    if live.time != roster.time:
        found.append(f"the last effective time is {live.time}; a replay gives {roster.time}")
    return found
