"""Record matches as they end. Those that arrive together share one transaction and one call of the loop."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from evenmatch.errors import BadRowsError, ConflictError, EvenmatchError, InputError, Problem, StoreError
from evenmatch.ledger import people
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import write_body
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store, block_of
from evenmatch.service.appending import AHEAD, Batch, Live, append, to_come
from evenmatch.service.boards import DIVIDE, Boards, View, divide, take
from evenmatch.service.memory import Draft, Memory
from evenmatch.service.receipts import Receipt, Told, receipts
from evenmatch.service.settings import Settings, archived
from evenmatch.service.sheet import Sheet

TOGETHER = 2000  # matches in one transaction at most
CHECKPOINT = 50_000  # events between two checkpoints at least, and four times as many as there are players

Outcome = Receipt | EvenmatchError


def _held() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Submission:
    """Matches of one caller for one ladder, and what became of each.

    turn   held until the caller is to go on: because its matches are done, or to commit for all who wait; a bare lock,
           since so many threads wake each other so often
    leads  it was, or is to be, the caller who commits
    """

    sheet: Sheet
    turn: threading.Lock = field(default_factory=_held)
    leads: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    failure: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether the caller may go."""
        return bool(self.outcomes) or self.failure is not None


@dataclass(eq=False)
class Line:
    """Where the callers of one ladder wait while one of them commits."""

    waiting: list[Submission] = field(default_factory=list)
    busy: bool = False


class Recorder:
    """Records for any number of threads, and leaves it to the database to keep processes apart.

    Whoever finds nobody committing commits for all who wait, then hands over to the first who came meanwhile: so a
    transaction takes everything that arrived during the one before it, and nobody works for others for long.
    """

    def __init__(self, database: Database, boards: Boards, clock: Callable[[], int]) -> None:
        self._database, self._boards, self._clock = database, boards, clock
        self._lines: dict[str, Line] = {}
        self._memory = Memory()
        self._plans: dict[str, tuple[tuple[int, int], Plan]] = {}
        self._guard = threading.Lock()

    def record(self, ladder: str, sheet: Sheet) -> list[Outcome]:
        """What became of each match: its receipt, or why it was refused.

        Raises UnknownNameError for a ladder that is not there, StoreError where nothing is known to be kept.
        """
        if not len(sheet):
            return []
        mine = Submission(sheet)
        with self._guard:
            line = self._lines.setdefault(ladder, Line())
            line.waiting.append(mine)
            if not line.busy:
                line.busy = mine.leads = True
        if not mine.leads:
            try:
                mine.turn.acquire()
            except BaseException:  # the caller was interrupted: nobody is to wait for somebody who has gone
                self._leave(ladder, line, mine)
                raise
        if not mine.is_done:
            with self._guard:
                batch = _together(line.waiting)
            self._lead(ladder, line, batch)
        if mine.failure is not None:
            raise mine.failure
        return mine.outcomes

    def _leave(self, ladder: str, line: Line, gone: Submission) -> None:
        """Take a submission out of the line; if it was handed the turn, hand it on."""
        with self._guard:
            if gone not in line.waiting:
                return
            line.waiting.remove(gone)
        if gone.leads:
            self._hand_over(ladder, line)

    def _hand_over(self, ladder: str, line: Line) -> None:
        with self._guard:
            line.busy = bool(line.waiting)
            if line.waiting:
                line.waiting[0].leads = True
                line.waiting[0].turn.release()
            else:
                self._lines.pop(ladder, None)

    def _lead(self, ladder: str, line: Line, batch: list[Submission]) -> None:
        """Commit a batch, let the next one begin, and then tell this one's callers."""
        try:
            try:
                recorded = self._commit(ladder, batch)
            finally:
                self._hand_over(ladder, line)
            outcomes = [outcome for part in recorded for outcome in part.outcomes()]
            at = 0
            for one in batch:
                one.outcomes = outcomes[at : at + len(one.sheet)]
                at += len(one.sheet)
        except EvenmatchError as error:
            for one in batch:
                one.failure = error
        except BaseException as error:  # of this caller alone; the others can only know that they were not told
            for one in batch:
                one.failure = StoreError(f"it is not known whether this was kept ({error!r}); send it again")
            raise
        finally:
            for one in batch:
                if not one.leads:
                    one.turn.release()

    def _commit(self, ladder: str, batch: list[Submission]) -> list[Recorded]:
        """Record the matches of these submissions in one transaction."""
        now = self._clock()
        view = self._boards.young(ladder, now) or self._boards.view(ladder, now, fresh=False)
        return self._record(ladder, view, Sheet.joined([one.sheet for one in batch]))

    def _record(self, ladder: str, view: View, sheet: Sheet) -> list[Recorded]:
        """In one transaction; where one match is refused only then, in halves, until it is alone."""
        try:
            return [self._try(ladder, view, sheet)]
        except InputError as error:
            if len(sheet) == 1:
                return [Recorded([error], [], list)]
        half = len(sheet) // 2
        first = self._record(ladder, view, sheet.part(0, half))
        return first + self._record(ladder, view, sheet.part(half, len(sheet)))

    def _try(self, ladder: str, view: View, sheet: Sheet) -> Recorded:
        now, divided = self._clock(), False
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            head = store.lock(ladder)
            plan = self._plan(store, head)
            if (view.head.generation, view.head.settings) != (head.generation, head.settings):  # of other ratings
                self._boards.forget(ladder)
                view = take(store, ladder, now)
            draft = Draft(self._memory, head)
            recorded = record(store, head, plan, sheet, now, view, draft)
            if now - head.divided_at > DIVIDE:
                divided = divide(store, view, now) is not None
            if head.position // CHECKPOINT != (head.position + len(sheet)) // CHECKPOINT:
                _checkpoint(store, store.head(ladder), plan)
        draft.keep(head.position + len(recorded.new))
        if divided:
            self._boards.divided(view, now)
        return recorded

    def _plan(self, store: Store, head: Head) -> Plan:
        """What the live generation accounts for, read once per change."""
        key = (head.generation, head.planned)
        known, plan = self._plans.get(head.name, ((0, 0), None))
        if plan is None or known != key:
            plan = store.plan(head, head.planned)
            self._plans[head.name] = (key, plan)
        return plan


