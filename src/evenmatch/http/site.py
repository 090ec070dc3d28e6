"""What the handlers of one process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TypeVar

from starlette.requests import Request

from evenmatch.errors import EvenmatchError, UnknownNameError
from evenmatch.http.answers import Answers
from evenmatch.http.gather import Gather
from evenmatch.http.limits import RateLimit
from evenmatch.http.metrics import Metrics
from evenmatch.http.options import Options
from evenmatch.http.pages import Pages
from evenmatch.http.views import Views
from evenmatch.http.wakes import Wakes
from evenmatch.service.callers.audit import Audit
from evenmatch.service.callers.keys import Keys
from evenmatch.service.callers.sessions import Sessions
from evenmatch.service.callers.tokens import Tokens
from evenmatch.service.hooks.webhooks import Webhooks
from evenmatch.service.jobs import Jobs
from evenmatch.service.kernels import Kernels
from evenmatch.service.playing.running import Running
from evenmatch.service.queueing.desk import Desk
from evenmatch.service.queueing.statuses import Status
from evenmatch.service.queueing.wishes import Told, Wish
from evenmatch.service.reading import Reading
from evenmatch.service.recording import Outcome
from evenmatch.service.service import Service
from evenmatch.service.sheet import Sheet

T = TypeVar("T")
THREADS = 16  # for what blocks; a database has eight connections that stay open, and more for a rush


@dataclass
class Site:
    """The use cases, and what a process keeps between requests. Made by `Site.over`.

    stopping  set when the process is asked to stop: those who wait are answered at once
    """

    service: Service
    options: Options
    keys: Keys
    tokens: Tokens
    audit: Audit
    desk: Desk
    running: Running
    webhooks: Webhooks
    kernels: Kernels
    metrics: Metrics = field(default_factory=Metrics)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "evenmatch"))
    pages: Pages = field(default_factory=Pages)
    answers: Answers = field(default_factory=Answers)
    wakes: Wakes = field(default_factory=Wakes)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        options = self.options
        self.jobs = Jobs(self.service.database, self.service.clock)
        self.reading = Reading(self.service)
        self.sessions = Sessions(self.service.database, self.service.clock, self.keys)
        self.views = Views(self.service, self.threads, self.pages)
        self.reports: Gather[Sheet, Sequence[Outcome]] = Gather(self._record, self.threads, weigh=len)
        self.wishes: Gather[Wish, Told] = Gather(self._wish, self.threads)
        self.looks: Gather[int, Status] = Gather(self._look, self.threads)
        self.key_limit = RateLimit(options.rate, options.burst)
        self.player_limit = RateLimit(options.player_rate, options.player_burst)
        self.open_limit = RateLimit(options.open_rate, options.open_burst)

    async def work(self, function: Callable[..., T], *arguments: object) -> T:
        """What a blocking function returns, called in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)

    def _record(self, ladder: str, sheets: Sequence[Sheet]) -> Sequence[Sequence[Outcome]]:
        sheet = Sheet.joined(sheets)
        outcomes = self.service.record_sheet(ladder, sheet)
        good = [at for at, outcome in enumerate(outcomes) if not isinstance(outcome, EvenmatchError)]
        self.metrics.matches.labels(ladder, "recorded").inc(len(good))
        self.metrics.matches.labels(ladder, "refused").inc(len(sheet) - len(good))
        if good:
            self.running.settle_reported(ladder, [sheet.ids[at] for at in good], sheet.quitters(good))
        ends = [0, *accumulate(map(len, sheets))]
        return [outcomes[a:b] for a, b in pairwise(ends)]

    def _wish(self, ladder: str, wishes: Sequence[Wish]) -> Sequence[Told | EvenmatchError]:
        outcomes = self.desk.do(ladder, wishes)
        refused = sum(isinstance(one, EvenmatchError) for one in outcomes)
        self.metrics.tickets.labels(ladder, "granted").inc(len(outcomes) - refused)
        self.metrics.tickets.labels(ladder, "refused").inc(refused)
        return outcomes

    def _look(self, ladder: str, tickets: Sequence[int]) -> Sequence[Status | EvenmatchError]:
        found = self.desk.statuses(ladder, tickets)
        return [found.get(one, UnknownNameError("ticket", str(one), ())) for one in tickets]


def site_of(request: Request) -> Site:
    """What the handlers of this application share."""
    site: Site = request.app.state.site
    return site
