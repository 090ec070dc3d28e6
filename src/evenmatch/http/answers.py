"""Answers that were made from a ladder's standings, by address: good for as long as these standings are shown."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.types import Scope

from evenmatch.http.replies import etag_of
from evenmatch.service.boards import View

MOST = 1024
LONGEST = 300  # letters of a query; a longer one is not asked all the time

Address = tuple[str, bytes]


class Kept(NamedTuple):
    """An answer, and the view of a ladder that it was made from; `route` is what the figures count it under."""

    ladder: str
    view: View
    body: bytes
    etag: str
    route: object


class Answers:
    """The latest answers by address, as it was sent. For the event loop's thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Address, Kept] = OrderedDict()

    def keep(self, request: Request, ladder: str, view: View, body: bytes) -> None:
        """Keep what is answered to a request, whoever asks, in the place of what nobody asked for longest."""
        scope = request.scope
        if len(scope["query_string"]) <= LONGEST:
            self._kept[_address(scope)] = Kept(ladder, view, body, etag_of(body), scope.get("route"))
            self._kept.move_to_end(_address(scope))
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def find(self, scope: Scope, young: Callable[[str], View | None]) -> Kept | None:
        """What was answered to this address, if the standings that it tells of are still those that are shown."""
        kept = self._kept.get(_address(scope))
        if kept is None:
            return None
        if young(kept.ladder) is not kept.view:
            del self._kept[_address(scope)]
            return None
        self._kept.move_to_end(_address(scope))
        return kept


def _address(scope: Scope) -> Address:
    return scope["path"], scope["query_string"]