def _together(waiting: list[Submission]) -> list[Submission]:
    """Take the first of those who wait, as many as go into one transaction; at least one."""
    batch: list[Submission] = []
    size = 0
    while waiting and (not batch or size + len(waiting[0].sheet) <= TOGETHER):
        size += len(waiting[0].sheet)
        batch.append(waiting.pop(0))
    return batch


class Recorded(NamedTuple):
    """What became of matches, once their transaction is through.

    known  of those that were refused or there before; None for those in `new`, whose receipts `told` makes
    """

    known: list[Outcome | None]
    new: list[int]
    told: Callable[[], list[Receipt]]

    def outcomes(self) -> list[Outcome]:
        """Of each match."""
        found = dict(zip(self.new, self.told(), strict=True))
        return [found[at] if one is None else one for at, one in enumerate(self.known)]


def record(
    store: Store,
    head: Head,
    plan: Plan,
    sheet: Sheet,
    now: int,
    view: View,
    draft: Draft,
) -> Recorded:
    """Record matches on a ladder that the caller holds locked."""
    batch = Batch.of_sheet(sheet)
    rules = plan.last_rules
    new, again, outcomes = _sort_out(store, head, plan, batch, now)
    if new and view.settings.archived:
        for at in new:
            outcomes[at] = archived(head.name)
        new = []
    told: Callable[[], list[Receipt]] = list
    if new:
        divisions = [one.name for one in view.settings.standings.divisions]
        chosen = batch.take(new)
        done = append(store, head, plan, chosen, now, Live(view.show, draft))
        lines = done.rated.told()
        told = partial(receipts, head.name, chosen.ids, Told(rules, done.block, lines, done.names, divisions))
    if again:
        before = first_receipts(store, head, sorted({batch.ids[at] for at in again}))
        for at in again:
            outcomes[at] = before[batch.ids[at]]
    return Recorded(outcomes, new, told)


