"""The services, caches, limits and worker threads that the request handlers of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from starlette.requests import Request

from evenmatch.accounts.access import Caller
from evenmatch.accounts.audit_trail import Audit
from evenmatch.accounts.idempotent_requests import IdempotentRequests
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.linked_accounts import LinkedAccounts
from evenmatch.accounts.sessions import OperatorGroups, Sessions
from evenmatch.accounts.signing import SeenSignatures, SignedRequest
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import AccessError, BusyError, EvenmatchError, StoreError, UnansweredError, UnknownNameError
from evenmatch.http.cached_standings import CachedResponses, SharedComputations, ViewCache
from evenmatch.http.hosts import AllowedHosts
from evenmatch.http.limited_threads import RETRY, LimitedThreads
from evenmatch.http.logs import log
from evenmatch.http.metrics import HttpMetrics
from evenmatch.http.options import Options
from evenmatch.http.rate_limits import RateLimit
from evenmatch.http.readiness import Readiness
from evenmatch.http.waiting_requests import TicketNotifications, WaitingRequests
from evenmatch.jobs.jobs import Jobs
from evenmatch.jobs.worker import LadderWork
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.visibility import Visibility
from evenmatch.live.live_matches import Running
from evenmatch.operations.kernels import Kernels
from evenmatch.operations.open_database import DailyCheck
from evenmatch.operations.service import Service
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import QueueRequest, RequestResult
from evenmatch.queues.ticket_status import Status, StatusRead
from evenmatch.recording.group_commit import Call, Gather, GroupCommit, unanswered
from evenmatch.recording.recorder import Outcome, PreparedReports
from evenmatch.recording.report_batch import ReportBatch
from evenmatch.webhooks.subscriptions import Webhooks

T = TypeVar("T")
REPORT_LIMIT = 15.0  # seconds before a report, or a request to a queue, times out
IDENTITY_LIMIT = 10.0  # seconds before the lookup of a key times out
CALL_LIMIT = 60.0  # seconds before any other request times out, unless its work may take longer
RESOLVE_LIMIT = 3.0  # seconds within which the host of a new webhook must be resolved
ALL = ""  # replaces the ladder where requests of all ladders share a transaction
THREADS = 16  # for blocking calls; the connection pool keeps eight connections open and adds more under load


@dataclass
class Site:
    """What the request handlers of a process share. Created by `server.site_over`.

    stopping  set when the process is asked to stop, which ends long polls and streams
    """

    service: Service
    options: Options
    keys: Keys
    accounts: LinkedAccounts
    tokens: Tokens
    audit: Audit
    queue_service: QueueService
    running: Running
    webhooks: Webhooks
    kernels: Kernels
    metrics: HttpMetrics = field(default_factory=HttpMetrics)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "evenmatch"))
    body_threads: LimitedThreads = field(default_factory=lambda: LimitedThreads("bodies of ladder", 1, 1, 1000))
    ladder_threads: LimitedThreads = field(default_factory=lambda: LimitedThreads("ladder", THREADS, 2, 32))
    odds_threads: LimitedThreads = field(default_factory=lambda: LimitedThreads("odds of", 3, 2, 256))
    list_threads: LimitedThreads = field(default_factory=lambda: LimitedThreads("running matches of ladder", 2, 1, 8))
    resolving: LimitedThreads = field(default_factory=lambda: LimitedThreads("webhooks of ladder", 8, 2, 8))
    answers: CachedResponses = field(default_factory=CachedResponses)
    ticket_notifications: TicketNotifications = field(default_factory=TicketNotifications)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        options = self.options
        self.jobs = Jobs(self.service.database, self.service.clock, options.jobs_at_once)
        self.ladder_work = LadderWork(self.service, self.jobs)
        operators = OperatorGroups(options.operator_issuer, options.operator_groups)
        self.sessions = Sessions(self.service.database, self.service.clock, self.keys, self.tokens, operators)
        self.seen_signatures = SeenSignatures(self.service.database, self.service.clock)
        self.idempotent_requests = IdempotentRequests(self.service.database, self.service.clock)
        self.readiness = Readiness(self.service)
        self.daily_check = DailyCheck(self.service.database, self.queue_service.leases)
        self.waiting = WaitingRequests(self.stopping, self.metrics.waiting)
        self.computations = SharedComputations()
        self.views = ViewCache(self.service, self.work, self.answers, self.computations)
        start = self.threads.submit
        self.reports: GroupCommit[ReportBatch, list[Outcome]] = GroupCommit.staged(
            self._prepare_reports, start, _log_bug, len, REPORT_LIMIT
        )
        self.wishes: GroupCommit[QueueRequest, RequestResult] = GroupCommit(
            self._queue, start, _log_bug, within=REPORT_LIMIT
        )
        self.status_reads: GroupCommit[StatusRead, Status] = GroupCommit(
            self._statuses, start, _log_bug, within=REPORT_LIMIT
        )
        self.signed_requests: GroupCommit[SignedRequest, None] = GroupCommit(
            self._accept, start, _log_bug, within=REPORT_LIMIT
        )
        self.key_limit = RateLimit(options.rate, options.burst, "EVENMATCH_RATE and EVENMATCH_BURST")
        of_players = "EVENMATCH_PLAYER_RATE and EVENMATCH_PLAYER_BURST"
        self.player_limit = RateLimit(options.player_rate, options.player_burst, of_players)
        of_strangers = "EVENMATCH_OPEN_RATE and EVENMATCH_OPEN_BURST"
        self.open_limit = RateLimit(options.open_rate, options.open_burst, of_strangers)
        self.lookup_limit = RateLimit(options.open_rate, options.open_burst, of_strangers)
        self.hosts = AllowedHosts(options.hosts, options.host)

    def reading(self, caller: Caller) -> LadderQueries:
        """Return the queries on ladders, limited to what this caller may see."""
        return LadderQueries(self.service, caller=caller)

    async def visibility(self, caller: Caller, ladder: str) -> Visibility:
        """Return what this caller may see of a ladder, by settings that may be some seconds old.

        Raises UnknownNameError.
        """
        return Visibility.of((await self.views.view(ladder)).settings, caller, ladder)

    async def work(self, function: Callable[..., T], *arguments: object, is_limited: bool = True) -> T:
        """Call a blocking function in a worker thread and return its result.

        Raises UnansweredError after CALL_LIMIT seconds, unless `is_limited` is false. A call that has started still
        runs to completion.
        """
        call = self.threads.submit(function, *arguments)
        try:
            async with asyncio.timeout(CALL_LIMIT if is_limited else None):
                return await asyncio.wrap_future(call)
        except TimeoutError:
            raise UnansweredError(
                f"this was not answered within {CALL_LIMIT:g} s; a change may have been made: read before you repeat "
                "it",
                call,
            ) from None

    async def odds(self, caller: Caller, function: Callable[..., T], *arguments: object) -> T:
        """Compute odds in their own threads, with a limit per caller, since those of hundreds of teams take seconds.

        Raises BusyError if too many requests of the caller wait for odds.
        """
        return await self.odds_threads.work(caller.key, function, *arguments)

    async def convert(self, ladder: str, function: Callable[..., T], *arguments: object) -> T:
        """Read or write the large body of a report or a request to a queue, in the one thread for these.

        The thread takes one body of each ladder at a time, so that one ladder's backlog does not delay the others.
        Several threads would not be faster, since Python runs one at a time, and they would slow down the thread that
        holds the lock of a ladder. Raises StoreError after REPORT_LIMIT seconds, BusyError if too many bodies of the
        ladder wait.
        """
        try:
            async with asyncio.timeout(REPORT_LIMIT):
                return await self.body_threads.work(ladder, function, *arguments)
        except TimeoutError:
            raise unanswered(REPORT_LIMIT) from None

    async def identify(self, function: Callable[..., T], *arguments: object) -> T:
        """Look up a caller in a worker thread. Raises StoreError after IDENTITY_LIMIT seconds."""
        call = asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        try:
            return await asyncio.wait_for(call, IDENTITY_LIMIT)
        except TimeoutError:
            raise StoreError(f"the key was not looked up within {IDENTITY_LIMIT:g} s; nothing was changed") from None

    async def change(self, ladder: str, function: Callable[..., T], *arguments: object) -> T:
        """Call a blocking function that may wait for the lock of a ladder. Raises BusyError if too many wait for it.

        ladder  empty for changes to the names of players, which all ladders share
        """
        return await self.ladder_threads.work(ladder, function, *arguments)

    async def check_webhook(self, ladder: str | None, url: str) -> None:
        """Check the URL of a new webhook in separate threads: the owner of its host decides how long that takes.

        Raises InputError if it is not allowed, BusyError if its host was not resolved within RESOLVE_LIMIT.
        """
        check = asyncio.ensure_future(self.resolving.work(ladder or ALL, self.webhooks.check, url))
        done, _ = await asyncio.wait({check}, timeout=RESOLVE_LIMIT)
        if not done:
            check.cancel()
            raise BusyError(
                f"the host of {url[:100]!r} was not resolved within {RESOLVE_LIMIT:g} s; the webhook was not created: "
                "check the name, or try again in a moment",
                RETRY,
            )
        await check

    def close(self) -> None:
        """Wait for the worker threads to finish."""
        self.resolving.shutdown()
        self.list_threads.shutdown()
        self.odds_threads.shutdown()
        self.ladder_threads.shutdown()
        self.body_threads.shutdown()
        self.threads.shutdown(wait=True)

    def _prepare_reports(self, ladder: str, batches: Sequence[ReportBatch]) -> Call[ReportBatch, list[Outcome]]:
        joined = ReportBatch.joined(batches)
        return partial(self._record, ladder, batches, joined, self.service.recorder.prepare(ladder, joined))

    def _record(
        self,
        ladder: str,
        batches: Sequence[ReportBatch],
        joined: ReportBatch,
        prepared: PreparedReports,
        committing: Callable[[], None],
        gather: Gather[ReportBatch],
    ) -> list[list[Outcome]]:
        late: list[ReportBatch] = []

        def gathered(fits: Callable[[ReportBatch], bool]) -> list[ReportBatch]:
            late.extend(gather(fits))
            return late

        outcomes, live = self.service.recorder.write(prepared, committing, gathered)
        if late:
            batches, joined = [*batches, *late], ReportBatch.joined([joined, *late])
        recorded = [index for index, outcome in enumerate(outcomes) if not isinstance(outcome, EvenmatchError)]
        self.metrics.matches.labels(ladder, "recorded").inc(len(recorded))
        self.metrics.matches.labels(ladder, "refused").inc(len(joined) - len(recorded))
        if live:
            self._close_live(ladder, set(live), joined, recorded)
        return ReportBatch.shares(batches, outcomes)

    def _close_live(self, ladder: str, live: set[str], reports: ReportBatch, recorded: Sequence[int]) -> None:
        """Close the recorded matches that were live."""
        closed = [index for index in recorded if reports.ids[index] in live]
        if closed:
            self.running.settle_reported(ladder, [reports.ids[index] for index in closed], reports.quitters(closed))

    def _queue(self, ladder: str, requests: Sequence[QueueRequest]) -> Sequence[RequestResult | EvenmatchError]:
        outcomes = self.queue_service.apply(ladder, requests)
        refused = sum(isinstance(outcome, EvenmatchError) for outcome in outcomes)
        self.metrics.tickets.labels(ladder, "granted").inc(len(outcomes) - refused)
        self.metrics.tickets.labels(ladder, "refused").inc(refused)
        return outcomes

    def _statuses(self, ladder: str, reads: Sequence[StatusRead]) -> Sequence[Status | EvenmatchError]:
        since: dict[int, int] = {}
        for ticket, known in reads:
            since[ticket] = min(known, since.get(ticket, known))
        statuses = self.queue_service.statuses(ladder, list(since), since)
        return [statuses.get(read.ticket, UnknownNameError("ticket", str(read.ticket), ())) for read in reads]

    def _accept(self, _: str, requests: Sequence[SignedRequest]) -> Sequence[AccessError | None]:
        return self.seen_signatures.accept(requests)


def _log_bug(error: BaseException) -> None:
    log.error("bug", exc_info=error)


def site_of(request: Request) -> Site:
    """Return the site of the application that handles this request."""
    site: Site = request.app.state.site
    return site
