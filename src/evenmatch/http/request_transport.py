"""The transport of a connection as the request that is answered on it may use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class RequestTransport:
    """A transport that drops what is written after its end: the application may not know yet that the client has gone.

    close  called in place of the transport's own, which would reset a connection that still receives
    """

    __slots__ = ("_transport", "close", "is_closing")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport, self.is_closing, self.close = transport, transport.is_closing, close

    def write(self, data: bytes) -> None:
        """Send this to the client."""
        if not self.is_closing():
            self._transport.write(data)
