"""Record matches as they end. Reports that arrive together share one transaction and one call of the rating loop."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from evenmatch.errors import BadRowsError, ConflictError, EvenmatchError, InputError, Problem, StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import write_body
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import checkpoints, corrections, events, player_identities, player_states
from evenmatch.service.queries.standings import DIVIDE, StandingsCache, View, divide, take
from evenmatch.service.recording.ledger_append import AHEAD, Batch, Display, append, to_come
from evenmatch.service.recording.player_state_cache import Draft, PlayerStateCache
from evenmatch.service.recording.receipts import MatchReceipt, RatedBlock, receipts
from evenmatch.service.recording.report_batch import ReportBatch
from evenmatch.service.settings import Settings, archived

TOGETHER = 2000  # matches in one transaction at most
CHECKPOINT = 50_000  # events between two checkpoints at least; also at least four times the number of players

Outcome = MatchReceipt | EvenmatchError


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Submission:
    """Matches of one caller for one ladder, and their outcomes.

    turn   released when the caller may continue: its matches are committed, or it must commit for all that wait; a
           plain lock, since it is the cheapest way for many threads to wake each other
    leads  this caller commits, or has committed, for all that wait
    """

    sheet: ReportBatch
    turn: threading.Lock = field(default_factory=_locked)
    leads: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    failure: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether its outcomes, or the error that prevented them, are known."""
        return bool(self.outcomes) or self.failure is not None


@dataclass(eq=False)
class CommitQueue:
    """The callers of one ladder that wait while another one commits."""

    waiting: list[Submission] = field(default_factory=list)
    busy: bool = False


class Recorder:
    """Records matches of any number of threads by group commit; the database's locks keep processes apart.

    A caller that finds no commit in progress becomes the leader: it commits for all that wait, then hands the lead to
    the first that arrived meanwhile. So one transaction takes everything that arrived during the previous one, and no
    caller leads for long.
    """

    def __init__(self, database: Database, boards: StandingsCache, clock: Callable[[], int]) -> None:
        self._database, self._boards, self._clock = database, boards, clock
        self._queues: dict[str, CommitQueue] = {}
        self._memory = PlayerStateCache()
        self._plans: dict[str, tuple[tuple[int, int], Plan]] = {}
        self._guard = threading.Lock()

    def record(self, ladder: str, sheet: ReportBatch) -> list[Outcome]:
        """Record matches. Return for each its receipt, or the error that rejected it.

        Raises UnknownNameError for an unknown ladder, StoreError if it is unknown whether the matches were stored.
        """
        if not len(sheet):
            return []
        own = Submission(sheet)
        with self._guard:
            queue = self._queues.setdefault(ladder, CommitQueue())
            queue.waiting.append(own)
            if not queue.busy:
                queue.busy = own.leads = True
        if not own.leads:
            try:
                own.turn.acquire()
            except BaseException:  # the caller was interrupted: the others must not wait for it
                self._leave(ladder, queue, own)
                raise
        if not own.is_done:
            with self._guard:
                batch = _next_batch(queue.waiting)
            self._lead(ladder, queue, batch)
        if own.failure is not None:
            raise own.failure
        return own.outcomes

    def _leave(self, ladder: str, queue: CommitQueue, leaving: Submission) -> None:
        """Remove a submission from the queue; if it was to lead, pass the lead on."""
        with self._guard:
            if leaving not in queue.waiting:
                return
            queue.waiting.remove(leaving)
        if leaving.leads:
            self._hand_over(ladder, queue)

    def _hand_over(self, ladder: str, queue: CommitQueue) -> None:
        with self._guard:
            queue.busy = bool(queue.waiting)
            if queue.waiting:
                queue.waiting[0].leads = True
                queue.waiting[0].turn.release()
            else:
                self._queues.pop(ladder, None)

    def _lead(self, ladder: str, queue: CommitQueue, batch: list[Submission]) -> None:
        """Commit a batch, let the next leader start, then give this batch's callers their outcomes."""
        try:
            try:
                recorded = self._commit(ladder, batch)
            finally:
                self._hand_over(ladder, queue)
            outcomes = [outcome for part in recorded for outcome in part.outcomes()]
            first = 0
            for submission in batch:
                submission.outcomes = outcomes[first : first + len(submission.sheet)]
                first += len(submission.sheet)
        except EvenmatchError as error:
            for submission in batch:
                submission.failure = error
        except BaseException as error:  # raised in this caller's thread only; the others get a StoreError
            for submission in batch:
                submission.failure = StoreError(f"it is not known whether this was stored ({error!r}); send it again")
            raise
        finally:
            for submission in batch:
                if not submission.leads:
                    submission.turn.release()

    def _commit(self, ladder: str, batch: list[Submission]) -> list[RecordedBatch]:
        """Record the matches of these submissions in one transaction."""
        now = self._clock()
        view = self._boards.young(ladder, now) or self._boards.view(ladder, now, fresh=False)
        return self._record(ladder, view, ReportBatch.joined([submission.sheet for submission in batch]))

    def _record(self, ladder: str, view: View, sheet: ReportBatch) -> list[RecordedBatch]:
        """Record in one transaction; if rating rejects a match, split in halves until that match is alone."""
        try:
            return [self._try(ladder, view, sheet)]
        except InputError as error:
            if len(sheet) == 1:
                return [RecordedBatch([error], [], list)]
        half = len(sheet) // 2
        first = self._record(ladder, view, sheet.part(0, half))
        return first + self._record(ladder, view, sheet.part(half, len(sheet)))

    def _try(self, ladder: str, view: View, sheet: ReportBatch) -> RecordedBatch:
        now, divided = self._clock(), False
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            head = store.lock(ladder)
            plan = self._plan(store, head)
            if (view.head.generation, view.head.settings) != (head.generation, head.settings):  # the view is outdated
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
        """The plan of the live generation, read again only after it changed."""
        key = (head.generation, head.planned)
        cached_key, plan = self._plans.get(head.name, ((0, 0), None))
        if plan is None or cached_key != key:
            plan = corrections.read_plan(store, head, head.planned)
            self._plans[head.name] = (key, plan)
        return plan


