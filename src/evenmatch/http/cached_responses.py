"""A cache of responses made from standings; each is valid while these standings are the current ones.

Callers who see everything and callers who see what the ladder shows its players have responses of their own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple
from weakref import ReferenceType, ref

from starlette.requests import Request
from starlette.types import Scope

from evenmatch.http.responses import etag_of
from evenmatch.service.queries.standings import View

MOST = 1024
MOST_BYTES = 32 * 2**20  # of all bodies
LONGEST = 300  # bytes of a query string; longer ones are rare and not cached

Address = tuple[str, bytes, bool]


class CachedResponse(NamedTuple):
    """A response and the view of the standings that it was made from; `route`: label of the request in the metrics.

    The reference is a weak one: otherwise responses that are not requested again would keep the views of their moments.
    """

    ladder: str
    view: ReferenceType[View]
    body: bytes
    etag: str
    route: object


class CachedResponses:
    """An LRU cache of responses by path, query string, and whether the caller sees everything.

    Use in the event loop only.
    """

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes, self._bytes = most, most_bytes, 0
        self._cached: OrderedDict[Address, CachedResponse] = OrderedDict()

    def keep(self, request: Request, ladder: str, view: View, body: bytes, *, whole: bool) -> None:
        """Store the response to a request, for all callers who see as much; remove the least recently used if full."""
        scope = request.scope
        if len(scope["query_string"]) <= LONGEST:
            address = _address(scope, whole)
            self._remove(address)
            self._cached[address] = CachedResponse(ladder, ref(view), body, etag_of(body), scope.get("route"))
            self._bytes += len(body)
            while len(self._cached) > self._most or self._bytes > self._most_bytes:
                self._remove(next(iter(self._cached)))

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
        view = cached.view()
        if view is None or young(cached.ladder) is not view:  # both are None when neither is there any more
            self._remove(address)
            return None
        self._cached.move_to_end(address)
        return cached

    def _remove(self, address: Address) -> None:
        removed = self._cached.pop(address, None)
        self._bytes -= 0 if removed is None else len(removed.body)


def _address(scope: Scope, whole: bool) -> Address:
    return scope["path"], scope["query_string"], whole
