"""Record matches as they end: the new matches of a batch share one transaction and one call of the loop.

A match that is sent again gets its first receipt. A match that is too large, or conflicts with a recorded one, is
refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from evenmatch.compile_notice import load_kernels
from evenmatch.errors import (
    BadRowsError,
    ConflictError,
    DamageError,
    EvenmatchError,
    InputError,
    RowProblem,
    TransactionTimeoutError,
)
from evenmatch.ladders.settings import Settings, archived
from evenmatch.ladders.standings import DIVIDE, StandingsCache, View, divide, take
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_texts
from evenmatch.players.name_rule import NameRule
from evenmatch.recording.group_commit import Gather, GroupCommit
from evenmatch.recording.ledger_append import Batch, ReceiptDisplay, append, in_future
from evenmatch.recording.player_states import PlayerStateCache, ReadAhead, StateTransaction, read_ahead
from evenmatch.recording.receipts import MatchReceipt, RatedBlock, first_receipts, other_sizes, receipts
from evenmatch.recording.recording_sql import look_up
from evenmatch.recording.report_batch import ReportBatch

Value = TypeVar("Value")


def classify(
    store: Store, head: Head, plan: Plan, batch: Batch, known: Mapping[str, tuple[int, bytes]], now: int
) -> tuple[list[int], list[int], dict[int, EvenmatchError]]:
    """Indices of new matches, indices of repeated ones with the same content, and errors of rejected ones by index."""
    incomparable = each_apart(partial(_incomparable, store, head), list(known))
    refused: dict[int, str] = {}
    for number, reason in plan.last_rules.system.refusals(batch.history.columns, plan.last_rules.parameters):
        refused.setdefault(number, reason)
    outcomes: dict[int, EvenmatchError] = {}
    first: dict[str, int] = {}
    again = []
    for index, (match_id, digest) in enumerate(zip(batch.ids, batch.digests, strict=True)):
        if match_id in incomparable:
            outcomes[index] = incomparable[match_id]
        elif match_id in known or match_id in first:
            recorded = known[match_id][1] if match_id in known else batch.digests[first[match_id]]
            if recorded == digest:
                again.append(index)
            else:
                outcomes[index] = _conflict(match_id, head.name)
        elif late := in_future(int(batch.played_at[index]), now):
            outcomes[index] = InputError(f"match {match_id!r}: {late}")
        elif index in refused and batch.rated[index]:
            outcomes[index] = _refused(match_id, refused[index])
        else:
            first[match_id] = index
    return list(first.values()), again, outcomes


def size_refusals(settings: Settings, batch: Batch, new: Sequence[int]) -> dict[int, BadRowsError]:
    """The errors of matches that the ladder's rule about team sizes refuses, by index."""
    if settings.other_sizes != "refuse":
        return {}
    odd = other_sizes(settings, batch.history.columns, batch.rated)
    return {index: _refused(batch.ids[index], odd[index].refusal) for index in new if index in odd}


def name_refusals(
    store: Store, head: Head, settings: Settings, batch: Batch, new: Sequence[int]
) -> dict[int, BadRowsError]:
    """The errors of matches that the ladder's rule about names refuses, by index."""
    if settings.names != "refuse" or not new:
        return {}
    slots, players = batch.history.match_slots, batch.history.columns.player.tolist()
    names = {index: [batch.names[player] for player in players[slots[index] : slots[index + 1]]] for index in new}
    rule = NameRule(store, head, settings, [name for listed in names.values() for name in listed])
    judged = {index: rule.objection(listed) for index, listed in names.items()}
    return {index: _refused(batch.ids[index], objection) for index, objection in judged.items() if objection}


def _refused(match_id: str, reason: str) -> BadRowsError:
    return BadRowsError("the match", [RowProblem(None, match_id, reason)])


def _conflict(match_id: str, ladder: str) -> ConflictError:
    taken = f"match {match_id!r} is already on ladder {ladder!r}, with other content"
    return ConflictError(f"{taken}; send the same content, or choose another id")


def each_apart(
    read: Callable[[Sequence[str]], Mapping[str, Value]], ids: Sequence[str]
) -> dict[str, Value | DamageError]:
    """The values of these matches by id. If one is damaged, it gets its error, and all are read one by one."""
    if not ids:
        return {}
    try:
        return {**read(ids)}
    except DamageError as error:
        if len(ids) == 1:
            return {ids[0]: error}
    values: dict[str, Value | DamageError] = {}
    for match_id in ids:
        values |= each_apart(read, [match_id])
    return values


