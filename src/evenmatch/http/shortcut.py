"""Answers that a busy site asks for all the time, given again before the request is even routed.

Routing, reading parameters and checking them take ten times as long as all that is done here. Nothing is decided here
that the endpoint would decide otherwise: who is not known at once, or may not read, or asks for what is old or was not
answered yet, goes on to it.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch.errors import RateLimitError
from evenmatch.http.access import allow, recalled
from evenmatch.http.replies import PRIVATE, holds, send_at_once
from evenmatch.http.site import Site


class Shortcut:
    """The layer of the application that gives kept answers again."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at once, or let the application do it."""
        kept = None
        if scope["type"] == "http" and scope["method"] == "GET":
            kept = self._site.answers.find(scope, self._site.service.young_view)
        if kept is None or not self._may_read(scope, kept.ladder):
            await self._app(scope, receive, send)
            return
        scope["route"] = kept.route
        known = next((value for name, value in scope["headers"] if name == b"if-none-match"), b"")
        is_known = holds(known.decode("latin-1"), kept.etag)
        body = b"" if is_known else kept.body
        headers = [(b"etag", kept.etag.encode()), (b"cache-control", PRIVATE.encode())]
        await send_at_once(send, 304 if is_known else 200, headers, body)

    def _may_read(self, scope: Scope, ladder: str) -> bool:
        """Whether who asks is known at once and may read the ladder; whoever is not is told so by the endpoint."""
        caller = recalled(self._site, scope)
        if caller is None or not caller.may("read", ladder):
            return False
        try:
            allow(self._site, scope, caller)
        except RateLimitError:
            return False
        return True
