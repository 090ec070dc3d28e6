"""The stream that tells an open page when to look again."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from evenmatch.http.asked import asked_of
from evenmatch.web.visit import Visit

MOST, EACH = 2000, 60  # streams of one process, and of one address


async def pulse(visit: Visit) -> Response:
    """The stream of a ladder: `event: ladder` when its standings have changed, `event: queue` when its queues have."""
    ladder = visit.ladder
    await visit.site.work(visit.reading.view, ladder)  # raises where there is none
    seen = visit.asked("seen")
    pulses, client = visit.shared.pulses, visit.request.client
    who = "?" if client is None else client.host
    if len(pulses) >= MOST or pulses.count(who) >= EACH:
        return Response("too many watch; the page can be loaded again by hand", 503, {"Retry-After": "30"})
    asked_of(visit.request.scope).waits = True

    async def events() -> AsyncIterator[bytes]:
        yield b"retry: 3000\n\n"
        async for what in pulses.of(ladder, seen, who):
            yield f"event: {what}\ndata: changed\n\n".encode() if what else b": still here\n\n"

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")