def _next_batch(waiting: list[Submission]) -> list[Submission]:
    """Remove the first submissions from the queue, as many as fit into one transaction, at least one."""
    batch: list[Submission] = []
    size = 0
    while waiting and (not batch or size + len(waiting[0].sheet) <= TOGETHER):
        size += len(waiting[0].sheet)
        batch.append(waiting.pop(0))
    return batch


class RecordedBatch(NamedTuple):
    """The outcomes of matches whose transaction was committed.

    known  outcomes of matches that were rejected or recorded before; None for each match in `new`
    new    indices of the others;  told  computes their receipts
    """

    known: list[Outcome | None]
    new: list[int]
    told: Callable[[], list[MatchReceipt]]

    def outcomes(self) -> list[Outcome]:
        """The outcome of each match, in order."""
        receipt_of = dict(zip(self.new, self.told(), strict=True))
        return [receipt_of[index] if outcome is None else outcome for index, outcome in enumerate(self.known)]


def record(
    store: Store,
    head: Head,
    plan: Plan,
    sheet: ReportBatch,
    now: int,
    view: View,
    draft: Draft,
) -> RecordedBatch:
    """Record matches on a ladder that the caller has locked."""
    batch = Batch.of_sheet(sheet)
    rules = plan.last_rules
    new, again, outcomes = _classify(store, head, plan, batch, now)
    if new and view.settings.archived:
        for index in new:
            outcomes[index] = archived(head.name)
        new = []
    make_receipts: Callable[[], list[MatchReceipt]] = list
    if new:
        divisions = [division.name for division in view.settings.standings.divisions]
        chosen = batch.take(new)
        added = append(store, head, plan, chosen, now, Display(view.show, draft))
        source = RatedBlock(rules, added.block, added.rated.told(), added.names, divisions)
        make_receipts = partial(receipts, head.name, chosen.ids, source)
    if again:
        before = first_receipts(store, head, sorted({batch.ids[index] for index in again}))
        for index in again:
            outcomes[index] = before[batch.ids[index]]
    return RecordedBatch(outcomes, new, make_receipts)


def _classify(
    store: Store, head: Head, plan: Plan, batch: Batch, now: int
) -> tuple[list[int], list[int], list[Outcome | None]]:
    """Indices of new matches, indices of repeated ones with the same content, and the errors of rejected ones."""
    known = events.find(store, head, batch.ids)
    refused: dict[int, str] = {}
    for number, reason in plan.last_rules.system.refusals(batch.history.columns, plan.last_rules.parameters):
        refused.setdefault(number, reason)
    outcomes: list[Outcome | None] = [None] * len(batch)
    first: dict[str, int] = {}
    again = []
    for index, (match_id, digest) in enumerate(zip(batch.ids, batch.digests, strict=True)):
        if match_id in known or match_id in first:
            recorded = known[match_id][1] if match_id in known else batch.digests[first[match_id]]
            if recorded == digest:
                again.append(index)
            else:
                outcomes[index] = _conflict(match_id, head.name)
        elif batch.played_at[index] > now + AHEAD:
            outcomes[index] = InputError(f"match {match_id!r}: {to_come(int(batch.played_at[index]), now)}")
        elif index in refused and batch.rated[index]:
            outcomes[index] = BadRowsError("the match", [Problem(None, match_id, refused[index])])
        else:
            first[match_id] = index
    return list(first.values()), again, outcomes


def _conflict(match_id: str, ladder: str) -> ConflictError:
    taken = f"match {match_id!r} is on ladder {ladder!r} already, with other content"
    return ConflictError(f"{taken}; send the same content, or choose another id")


def first_receipts(store: Store, head: Head, ids: Sequence[str]) -> dict[str, MatchReceipt]:
    """The receipts of these recorded matches, by id, as they were first returned."""
    matches = events.read_matches(store, head.ladder, ids)
    names = player_identities.names_of(store, np.unique(np.concatenate([block.ids for block, _ in matches])).tolist())
    rules_of = {
        generation: corrections.read_rules(store, head, generation) for generation in {row[1] for _, row in matches}
    }
    changed, divisions = _divisions(store, head)
    receipt_of: dict[str, MatchReceipt] = {}
    for block, (match_id, generation, lines, _) in matches:
        division_names = divisions[bisect_left(changed, int(block.positions[0])) - 1]
        rated = RatedBlock(rules_of[generation], block, [bytes(lines)], names, division_names)
        receipt_of[match_id] = receipts(head.name, [match_id], rated)[0]
    return receipt_of


def _divisions(store: Store, head: Head) -> tuple[list[int], list[list[str]]]:
    """The positions of changes of settings, ascending, and the names of the divisions since each."""
    changes = [event for event in corrections.read(store, head, head.corrected) if "settings" in event.body]
    settings = [Settings.read(write_body(event.body["settings"])) for event in changes]  # type: ignore[arg-type]
    names = [[division.name for division in setting.standings.divisions] for setting in settings]
    return [event.position for event in changes], names


def _checkpoint(store: Store, head: Head, plan: Plan) -> None:
    """Store a checkpoint if many more events than players have come since the last one."""
    if head.position - checkpoints.last_position(store, head) >= 4 * player_states.count(store, head):
        checkpoints.put(store, head.ladder, head.generation, player_states.read_roster(store, head, plan.last_rules))
