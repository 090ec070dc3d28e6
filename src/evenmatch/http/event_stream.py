"""The response of a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from evenmatch.http.request_context import BodyRefusedError


class EventStream(StreamingResponse):
    """Server-sent events. held: places that the stream holds from before its first event; left when it has ended."""

    def __init__(self, events: AsyncIterator[bytes], held: ExitStack) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client hangs up."""

        async def receive_or_end() -> Message:
            try:
                return await receive()
            except BodyRefusedError:  # too late to say so: the stream ends
                return {"type": "http.disconnect"}

        with self._held:
            await super().__call__(scope, receive_or_end, send)
