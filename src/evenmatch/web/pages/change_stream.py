"""Server-sent events that tell an open page when to reload its regions."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from evenmatch.http.access import client_of
from evenmatch.http.request_context import context_of
from evenmatch.service.callers.access import ANYONE
from evenmatch.web.page_request import PageRequest

MOST, EACH = 2000, 60  # open streams per process (a quarter of its connections at most), and per client address


async def pulse(visit: PageRequest) -> Response:
    """Stream `event: ladder` when the standings of a ladder have changed, `event: queue` when its queues have.

    The stream ends when the visitor logs out, or their key or token is revoked or expires.
    """
    ladder = visit.ladder
    await visit.site.work(visit.reading.view, ladder)  # raises UnknownNameError
    seen = visit.asked("seen")
    change_stream, who = visit.shared.change_stream, client_of(visit.request.scope)
    if len(change_stream) >= min(MOST, visit.site.connections.limits.total // 4) or change_stream.count(who) >= EACH:
        return Response("too many pages are open; reload this one by hand", 503, {"Retry-After": "30"})
    context_of(visit.request.scope).waits = True

    async def events() -> AsyncIterator[bytes]:
        yield b"retry: 3000\n\n"
        async with visit.site.waiting.stream(visit.caller or ANYONE, visit.credential) as waiter:
            async for event in change_stream.of(ladder, seen, waiter, who):
                yield f"event: {event}\ndata: changed\n\n".encode() if event else b": still here\n\n"

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")
