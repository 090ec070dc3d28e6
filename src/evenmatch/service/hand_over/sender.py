"""The side of a hand-over that took the requests: sends reports to the process that records their ladder."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from evenmatch.errors import SecretError, UsageError
from evenmatch.service.group_commit import MOST
from evenmatch.service.hand_over.connection import BUFFER, PeerConnection
from evenmatch.service.hand_over.fellow_processes import Fellow
from evenmatch.service.hand_over.messages import (
    LARGEST,
    HandOverReply,
    HandOverRequest,
    decode_reply,
    encode,
    outcomes_of,
)
from evenmatch.service.recording.recorder import Outcome
from evenmatch.service.recording.report_batch import ReportBatch

QUIET = 2.5  # seconds without a sign of life after which what was handed over is taken back
LONGEST = 9.0  # seconds until a reply must be there; the rest of a request's time is for recording it here
LOOK = 0.25  # seconds between two looks at what was handed over
AVOIDED = 5.0  # seconds in which nothing is handed to a process that failed
UNSENT = 16 * 2**20  # bytes that wait to be sent; then nothing more is handed over

log = logging.getLogger(__name__)

Share = list[Outcome | None] | None


class _Waiting(NamedTuple):
    """Reports that one request brought, and its promise: the outcome of each, None where nothing is known."""

    reports: ReportBatch
    promise: asyncio.Future[Share]


class _Sent(NamedTuple):
    """A request on its way. sent_at: seconds on the monotonic clock"""

    ladder: str
    reports: ReportBatch
    waiting: list[_Waiting]
    sent_at: float


class ReportSender:
    """Hands reports over to one other process. Of one event loop.

    secret  a key that all processes of the database derive;  own, other: this process and that one
    is_alive  whether the other process's heartbeat goes on
    """

    def __init__(self, secret: bytes, own: Fellow, other: Fellow, is_alive: Callable[[], bool]) -> None:
        self._secret, self._own, self._other, self.is_alive = secret, own, other, is_alive
        self._connection: PeerConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._collected: dict[str, list[_Waiting]] = defaultdict(list)
        self._sent: dict[int, _Sent] = {}
        self._number = 0
        self._heard = 0.0
        self._avoided_until = 0.0

    async def ask(self, ladder: str, reports: ReportBatch) -> Share:
        """The outcomes by the other process, None where it is to be recorded here; None at all: nothing is known.

        Call it at once when `is_open`.
        """
        loop = asyncio.get_running_loop()
        promise: asyncio.Future[Share] = loop.create_future()
        if not self._collected:
            loop.call_soon(self._flush)
        self._collected[ladder].append(_Waiting(reports, promise))
        return await promise

    def is_open(self) -> bool:
        """Whether reports can be handed over now; if not, begin to connect."""
        if self._connection is None:
            self._connect()
            return False
        return self._connection.unsent <= UNSENT

    def close(self) -> None:
        """End the connection."""
        if self._task is not None:
            self._task.cancel()

    def _connect(self) -> None:
        """Begin to connect, unless that is going on or has just failed."""
        if self._task is None and time.monotonic() >= self._avoided_until:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Connect, and read replies until the connection ends."""
        failure: Exception | None = None
        try:
            connection = await self._open()
            self._heard = time.monotonic()
            self._connection = connection
            watching = asyncio.create_task(self._watch(connection))
            try:
                while True:
                    self._resolve(decode_reply(await connection.receive()))
            finally:
                watching.cancel()
                connection.close()
        except (OSError, EOFError, TimeoutError, SecretError, ValueError, UsageError, msgspec.MsgspecError) as error:
            failure = error
        finally:
            self._connection, self._task = None, None
            self._avoided_until = time.monotonic() + AVOIDED
            self._take_back()
        log.info("reports are not handed over to %s any more: %r", self._other.process[:8], failure)

    async def _open(self) -> PeerConnection:
        near = self._own.machine == self._other.machine
        async with asyncio.timeout(QUIET):
            if near:
                reader, writer = await asyncio.open_unix_connection(self._other.socket, limit=BUFFER)
            else:
                reader, writer = await asyncio.open_connection(self._other.host, self._other.port, limit=BUFFER)
        try:
            names = self._own.process, self._other.process
            return await PeerConnection.begun(reader, writer, self._secret, *names, encrypted=not near)
        except BaseException:
            writer.close()
            raise

    async def _watch(self, connection: PeerConnection) -> None:
        """End the connection if the other process is gone or does not carry out what it was handed."""
        while True:
            await asyncio.sleep(LOOK)
            now = time.monotonic()
            oldest = min((sent.sent_at for sent in self._sent.values()), default=now)
            silent = bool(self._sent) and now - max(self._heard, oldest) > QUIET
            if silent or now - oldest > LONGEST or not self.is_alive():
                connection.abort()
                return

    def _flush(self) -> None:
        """Send what was collected since the event loop's last turn: a message for each ladder."""
        collected, self._collected = self._collected, defaultdict(list)
        for ladder, waiting in collected.items():
            part: list[_Waiting] = []
            for request in waiting:
                if part and sum(len(other.reports) for other in part) + len(request.reports) > MOST:
                    self._send(ladder, part)
                    part = []
                part.append(request)
            self._send(ladder, part)

    def _send(self, ladder: str, waiting: list[_Waiting]) -> None:
        self._number += 1
        reports = ReportBatch.joined([request.reports for request in waiting])
        try:
            message = encode(HandOverRequest(self._number, ladder, reports))
        except (UnicodeError, OverflowError):  # what no message holds is refused here, with its reason
            message = None
        if message is None or len(message) > LARGEST or self._connection is None:
            _answer(waiting, None)
            return
        self._sent[self._number] = _Sent(ladder, reports, waiting, time.monotonic())
        self._connection.send(message)

    def _resolve(self, reply: HandOverReply) -> None:
        self._heard = time.monotonic()
        sent = self._sent.pop(reply.number, None)
        if sent is None:  # a sign of life
            return
        try:
            outcomes = outcomes_of(sent.ladder, sent.reports, reply) if reply.done else None
        except Exception:
            _answer(sent.waiting, None)
            raise
        _answer(sent.waiting, outcomes)

    def _take_back(self) -> None:
        sent, self._sent = self._sent, {}
        for request in sent.values():
            _answer(request.waiting, None)


def _answer(waiting: list[_Waiting], outcomes: list[Outcome | None] | None) -> None:
    """Give each request its part of the outcomes."""
    batches = [request.reports for request in waiting]
    shares: list[Share] = [None] * len(waiting)
    if outcomes is not None:
        shares = list(ReportBatch.shares(batches, outcomes))
    for request, share in zip(waiting, shares, strict=True):
        if not request.promise.done():  # otherwise the client is gone
            request.promise.set_result(share)
