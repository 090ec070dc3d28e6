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
from evenmatch.http.asked import BodyTooLargeError, asked_of
from evenmatch.http.problems import refusal
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
        pieces = _Pieces(receive)
        answer = await self._read(scope, lane, ladder, await pieces.whole())
        if answer is None:
            await self._app(scope, pieces, send)
            return
        scope["route"] = lane
        try:
            told = await answer()
        except EvenmatchError as error:
            await refusal(error, asked_of(scope).id)(scope, receive, send)
        else:
            await send_at_once(send, lane.status, NOT_KEPT, told)

    async def _read(self, scope: Scope, lane: Lane, ladder: str, body: bytes | None) -> Answer | None:
        """How to answer; the request is counted as its sender's then. None where the endpoint is to decide.

        Who sends it is asked once all of it is there: a key may be revoked while a body comes slowly.
        """
        caller = None if body is None or not is_text(ladder) else await identified(self._site, scope)
        if body is None or caller is None or not caller.may(lane.scope, ladder):
            return None
        answer = lane.read(self._site, ladder, caller, body)
        if answer is not None:
            try:
                allow(self._site, scope, caller)
            except RateLimitError:
                return None
        return answer


class _Pieces:
    """The pieces of a body, which can be read again from the first one, to whatever end they came."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []
        self._error: BodyTooLargeError | None = None

    async def whole(self) -> bytes | None:
        """All of the body; None where whoever sent it has gone, or sent too much."""
        while True:
            try:
                message = await self._receive()
            except BodyTooLargeError as error:
                self._error = error
                return None
            self._read.append(message)
            if message["type"] != "http.request":
                return None
            if not message.get("more_body", False):
                return b"".join(one.get("body", b"") for one in self._read)

    async def __call__(self) -> Message:
        """The next piece."""
        if self._read:
            return self._read.pop(0)
        if self._error is not None:
            raise self._error
        return await self._receive()
