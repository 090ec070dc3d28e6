"""Middleware that answers frequent reads of standings from a cache, before routing.

Routing and parameter validation take ten times as long as the code here. The result is always the same as that of the
endpoint: a request that is not cached or is out of date, or whose caller is unknown or not allowed, is passed on to it.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch.http.access import header, is_allowed, recalled
from evenmatch.http.cached_responses import CachedResponse
from evenmatch.http.responses import PRIVATE, holds, send_at_once
from evenmatch.http.site import Site


class ResponseCache:
    """The middleware that sends cached responses."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the cache, or pass the request on to the application."""
        cached = None
        if scope["type"] == "http" and scope["method"] == "GET":
            cached = self._find(scope)
        if cached is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = cached.route
        if_none_match = header(scope, b"if-none-match")
        is_known = if_none_match is not None and holds(if_none_match, cached.etag)
        body = b"" if is_known else cached.body
        headers = [(b"etag", cached.etag.encode()), (b"cache-control", PRIVATE.encode())]
        await send_at_once(send, 304 if is_known else 200, headers, body)

    def _find(self, scope: Scope) -> CachedResponse | None:
        """The cached response, if the caller is known without a query and may read it; else the endpoint decides."""
        answers = self._site.answers
        ladder = answers.ladder_of(scope)
        caller = None if ladder is None else recalled(self._site, scope)
        if ladder is None or caller is None or not caller.may("read", ladder):
            return None
        cached = answers.find(scope, self._site.service.young_view, whole=caller.may("ratings", ladder))
        return cached if cached is not None and is_allowed(self._site, scope, caller) else None
