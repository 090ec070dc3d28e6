"""The end of a serving process whose successor is ready, in which no request fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from evenmatch.http.logs import log
from evenmatch.http.processes.acceptor import Acceptor
from evenmatch.http.processes.commands import READY, Supervision
from evenmatch.http.routes.jobs import obstacle
from evenmatch.http.site import Site

SHARE = 0.5  # of the time to stop: until then, open connections may send another request
LOOK = 0.05  # seconds between two looks at the open connections
AGAIN = 0.2  # seconds between two looks whether a process is ready


class Retirement:
    """A process that accepts no more connections, and answers those that are open until they are closed.

    A connection that is closed while its client sends a request fails this request. So none is closed at first: the
    response to its next request closes it, and says so. Those without one are closed at the end.
    after  called when all are closed, or after SHARE of the time to stop
    """

    def __init__(self, site: Site, acceptor: Acceptor, after: Callable[[], None]) -> None:
        self._site, self.acceptor, self._after = site, acceptor, after
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    def ask(self) -> None:
        """Begin. May be called by any thread."""
        self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._retire())

    async def _retire(self) -> None:
        log.info("retiring", connections=self.acceptor.note())
        self.acceptor.stop()
        self._site.retiring.set()
        self._site.stopping.set()
        if self._site.exchange is not None:
            self._site.exchange.close()
        until = time.monotonic() + SHARE * self._site.options.stop_within
        while self.acceptor.note() and time.monotonic() < until:
            await asyncio.sleep(LOOK)
        self._after()


async def tell_ready(site: Site, supervision: Supervision) -> None:
    """Tell the supervisor when this process is ready, as /readyz says it."""
    while await obstacle(site) is not None:
        await asyncio.sleep(AGAIN)
    supervision.tell(READY)
