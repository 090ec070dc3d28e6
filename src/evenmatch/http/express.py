"""Requests that come in thousands, answered before they are even routed.

Routing, reading parameters and checking them take ten times as long as all that is done here. Nothing is decided here
that the endpoint would decide otherwise: who is not known at once, or may not do it, or sends what is not certainly
good goes on to it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenmatch.errors import EvenmatchError, ForbiddenError, RateLimitError
from evenmatch.http import reporting, wire
from evenmatch.http.access import allow, identified
from evenmatch.http.asked import asked_of
from evenmatch.http.problems import problem_of, respond
from evenmatch.http.replies import encoded, send_at_once
from evenmatch.http.routes.tickets import done
from evenmatch.http.site import Site
from evenmatch.http.text import as_meant, is_text
from evenmatch.service.callers.access import Caller

ADDRESS = re.compile(r"/v1/ladders/([^/]+)/(matches|matches/batch|tickets)")
Answer = Callable[[], Awaitable[bytes]]
NOT_KEPT = [(b"cache-control", b"no-store")]


@dataclass(frozen=True)
class Lane:
    """Requests of a kind.

    path_format  what the figures count them under
    status       of the answer
    read         a body, made ready to be answered; None where the endpoint is to decide
    """

    path_format: str
    scope: str
    status: int
    read: Callable[[Site, str, Caller, bytes], Answer | None]


def _match(site: Site, ladder: str, _: Caller, body: bytes) -> Answer | None:
    sheet = wire.read_match(body)
    return None if sheet is None else lambda: reporting.report(site, ladder, sheet)


def _batch(site: Site, ladder: str, _: Caller, body: bytes) -> Answer | None:
    sheet = wire.read_batch(body)
    return None if sheet is None else lambda: reporting.report_all(site, ladder, sheet)


def _party(site: Site, ladder: str, caller: Caller, body: bytes) -> Answer | None:
    wish = wire.read_party(body)
    if wish is None:
        return None
    try:
        for member in wish.members:
            caller.speaks_for(member.name)
    except ForbiddenError:
        return None

    async def answer() -> bytes:
        return encoded(done(ladder, await site.wishes.one(ladder, wish)))

    return answer


LANES = {
    "matches": Lane("/v1/ladders/{ladder}/matches", "report", 200, _match),
    "matches/batch": Lane("/v1/ladders/{ladder}/matches/batch", "report", 200, _batch),
    "tickets": Lane("/v1/ladders/{ladder}/tickets", "queue", 201, _party),
}


class Express:
    """The layer of the application that answers what comes in thousands."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at once, or let the application do it."""
        found = ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None or scope["query_string"]:
            await self._app(scope, receive, send)
            return
        ladder, lane = as_meant(found[1]), LANES[found[2]]
        caller = await identified(self._site, scope)
        if caller is None or not caller.may(lane.scope, ladder) or not is_text(ladder):
            await self._app(scope, receive, send)
            return
        pieces = _Pieces(receive)
        body = await pieces.whole()
        answer = None if body is None else lane.read(self._site, ladder, caller, body)
        if answer is None or not self._allowed(scope, caller):
            await self._app(scope, pieces, send)
            return
        scope["route"] = lane
        try:
            told = await answer()
        except EvenmatchError as error:
            await respond(problem_of(error, asked_of(scope).id))(scope, receive, send)
        else:
            await send_at_once(send, lane.status, NOT_KEPT, told)

    def _allowed(self, scope: Scope, caller: Caller) -> bool:
        """Whether the request may be made now; it is counted as the caller's."""
        try:
            allow(self._site, scope, caller)
        except RateLimitError:
            return False
        return True


class _Pieces:
    """The pieces of a body, which can be read again from the first one."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []

    async def whole(self) -> bytes | None:
        """All of the body; None where whoever sent it has gone."""
        while True:
            message = await self._receive()
            self._read.append(message)
            if message["type"] != "http.request":
                return None
            if not message.get("more_body", False):
                return b"".join(one.get("body", b"") for one in self._read)

    async def __call__(self) -> Message:
        """The next piece."""
        return self._read.pop(0) if self._read else await self._receive()