def _sort_out(
    store: Store, head: Head, plan: Plan, batch: Batch, now: int
) -> tuple[list[int], list[int], list[Outcome | None]]:
    """Which matches of a batch are new, which were there before with the same content, and why others are refused."""
    known = store.known(head, batch.ids)
    refused: dict[int, str] = {}
    for number, reason in plan.last_rules.system.refusals(batch.history.columns, plan.last_rules.parameters):
        refused.setdefault(number, reason)
    outcomes: list[Outcome | None] = [None] * len(batch)
    first: dict[str, int] = {}
    again = []
    for at, (match_id, digest) in enumerate(zip(batch.ids, batch.digests, strict=True)):
        if match_id in known or match_id in first:
            there = known[match_id][1] if match_id in known else batch.digests[first[match_id]]
            if there == digest:
                again.append(at)
            else:
                outcomes[at] = _conflict(match_id, head.name)
        elif batch.played_at[at] > now + AHEAD:
            outcomes[at] = InputError(f"match {match_id!r}: {to_come(int(batch.played_at[at]), now)}")
        elif at in refused and batch.rated[at]:
            outcomes[at] = BadRowsError("the match", [Problem(None, match_id, refused[at])])
        else:
            first[match_id] = at
    return list(first.values()), again, outcomes


def _conflict(match_id: str, ladder: str) -> ConflictError:
    said = f"match {match_id!r} is on ladder {ladder!r} already, with other content"
    return ConflictError(f"{said}; accepted is the same content, or another id")


def first_receipts(store: Store, head: Head, ids: Sequence[str]) -> dict[str, Receipt]:
    """The receipts of these matches as they were first told."""
    sql = (
        "SELECT position, played_at, duration, teams, players, slots, rated, id, generation, told "
        "FROM event WHERE ladder = ? AND id IN ({})"
    )
    rows = store.rows.among(store.connection, sql, (head.ladder,), ids)
    blocks = [block_of([row]) for row in rows]
    names = people.names_of(store, np.unique(np.concatenate([block.ids for block in blocks])).tolist())
    rules_of = {generation: store.rules_of(head, generation) for generation in {row[8] for row in rows}}
    changed, divisions = _divisions(store, head)
    found: dict[str, Receipt] = {}
    for row, block in zip(rows, blocks, strict=True):
        shown = divisions[bisect_left(changed, row[0]) - 1]
        found[row[7]] = receipts(head.name, [row[7]], Told(rules_of[row[8]], block, [bytes(row[9])], names, shown))[0]
    return found


def _divisions(store: Store, head: Head) -> tuple[list[int], list[list[str]]]:
    """The positions after which a ladder had other settings, ascending, and its divisions' names since each."""
    told = [one for one in store.corrections(head, head.corrected) if "settings" in one.body]
    settings = [Settings.read(write_body(one.body["settings"])) for one in told]  # type: ignore[arg-type]
    return [one.position for one in told], [[band.name for band in one.standings.divisions] for one in settings]


def _checkpoint(store: Store, head: Head, plan: Plan) -> None:
    """Keep all states, where many more events than players have come since that was done last."""
    players: int = store.all(
        "SELECT COUNT(*) FROM state WHERE ladder = ? AND generation = ?", head.ladder, head.generation
    )[0][0]
    if head.position - store.checkpointed(head) >= 4 * players:
        store.checkpoint(head.ladder, head.generation, store.roster(head, plan.last_rules))
