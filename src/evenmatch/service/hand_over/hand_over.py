"""Record reports together with those of other processes: here, or by the process that records their ladder.

What it must never rest on: that the other process exists, answers, or is the only one. Whoever gets no answer records
by itself, under the lock of the ladder's row; a match that was recorded before then is the same match.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, cast

from evenmatch import systems
from evenmatch.errors import SecretError
from evenmatch.ledger.block_rating import engine_of
from evenmatch.ledger.database import Database
from evenmatch.service.group_commit import unanswered
from evenmatch.service.hand_over.connection import NAME
from evenmatch.service.hand_over.fellow_processes import Fellow, FellowProcesses, machine
from evenmatch.service.hand_over.receiver import ReportReceiver
from evenmatch.service.hand_over.sender import ReportSender
from evenmatch.service.recording.recorder import Outcome
from evenmatch.service.recording.report_batch import ReportBatch

AGAIN = 60.0  # seconds until a process that could not listen tries again
PURPOSE = b"hand-over of reports"
END = 2.0  # seconds for the connections to end

log = logging.getLogger(__name__)

Record = Callable[[str, ReportBatch], Awaitable[list[Outcome]]]


class HandOverSettings(NamedTuple):
    """How a process hands reports over.

    takes_part  False: it records by itself, and nothing for others
    kind        processes with another one are left out: version and limits
    host, port  where processes of other machines reach it; None: they do not; port 0: any free one
    """

    takes_part: bool
    kind: str
    host: str | None
    port: int


class HandOver:
    """The hand-over of one process that serves.

    here      records reports with what this process has of its own;  within: seconds for a request
    count     called with a ladder, what became of reports that were handed over, and how many they are
    is_ready  whether its kernels are loaded;  is_stopping  whether it was asked to stop
    """

    def __init__(
        self,
        database: Database,
        settings: HandOverSettings,
        wall: Callable[[], int],
        here: Record,
        within: float,
        count: Callable[[str, str, int], None],
        is_ready: Callable[[], bool],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._database, self._settings, self._wall = database, settings, wall
        self._here, self._within, self._count = here, within, count
        self._is_ready, self._is_stopping = is_ready, is_stopping
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fellows: FellowProcesses | None = None
        self._secret = b""
        self._senders: dict[str, ReportSender] = {}

    async def record(self, ladder: str, reports: ReportBatch) -> list[Outcome]:
        """Record reports of a ladder; the outcome of each. Raises StoreError if it is not known what was stored."""
        fellows = self._fellows
        other = None if fellows is None else fellows.recorder_of(ladder)
        if fellows is None or other is None:
            return await self._here(ladder, reports)
        sender = self._senders.get(other.process)
        if sender is None:
            self._forget_dead(fellows)
            sender = ReportSender(self._secret, fellows.own, other, lambda: fellows.is_alive(other))
            self._senders[other.process] = sender
        if not sender.is_open():
            return await self._here(ladder, reports)
        try:
            async with asyncio.timeout(self._within):
                return await self._by(sender, ladder, reports)
        except TimeoutError:
            raise unanswered(self._within) from None

    async def _by(self, sender: ReportSender, ladder: str, reports: ReportBatch) -> list[Outcome]:
        """Record by another process, and here what it did not record."""
        outcomes = await sender.ask(ladder, reports)
        if outcomes is None:
            self._count(ladder, "taken back", len(reports))
            return await self._here(ladder, reports)
        left = [index for index, outcome in enumerate(outcomes) if outcome is None]
        self._count(ladder, "recorded", len(reports) - len(left))
        if left:
            again = ReportBatch.joined([reports.part(index, index + 1) for index in left])
            for index, outcome in zip(left, await self._here(ladder, again), strict=True):
                outcomes[index] = outcome
        return cast("list[Outcome]", outcomes)  # there is no None left

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """State the event loop of the requests; call it before `run`."""
        self._loop = loop

    def run(self, stop: threading.Event) -> None:
        """Take part until `stop` is set: a background worker, in a thread of its own."""
        loop = self._loop
        assert loop is not None
        if not self._settings.takes_part:
            return
        while not stop.is_set():
            receiver: ReportReceiver | None = None
            folder = None
            try:
                folder = Path(tempfile.mkdtemp(prefix="evenmatch-"))  # only its owner can enter it
                self._secret = self._database.master.sealer().key_of(PURPOSE)
                name, host, path = secrets.token_hex(NAME // 2), self._settings.host, folder / "socket"
                receiver = ReportReceiver(self._secret, name, self._here)
                listening = receiver.listen(path, host, self._settings.port)
                port = asyncio.run_coroutine_threadsafe(listening, loop).result()
                own = Fellow(name, _kind(self._settings), machine(), str(path), host, port)
                self._fellows = FellowProcesses(self._database, own, self._wall)
                self._fellows.run(stop, self._is_ready, self._is_stopping)
                stop.wait()  # replies to the last requests are on their way
            except (OSError, SecretError) as error:
                log.warning("reports are not handed over: %s", error)
                stop.wait(AGAIN)
            finally:
                self._fellows = None
                self._end_in(loop, receiver)
                if folder is not None:
                    shutil.rmtree(folder, ignore_errors=True)

    def _end_in(self, loop: asyncio.AbstractEventLoop, receiver: ReportReceiver | None) -> None:
        """End all connections, unless the event loop has ended, and they with it: after a change of the database."""
        ending = self._end(receiver)
        try:
            asyncio.run_coroutine_threadsafe(ending, loop).result(END)
        except TimeoutError:
            log.warning("connections of the hand-over did not end within %g s", END)
        except RuntimeError:
            ending.close()

    async def _end(self, receiver: ReportReceiver | None) -> None:
        for sender in self._senders.values():
            sender.close()
        self._senders = {}
        if receiver is not None:
            await receiver.close()

    def _forget_dead(self, fellows: FellowProcesses) -> None:
        for process, sender in list(self._senders.items()):
            if not sender.is_alive():
                sender.close()
                del self._senders[process]


def _kind(settings: HandOverSettings) -> str:
    """A text that processes share which record a report alike; the engine of one system tells compilers and machine."""
    return f"{settings.kind} {engine_of(systems.find('elo'))}"
