"""Record matches as they end. Those that arrive together share one transaction and one call of the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenmatch.errors import BadRowsError, ConflictError, EvenmatchError, InputError, Problem, RatingRangeError
from evenmatch.ledger import people
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import Kind, write_body
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store, block_of
from evenmatch.match import Match
from evenmatch.service.appending import Batch, append
from evenmatch.service.boards import DIVIDE, Boards, View, divide
from evenmatch.service.receipts import Receipt, receipts
from evenmatch.service.settings import Settings

TOGETHER = 2000  # matches in one transaction at most
CHECKPOINT = 50_000  # events between two checkpoints at least, and four times as many as there are players

Outcome = Receipt | EvenmatchError


@dataclass(eq=False)
class Submission:
    """Matches of one caller for one ladder, and what became of each."""

    matches: Sequence[Match]
    rated: Sequence[bool]
    outcomes: list[Outcome] = field(default_factory=list)
    failure: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether the caller may go."""
        return bool(self.outcomes) or self.failure is not None


@dataclass(eq=False)
class Line:
    """Where the callers of one ladder wait: the first who gets `turn` commits for all who wait."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[Submission] = field(default_factory=list)


class Recorder:
    """Records for any number of threads, and leaves it to the database to keep processes apart."""

    def __init__(self, database: Database, boards: Boards, clock: Callable[[], int]) -> None:
        self._database, self._boards, self._clock = database, boards, clock
        self._lines: dict[str, Line] = {}
        self._plans: dict[tuple[str, int], tuple[int, Plan]] = {}
        self._guard = threading.Lock()

    def record(self, ladder: str, matches: Sequence[Match], rated: Sequence[bool]) -> list[Outcome]:
        """What became of each match: its receipt, or why it was refused.

        Raises UnknownNameError for a ladder that is not there, StoreError where nothing is known to be kept.
        """
        if not matches:
            return []
        mine = Submission(matches, rated)
        with self._guard:
            line = self._lines.setdefault(ladder, Line())
            line.waiting.append(mine)
        with line.turn:
            while not mine.done:
                with self._guard:
                    batch = _together(line.waiting)
                self._commit(ladder, batch)
        if mine.failure is not None:
            raise mine.failure
        return mine.outcomes

    def _commit(self, ladder: str, batch: list[Submission]) -> None:
        """Record the matches of these submissions in one transaction."""
        try:
            matches = [match for one in batch for match in one.matches]
            rated = [yes for one in batch for yes in one.rated]
            view = self._boards.view(ladder, self._clock(), fresh=False)
            try:
                outcomes = self._try(ladder, view, matches, rated)
            except RatingRangeError:  # find out whose match it was, one at a time
                outcomes = []
                for match, yes in zip(matches, rated, strict=True):
                    try:
                        outcomes += self._try(ladder, view, [match], [yes])
                    except RatingRangeError as error:
                        outcomes.append(error)
            at = 0
            for one in batch:
                one.outcomes = outcomes[at : at + len(one.matches)]
                at += len(one.matches)
        except BaseException as error:
            for one in batch:
                one.failure = error
            if not isinstance(error, EvenmatchError):
                raise

    def _try(self, ladder: str, view: View, matches: Sequence[Match], rated: Sequence[bool]) -> list[Outcome]:
        now = self._clock()
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            head = store.lock(ladder)
            plan = self._plan(store, head)
            outcomes = record(store, head, plan, view, matches, rated, now)
            if view.head.generation == head.generation and now - head.divided_at > DIVIDE:
                divide(store, view, now)
            if head.position - store.checkpointed(head) >= CHECKPOINT:
                _checkpoint(store, store.head(ladder), plan)
        return outcomes

    def _plan(self, store: Store, head: Head) -> Plan:
        """What the live generation accounts for, read once per change."""
        key = (head.name, head.generation)
        planned, plan = self._plans.get(key, (-1, None))
        if plan is None or planned != head.planned:
            plan = store.plan(head, head.planned)
            self._plans[key] = (head.planned, plan)
        return plan


def _together(waiting: list[Submission]) -> list[Submission]:
    """Take the first of those who wait, as many as go into one transaction; at least one."""
    batch: list[Submission] = []
    size = 0
    while waiting and (not batch or size + len(waiting[0].matches) <= TOGETHER):
        size += len(waiting[0].matches)
        batch.append(waiting.pop(0))
    return batch


def record(
    store: Store, head: Head, plan: Plan, view: View, matches: Sequence[Match], rated: Sequence[bool], now: int
) -> list[Outcome]:
    """Record matches on a ladder that the caller holds locked; what became of each."""
    batch = Batch.of_matches(matches, rated)
    known = store.known(head, batch.ids)
    rules = plan.last_rules
    refused: dict[int, str] = {}
    for number, reason in rules.system.refusals(batch.history.columns, rules.parameters):
        refused.setdefault(number, reason)
    outcomes: list[Outcome | None] = [None] * len(batch)
    first: dict[str, int] = {}
    for at, (match_id, digest) in enumerate(zip(batch.ids, batch.digests, strict=True)):
        if match_id in known:
            if known[match_id][1] != digest:
                outcomes[at] = _conflict(match_id, head.name)
        elif match_id in first:
            if batch.digests[first[match_id]] != digest:
                outcomes[at] = _conflict(match_id, head.name)
        elif at in refused and rated[at]:
            outcomes[at] = BadRowsError("the match", [Problem(None, match_id, refused[at])])
        else:
            first[match_id] = at
    new = [at for at in first.values() if outcomes[at] is None]
    if new:
        divisions = [one.name for one in view.settings.standings.divisions]
        chosen = batch.take(new)
        done = append(store, head, plan, chosen, now, view.show)
        told = receipts(head.name, rules, done.block, chosen.ids, done.rated.told(), done.names, divisions)
        for at, receipt in zip(new, told, strict=True):
            outcomes[at] = receipt
    again = [at for at, outcome in enumerate(outcomes) if outcome is None]
    if again:
        before = first_receipts(store, head, sorted({batch.ids[at] for at in again}))
        for at in again:
            outcomes[at] = before[batch.ids[at]]
    return [outcome for outcome in outcomes if outcome is not None]


def _conflict(match_id: str, ladder: str) -> ConflictError:
    said = f"match {match_id!r} is on ladder {ladder!r} already, with other content"
    return ConflictError(f"{said}; accepted is the same content, or another id")


def first_receipts(store: Store, head: Head, ids: Sequence[str]) -> dict[str, Receipt]:
    """The receipts of these matches as they were first told. Raises InputError for an event that is no match."""
    sql = (
        "SELECT position, played_at, duration, teams, players, slots, rated, id, generation, told, kind "
        "FROM event WHERE ladder = ? AND id IN ({})"
    )
    found: dict[str, Receipt] = {}
    for row in store.rows.among(store.connection, sql, (head.ladder,), ids):
        if row[10] != Kind.MATCH:
            raise InputError(f"{row[7]!r} is the id of a correction on ladder {head.name!r}; accepted is another id")
        block = block_of([row])
        names = people.names_of(store, np.unique(block.ids).tolist())
        divisions = [one.name for one in settings_at(store, head, row[0]).standings.divisions]
        rules = store.rules_of(head, row[8])
        found[row[7]] = receipts(head.name, rules, block, [row[7]], [bytes(row[9])], names, divisions)[0]
    return found


def settings_at(store: Store, head: Head, position: int) -> Settings:
    """The settings of a ladder as they were after the event at a position."""
    told = [one.body["settings"] for one in store.corrections(head, position) if "settings" in one.body]
    return Settings.read(write_body(told[-1]))  # type: ignore[arg-type]


def _checkpoint(store: Store, head: Head, plan: Plan) -> None:
    """Keep all states, where many more events than players have come since that was done last."""
    players: int = store.all(
        "SELECT COUNT(*) FROM state WHERE ladder = ? AND generation = ?", head.ladder, head.generation
    )[0][0]
    if head.position - store.checkpointed(head) >= 4 * players:
        store.checkpoint(head.ladder, head.generation, store.roster(head, plan.last_rules))
