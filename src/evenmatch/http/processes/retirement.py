"""How a serving process takes connections beside the others, and how it ends when its successor is ready.

The process with the fewest connections takes the next one. Left to the kernel, the first process to wake up takes all
or most of those that wait, and clients keep connections for hours. With a socket per process (SO_REUSEPORT) the spread
is random, and the connections of a dead process wait until it is replaced. A retiring process lets no request fail.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

from evenmatch.http.logs import log
from evenmatch.http.processes.group import CLOSED, READY, SharedMemory, Supervision
from evenmatch.http.routes.jobs import obstacle
from evenmatch.http.site import Site

LATER = 0.005  # seconds that a process with more connections than another waits before it takes one nevertheless
ACCEPTOR_AGAIN = 0.1  # seconds until the next attempt where the system has no room for a connection


class Acceptor:
    """Accepts connections for one process. Use it in the event loop's thread.

    make   creates the protocol of a connection
    count  the number of open connections of this process
    """

    def __init__(
        self,
        listening: socket.socket,
        memory: SharedMemory,
        cell: int,
        make: Callable[[], asyncio.Protocol],
        count: Callable[[], int],
    ) -> None:
        self._listening, self._memory, self._cell = listening, memory, cell
        self._make, self._count = make, count
        self._loop = asyncio.get_running_loop()
        self._starting: set[asyncio.Task[object]] = set()  # accepted, and not yet counted by their protocol
        self._later: asyncio.TimerHandle | None = None
        self._is_open = False

    def start(self) -> None:
        """Begin to accept."""
        self._listening.setblocking(False)
        self._is_open = True
        self.note()
        self._loop.add_reader(self._listening, self._arrived)

    def stop(self) -> None:
        """Accept no more; what has not been accepted waits for the other processes."""
        if self._is_open:
            self._is_open = False
            self._memory.connections[self._cell] = CLOSED
            self._loop.remove_reader(self._listening)
            if self._later is not None:
                self._later.cancel()

    def note(self) -> int:
        """Tell the other processes how many connections this one has, and return it."""
        connections = self._count() + len(self._starting)
        if self._is_open:
            self._memory.connections[self._cell] = connections
        return connections

    def _arrived(self) -> None:
        if self.note() > self._memory.least():
            self._wait(LATER)
        else:
            self._accept()

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._later = self._loop.call_later(seconds, self._again)

    def _again(self) -> None:
        self._later = None
        if self._is_open and self._accept():
            self._loop.add_reader(self._listening, self._arrived)

    def _accept(self) -> bool:
        """Accept one connection if one still waits; False: the system has no room, a later attempt is due."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return True  # another process was faster, or the client has gone
        except OSError:
            self._wait(ACCEPTOR_AGAIN)
            return False
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._make, connection))
        self._starting.add(task)
        task.add_done_callback(self._started)
        self.note()
        return True

    def _started(self, task: asyncio.Task[object]) -> None:
        self._starting.discard(task)
        if not task.cancelled():
            task.exception()  # the client has gone: mark it as retrieved


SHARE = 0.5  # of the time to stop: until then, open connections may send another request
LOOK = 0.05  # seconds between two looks at the open connections
RETIREMENT_AGAIN = 0.2  # seconds between two looks whether a process is ready


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
        await asyncio.sleep(RETIREMENT_AGAIN)
    supervision.tell(READY)
