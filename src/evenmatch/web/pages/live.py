"""The stream that tells an open page when to look again."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from evenmatch.http.asked import asked_of
from evenmatch.web.visit import Visit

MOST = 2000  # streams of one process


async def pulse(visit: Visit) -> Response:
    """The stream of a ladder: `event: ladder` when its standings have changed, `event: queue` when its queues have."""
    ladder = visit.ladder
    await visit.site.work(visit.reading.view, ladder)  # raises where there is none
    seen = visit.asked("seen")
    if len(visit.shared.pulses) >= MOST:
        return Response("too many watch; the page can be loaded again by hand", 503, {"Retry-After": "30"})
    asked_of(visit.request.scope).waits = True

    async def events() -> AsyncIterator[bytes]:
        yield b"retry: 3000\n\n"
        async for what in visit.shared.pulses.of(ladder, seen):
            yield f"event: {what}\ndata: changed\n\n".encode() if what else b": still here\n\n"

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")
