"""A cache of responses made from standings; each is valid while these standings are the current ones.

Callers who see everything and callers who see what the ladder shows its players have responses of their own.
"""

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

Address = tuple[str, bytes, bool]


class CachedResponse(NamedTuple):
    """A response and the whole view of the standings then; `route`: label of the request in the metrics."""

    ladder: str
    view: View
    body: bytes
    etag: str
    route: object


class CachedResponses:
    """An LRU cache of responses by path, query string, and whether the caller sees everything.

    Use in the event loop only.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._cached: OrderedDict[Address, CachedResponse] = OrderedDict()

    def keep(self, request: Request, ladder: str, view: View, body: bytes, *, whole: bool) -> None:
        """Store the response to a request, for all callers who see as much; remove the least recently used if full."""
        scope = request.scope
        if len(scope["query_string"]) <= LONGEST:
            address = _address(scope, whole)
            self._cached[address] = CachedResponse(ladder, view, body, etag_of(body), scope.get("route"))
            self._cached.move_to_end(address)
            if len(self._cached) > self._most:
                self._cached.popitem(last=False)

    def ladder_of(self, scope: Scope) -> str | None:
        """The ladder of this URL; None: no response is cached."""
        cached = self._cached.get(_address(scope, False)) or self._cached.get(_address(scope, True))
        return None if cached is None else cached.ladder

    def find(self, scope: Scope, young: Callable[[str], View | None], *, whole: bool) -> CachedResponse | None:
        """The cached response of this URL, if it was made from the current standings."""
        address = _address(scope, whole)
        cached = self._cached.get(address)
        if cached is None:
            return None
        if young(cached.ladder) is not cached.view:
            del self._cached[address]
            return None
        self._cached.move_to_end(address)
        return cached


def _address(scope: Scope, whole: bool) -> Address:
    return scope["path"], scope["query_string"], whole
