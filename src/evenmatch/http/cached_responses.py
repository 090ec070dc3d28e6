"""A cache of responses made from standings, by URL; each is valid while these standings are the current ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.types import Scope

from evenmatch.http.responses import etag_of
from evenmatch.service.queries.standings import View

MOST = 1024
LONGEST = 300  # bytes of a query string; longer ones are rare and not cached

Address = tuple[str, bytes]


class CachedResponse(NamedTuple):
    """A response and the view it was made from; `route`: label of the request in the metrics."""

    ladder: str
    view: View
    body: bytes
    etag: str
    route: object


class CachedResponses:
    """An LRU cache of responses by path and query string. Use in the event loop only."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._cached: OrderedDict[Address, CachedResponse] = OrderedDict()

    def keep(self, request: Request, ladder: str, view: View, body: bytes) -> None:
        """Store the response to a request, for all callers; remove the least recently used one if full."""
        scope = request.scope
        if len(scope["query_string"]) <= LONGEST:
            self._cached[_address(scope)] = CachedResponse(ladder, view, body, etag_of(body), scope.get("route"))
            self._cached.move_to_end(_address(scope))
            if len(self._cached) > self._most:
                self._cached.popitem(last=False)

    def find(self, scope: Scope, young: Callable[[str], View | None]) -> CachedResponse | None:
        """The cached response of this URL, if it was made from the current standings."""
        cached = self._cached.get(_address(scope))
        if cached is None:
            return None
        if young(cached.ladder) is not cached.view:
            del self._cached[_address(scope)]
            return None
        self._cached.move_to_end(_address(scope))
        return cached


def _address(scope: Scope) -> Address:
    return scope["path"], scope["query_string"]
