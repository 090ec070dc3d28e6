"""The side of a hand-over that records: listens for other processes, and records what they hand over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from evenmatch.errors import EvenmatchError, SecretError
from evenmatch.service.hand_over.connection import BUFFER, PeerConnection
from evenmatch.service.hand_over.messages import (
    ALIVE,
    LARGEST,
    HandOverReply,
    HandOverRequest,
    encode,
    read_request,
    reply_to,
)
from evenmatch.service.recording.recorder import Outcome
from evenmatch.service.recording.report_batch import ReportBatch

SIGN_OF_LIFE = 0.5  # seconds between two signs of life while a request is carried out
STRANGERS = 64  # connections whose other end has not proved itself yet; further ones are closed
UNREAD = 64 * 2**20  # bytes of replies that the other side has not read; then the connection is closed

log = logging.getLogger(__name__)

Record = Callable[[str, ReportBatch], Awaitable[list[Outcome]]]


class ReportReceiver:
    """Listens on a Unix socket, and on a port if other machines are to reach this process. Of one event loop.

    secret  a key that all processes of the database derive;  name  of this process
    record  records reports of a ladder together with those of this process
    """

    def __init__(self, secret: bytes, name: str, record: Record) -> None:
        self._secret, self._name, self._record = secret, name, record
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()
        self._strangers = 0

    async def listen(self, path: Path, host: str | None, port: int) -> int:
        """Begin to listen at the path, and at an address of this machine, if there is one; the port. Raises OSError."""
        self._servers.append(await asyncio.start_unix_server(self._accept(encrypted=False), path, limit=BUFFER))
        if host is None:
            return 0
        server = await asyncio.start_server(self._accept(encrypted=True), host, port, limit=BUFFER)
        self._servers.append(server)
        bound: int = server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """End all connections; who waits for a reply records by itself."""
        for server in self._servers:
            server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, *, encrypted: bool) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._open.add(task)
            try:
                await self._serve(reader, writer, encrypted=encrypted)
            except asyncio.CancelledError:
                pass  # this process stops
            finally:
                self._open.discard(task)
                writer.close()

        return accept

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, encrypted: bool) -> None:
        if self._strangers >= STRANGERS:
            return
        self._strangers += 1
        try:
            connection = await PeerConnection.accepted(reader, writer, self._secret, self._name, encrypted=encrypted)
        except (OSError, EOFError, TimeoutError, SecretError) as error:
            log.warning("a hand-over was refused: %s", str(error) or type(error).__name__)
            return
        finally:
            self._strangers -= 1
        running: set[asyncio.Task[None]] = set()
        living = asyncio.create_task(_show_life(connection, running))
        try:
            while True:
                request = read_request(await connection.receive())
                task = asyncio.create_task(self._carry_out(connection, request))
                running.add(task)
                task.add_done_callback(running.discard)
        except (OSError, EOFError):
            pass  # the other process is gone, or does not need this one any more
        except (SecretError, ValueError, msgspec.MsgspecError) as error:
            log.warning("a hand-over was ended: %s", error)
        finally:
            living.cancel()
            for task in running:
                task.cancel()

    async def _carry_out(self, connection: PeerConnection, request: HandOverRequest) -> None:
        """Record what was handed over, and reply."""
        message = unknown = encode(HandOverReply(request.number, False, [], [], {}))
        try:
            message = encode(reply_to(request, await self._record(request.ladder, request.reports)))
        except EvenmatchError:
            pass  # who asked records by itself, and gets the error
        except Exception:
            log.exception("bug")
        if len(message) > LARGEST:
            message = unknown
        if connection.unsent > UNREAD:
            connection.close()
        else:
            connection.send(message)


async def _show_life(connection: PeerConnection, running: set[asyncio.Task[None]]) -> None:
    """Say that this process lives while it has something to do for the other one."""
    while True:
        await asyncio.sleep(SIGN_OF_LIFE)
        if running:
            connection.send(encode(ALIVE))
