"""New connections of a listening socket that several processes share: the process with the fewest takes the next one.

Left to the kernel, the first process to wake up takes all that wait (asyncio) or most of them (uvloop), and a client
keeps its connection for hours. With a socket for each process (SO_REUSEPORT) the spread is that of chance, and the
connections for a process that died wait until it is there again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from evenmatch.http.processes.group import CLOSED, SharedMemory

LATER = 0.005  # seconds that a process with more connections than another waits before it takes one nevertheless
AGAIN = 0.1  # seconds until the next attempt where the system has no room for a connection


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
            self._wait(AGAIN)
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
