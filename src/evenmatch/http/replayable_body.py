"""The body of a request, read before the application that reads it again."""

from __future__ import annotations

from starlette.types import Message, Receive


class ReplayableBody:
    """The messages of a body, which can be received again from the first one."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []

    async def whole(self) -> bytes | None:
        """Read the whole body; None if the client disconnected. Raises BodyRefusedError."""
        parts = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._read = [message]  # nothing is done with the part that came
                return None
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                body = b"".join(parts)
                self._read = [{"type": "http.request", "body": body, "more_body": False}]
                return body

    async def __call__(self) -> Message:
        """The next message, as ASGI `receive`."""
        if self._read:
            return self._read.pop(0)
        return await self._receive()