def _incomparable(store: Store, head: Head, ids: Sequence[str]) -> dict[str, ConflictError]:
    """The errors of recorded matches in which an erased player took part.

    Any content gets the same answer: a receipt or a conflict would reveal whether an erased player had a name.
    """
    players = {row[0]: block.ids.tolist() for block, row in event_rows.read_matches(store, head.ladder, ids)}
    erased = player_rows.erased_among(store, sorted({player for of_match in players.values() for player in of_match}))
    return {
        match_id: ConflictError(
            f"match {match_id!r} is already on ladder {head.name!r}, with a player who has been erased since, so "
            "reports cannot be compared with it; if you are repeating it, nothing is missing; for a new match, "
            "choose another id"
        )
        for match_id, of_match in players.items()
        if not erased.isdisjoint(of_match)
    }


AT_ONCE = 3  # threads that compute at a time, while others wait for the database
PATIENCE = 0.1  # seconds after which a thread continues although others compute


class Turns:
    """Limits how many threads, each holding another ladder, compute at a time."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(AT_ONCE)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, but not for long, because the database may delay the threads that have one."""
        is_taken = self._free.acquire(timeout=PATIENCE)
        try:
            yield
        finally:
            if is_taken:
                self._free.release()


class MatchLimits(NamedTuple):
    """The most teams and the most players of a match, and the most live matches of a ladder.

    team_setting, player_setting  the setting behind each of the first two, for messages; empty: none
    """

    teams: int = 10_000
    players: int = 10_000
    running: int = 10_000
    team_setting: str = ""
    player_setting: str = ""

    def on(self, ladder: str, settings: Settings) -> MatchLimits:
        """These limits on a ladder, whose settings may lower them."""
        limits = self
        if settings.team_limit < self.teams:
            limits = limits._replace(teams=settings.team_limit, team_setting=f"team_limit of ladder {ladder!r}")
        if settings.player_limit < self.players:
            limits = limits._replace(players=settings.player_limit, player_setting=f"player_limit of ladder {ladder!r}")
        return limits

    def refusal(self, teams: int, players: int) -> str | None:
        """Why a match of this size is refused; None: it is not."""
        if teams <= self.teams and players <= self.players:
            return None
        most_teams = f"{self.teams:,} teams{_by(self.team_setting)}"
        most_players = f"{self.players:,} players{_by(self.player_setting)}"
        return f"has {teams:,} teams with {players:,} players; expected at most {most_teams} and {most_players}"

    def check(self, what: str, teams: int, players: int) -> None:
        """Raise InputError, which names `what`, for a match of this size that is refused."""
        reason = self.refusal(teams, players)
        if reason is not None:
            raise InputError(f"{what} {reason}")


LARGEST = MatchLimits()


def _by(setting: str) -> str:
    return f" ({setting})" if setting else ""


CHECKPOINT = 50_000  # the fewest events between two checkpoints; also at least four times the number of players

PAIRS = 2_000_000  # pairs of teams that one transaction rates at most, in about 0.3 s; a single match may have more

TEAMS_OF_LATE = 64  # teams of a match that may join others under the lock

Outcome = MatchReceipt | EvenmatchError


@dataclass(slots=True)
class _Part:
    """Matches that share a transaction.

    batch  the same matches, packed; None: not packed yet
    ahead  names and states of their players, read without the ladder's lock
    """

    reports: ReportBatch
    batch: Batch | None = None
    ahead: ReadAhead | None = None

    def add(self, late: Sequence[ReportBatch]) -> None:
        """Add matches that were reported after the others had been packed."""
        if late:
            self.reports, self.batch = ReportBatch.joined([self.reports, *late]), None


class PreparedReports(NamedTuple):
    """Matches that are ready to be recorded.

    refused  errors by index;  parts  matches that share a transaction, with the index of the first one
    total    number of all matches;  view  for the standing on receipts; None: there is no match
    """

    ladder: str
    refused: Mapping[int, InputError]
    parts: Sequence[tuple[int, _Part]]
    total: int
    view: View | None = None


class RecordedReports(NamedTuple):
    """The outcome of each match, and the ids of live matches among them, which are to be closed."""

    outcomes: list[Outcome]
    live: list[str]


