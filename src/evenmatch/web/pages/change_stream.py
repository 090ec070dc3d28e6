"""Server-sent events that tell an open page when to reload its regions."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from evenmatch.http.request_context import context_of
from evenmatch.web.page_request import PageRequest

MOST, EACH = 2000, 60  # open streams per process, and per client address


async def pulse(visit: PageRequest) -> Response:
    """Stream `event: ladder` when the standings of a ladder have changed, `event: queue` when its queues have."""
    ladder = visit.ladder
    await visit.site.work(visit.reading.view, ladder)  # raises UnknownNameError
    seen = visit.asked("seen")
    change_stream, client = visit.shared.change_stream, visit.request.client
    who = "?" if client is None else client.host
    if len(change_stream) >= MOST or change_stream.count(who) >= EACH:
        return Response("too many pages are open; reload this one by hand", 503, {"Retry-After": "30"})
    context_of(visit.request.scope).waits = True

    async def events() -> AsyncIterator[bytes]:
        yield b"retry: 3000\n\n"
        async for event in change_stream.of(ladder, seen, who):
            yield f"event: {event}\ndata: changed\n\n".encode() if event else b": still here\n\n"

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")
