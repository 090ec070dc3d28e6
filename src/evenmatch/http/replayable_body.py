"""The body of a request, read before the application that reads it again."""

from __future__ import annotations

from starlette.types import Message, Receive

from evenmatch.http.request_context import BodyTooLargeError


class ReplayableBody:
    """The messages of a body, which can be received again from the first one, including a final error."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []
        self._error: BodyTooLargeError | None = None

    async def whole(self) -> bytes | None:
        """Read the whole body; None if the client disconnected or the body is too large."""
        while True:
            try:
                message = await self._receive()
            except BodyTooLargeError as error:
                self._error = error
                return None
            self._read.append(message)
            if message["type"] != "http.request":
                return None
            if not message.get("more_body", False):
                return b"".join(part.get("body", b"") for part in self._read)

    async def __call__(self) -> Message:
        """The next message, as ASGI `receive`."""
        if self._read:
            return self._read.pop(0)
        if self._error is not None:
            raise self._error
        return await self._receive()