class Recorder:
    """Records matches, a batch in one transaction. Threads may share it; the database's locks keep them apart.

    together  the group commit of callers in threads
    limits    returns the largest match, whatever its ladder allows
    """

    def __init__(
        self,
        database: Database,
        boards: StandingsCache,
        clock: Callable[[], int],
        limits: Callable[[], MatchLimits],
    ) -> None:
        self._database, self._boards, self._clock, self._limits = database, boards, clock, limits
        self._memory = PlayerStateCache()
        self._loaded: set[str] = set()  # ladders whose kernels are loaded
        self._turns = Turns()
        self.together: GroupCommit[ReportBatch, list[Outcome]] = GroupCommit(self._record_each, weigh=len)

    def record(self, ladder: str, reports: ReportBatch) -> list[Outcome]:
        """Record matches. Return for each its receipt, or the error that refused it.

        Other ladders may write between matches with many teams, which take long to rate.
        Raises UnknownNameError for an unknown ladder, StoreError if the matches may or may not have been stored.
        """
        return self.write(self.prepare(ladder, reports)).outcomes

    def prepare(self, ladder: str, reports: ReportBatch) -> PreparedReports:
        """Refuse matches that are too large and pack the others, without a lock. Raises as `record`."""
        if not len(reports):
            return PreparedReports(ladder, {}, [], 0)
        if ladder not in self._loaded:
            self._load(ladder)
        now = self._clock()
        view = self._boards.for_receipts(ladder, now)
        refused = _too_large(reports, self._limits().on(ladder, view.settings))
        if refused:  # by settings that may be a few seconds old
            view = self._boards.view(ladder, now)
            refused = _too_large(reports, self._limits().on(ladder, view.settings))
        spans = list(_spans(reports, refused))
        whole = reports.parts(spans) if spans != [(0, len(reports))] else [reports]
        parts = [(first, _Part(part, _packed(part))) for (first, _), part in zip(spans, whole, strict=True)]
        if parts:
            parts[0][1].ahead = self._read_ahead(view.head, parts[0][1].batch)
        return PreparedReports(ladder, refused, parts, len(reports), view)

    def write(
        self,
        prepared: PreparedReports,
        committing: Callable[[], None] = lambda: None,
        gather: Gather[ReportBatch] = lambda _: [],
    ) -> RecordedReports:
        """Record prepared matches; `committing` is called when a transaction is about to be committed.

        gather  called under the ladder's lock, which may have taken a while to get: takes further matches that meet a
                condition; their outcomes follow those of the others
        """
        outcomes: list[Outcome | None] = [prepared.refused.get(index) for index in range(prepared.total)]
        live: list[str] = []
        is_whole = len(prepared.parts) == 1 and not prepared.refused
        for first, part in prepared.parts:
            assert prepared.view is not None
            fits = partial(_fits, self._limits().on(prepared.ladder, prepared.view.settings))
            late = partial(gather, fits) if is_whole else list
            recorded = self._record(prepared.ladder, prepared.view, part, live, committing, late)
            outcomes[first : first + len(recorded)] = recorded
        return RecordedReports([outcome for outcome in outcomes if outcome is not None], live)

    def _record_each(self, ladder: str, batches: Sequence[ReportBatch]) -> list[list[Outcome]]:
        return ReportBatch.shares(batches, self.record(ladder, ReportBatch.joined(batches)))

    def _record(
        self,
        ladder: str,
        view: View,
        part: _Part,
        live: list[str],
        committing: Callable[[], None],
        late: Callable[[], list[ReportBatch]] = list,
    ) -> list[Outcome]:
        """Record in one transaction; if a match cannot be rated, split in halves until that match is alone.

        If the server ended the transaction because this process was suspended, try once more with the same matches.
        """
        try:
            try:
                return self._try(ladder, view, part, live, committing, late)
            except TransactionTimeoutError:
                pass  # the second attempt is outside, so that its errors are not chained to this one
            return self._try(ladder, view, part, live, committing, list)
        except InputError as error:
            if len(part.reports) == 1:
                return [error]
        reports, half = part.reports, len(part.reports) // 2
        halves = reports.parts([(0, half), (half, len(reports))])
        first, second = (self._record(ladder, view, _Part(part), live, committing) for part in halves)
        return first + second

    def _try(
        self,
        ladder: str,
        view: View,
        part: _Part,
        live: list[str],
        committing: Callable[[], None],
        late: Callable[[], list[ReportBatch]],
    ) -> list[Outcome]:
        now, divided = self._clock(), False
        with self._database.write_ladder(ladder, len(part.reports.player)) as (store, head), self._turns.turn():
            part.add(late())
            batch = part.batch or Batch.of_reports(part.reports)
            plan = event_rows.read_plan(store, head, head.planned)
            if (view.head.generation, view.head.settings) != (head.generation, head.settings):  # the view is outdated
                self._boards.forget(ladder)
                view = take(store, ladder, now)
            transaction = StateTransaction(self._memory, head, part.ahead)
            lookup = look_up(store, head, batch.ids, transaction.after)
            transaction.later = lookup.later
            transaction.note_shared()
            outcomes, count = record(store, head, plan, batch, lookup.known, now, view, transaction)
            if now - head.divided_at > DIVIDE:
                divided = divide(store, view, now) is not None
            if head.position // CHECKPOINT != (head.position + len(batch)) // CHECKPOINT:
                _checkpoint(store, store.head(ladder), plan)
            committing()
        live += lookup.live
        transaction.keep(head.position + count)
        if divided:
            self._boards.divided(view, now)
        return outcomes

    def _load(self, ladder: str) -> None:
        """Load the kernels of a ladder, because compiling in a transaction would hold its lock for seconds."""
        with self._database.read() as store:
            head = store.head(ladder)
            plan = event_rows.read_plan(store, head, head.planned)
        load_kernels(plan.last_rules, in_context=bool(plan.context_columns))
        self._loaded.add(ladder)

    def _read_ahead(self, seen: Head, batch: Batch | None) -> ReadAhead | None:
        """Names and states of the players of a batch, read while another process may hold the ladder's lock.

        None: no other process records on the ladder, so the cache lacks little
        """
        if batch is None or not self._memory.is_shared(seen.ladder):
            return None
        names: list[str] = list(batch.names)
        try:
            check_texts("player name", names)
        except InputError:
            return None  # its match is refused where it is recorded
        with self._database.read() as store:
            head = store.head(seen.name)
            rules = event_rows.read_plan(store, head, head.planned).last_rules
            return read_ahead(store, head, self._memory, rules, names)


