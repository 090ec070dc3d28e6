"""Server-sent events after which an open page reloads its regions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

from starlette.responses import Response

from evenmatch.errors import BusyError
from evenmatch.http.access import client_of
from evenmatch.http.request_context import context_of
from evenmatch.http.waiting_requests import EventStream
from evenmatch.web.page_request import PageRequest

LASTING = 600.0  # longest stream, in seconds


async def pulse(visit: PageRequest) -> Response:
    """Stream `event: ladder` when a ladder's standings change, and `event: queue` when its queues change.

    The events contain no data. The stream ends after ten minutes, and the browser opens it again.
    """
    ladder = visit.ladder
    await visit.site.work(visit.reading.view, ladder)  # raises UnknownNameError
    seen = visit.asked("seen")
    change_stream = visit.shared.change_stream
    context_of(visit.request.scope).waits = True

    async def events() -> AsyncIterator[bytes]:
        yield b"retry: 3000\n\n"
        async with visit.site.waiting.stream(LASTING) as waiter:
            async for event in change_stream.of(ladder, seen, waiter):
                yield f"event: {event}\ndata: changed\n\n".encode() if event else b": still here\n\n"

    with ExitStack() as held:
        try:
            held.enter_context(change_stream.place(client_of(visit.request.scope)))
        except BusyError as error:
            return Response(str(error), 503, {"Retry-After": f"{error.retry_after:.0f}"})
        return EventStream(events(), held.pop_all())
