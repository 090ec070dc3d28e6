"""The transport of a connection as the request that is answered on it may use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HELD_BYTES = 16 * 1024  # a longer write is neither held back nor copied, which would cost more than a system call


class RequestTransport:
    """A transport that sends a short write with the next one: head and body of a response need one system call.

    Without a next one it is sent at the end of the response, or when the event loop is free again. What is written
    after the end of the connection is dropped: the application may not know yet that the client has gone.

    close  called in place of the transport's own, which would reset a connection that still receives
    """

    __slots__ = ("_held", "_is_due", "_loop", "_transport", "close", "is_closing")

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, close: Callable[[], None]
    ) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing, self.close = transport.is_closing, close
        self._held, self._is_due = b"", False

    def write(self, data: bytes) -> None:
        """Send this to the client."""
        if len(data) > HELD_BYTES:
            self.flush()
            self._send(data)
        elif self._held:
            held, self._held = self._held, b""
            self._send(held + data)
        else:
            self._held = bytes(data)
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._send_late)

    def flush(self) -> None:
        """Send what is held back. Must be called before the transport itself is written to, or closed."""
        if self._held:
            held, self._held = self._held, b""
            self._send(held)

    def _send_late(self) -> None:
        self._is_due = False
        self.flush()

    def _send(self, data: bytes) -> None:
        if not self.is_closing():
            self._transport.write(data)