def _packed(reports: ReportBatch) -> Batch | None:
    """The batch of these reports; None if one of them is invalid; splitting them will find it."""
    try:
        return Batch.of_reports(reports)
    except InputError:
        return None


def _fits(limits: MatchLimits, reports: ReportBatch) -> bool:
    """Return whether matches may join others under the lock: none of them is large."""
    return max(reports.teams) <= min(limits.teams, TEAMS_OF_LATE) and len(reports.player) <= limits.players


def _too_large(reports: ReportBatch, limits: MatchLimits) -> dict[int, InputError]:
    """The errors of matches with more teams or players than allowed, by index; nothing else is checked."""
    if max(reports.teams) <= limits.teams and len(reports.player) <= limits.players:  # true of nearly all batches
        return {}
    errors: dict[int, InputError] = {}
    for index, (teams, players) in enumerate(zip(reports.teams, reports.players(), strict=True)):
        reason = limits.refusal(teams, players)
        if reason is not None:
            errors[index] = BadRowsError("the match", [RowProblem(None, reports.ids[index], reason)])
    return errors


def _spans(reports: ReportBatch, refused: Mapping[int, InputError]) -> Iterator[tuple[int, int]]:
    """(first, end) of consecutive matches without the refused ones, each with about PAIRS pairs of teams."""
    first, pairs = 0, 0
    for index, teams in enumerate(reports.teams):
        own = 0 if index in refused else teams * (teams - 1) // 2
        if index in refused or pairs + own > PAIRS:
            if index > first:
                yield first, index
            first, pairs = index + (index in refused), 0
        pairs += own
    if first < len(reports):
        yield first, len(reports)


def record(
    store: Store,
    head: Head,
    plan: Plan,
    batch: Batch,
    known: Mapping[str, tuple[int, bytes]],
    now: int,
    view: View,
    transaction: StateTransaction,
) -> tuple[list[Outcome], int]:
    """Record matches on a ladder that the caller has locked. Return their outcomes, and how many are new.

    known  (position, digest) by id, of matches that are already in the ledger
    """
    rules = plan.last_rules
    new, again, refused = classify(store, head, plan, batch, known, now)
    outcomes: dict[int, Outcome] = {**refused}
    if new and view.settings.archived:
        outcomes |= dict.fromkeys(new, archived(head.name))
        new = []
    outcomes |= size_refusals(view.settings, batch, new)
    new = [index for index in new if index not in outcomes]
    outcomes |= name_refusals(store, head, view.settings, batch, new)
    new = [index for index in new if index not in outcomes]
    if new:
        divisions = [division.name for division in view.settings.standings.divisions]
        chosen = batch.take(new)
        added = append(store, head, plan, chosen, now, ReceiptDisplay(view.show, transaction))
        source = RatedBlock(rules.system, added.block, added.rated.journal_lines(), added.names, divisions)
        outcomes |= zip(new, receipts(head.name, chosen.ids, source, view.settings, added.counted_at), strict=True)
    if again:
        before = each_apart(partial(first_receipts, store, head), sorted({batch.ids[index] for index in again}))
        outcomes |= {index: before[batch.ids[index]] for index in again}
    return [outcomes[index] for index in range(len(batch))], len(new)


def _checkpoint(store: Store, head: Head, plan: Plan) -> None:
    """Store a checkpoint if many more events than players have been added since the last one."""
    if head.position - rating_rows.last_checkpoint_position(store, head) >= 4 * rating_rows.count_states(store, head):
        roster = rating_rows.read_whole_roster(store, head, plan)
        rating_rows.put_checkpoint(store, head.ladder, head.generation, roster)
