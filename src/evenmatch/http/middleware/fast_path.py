"""Middleware that answers the most frequent writes (match reports, queue joins, accepted offers) before routing.

Routing and parameter validation take ten times as long as the code here. The result is always the same as that of the
endpoint: a request whose caller is unknown or not allowed, or whose body is not certainly valid, is passed on to it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch.errors import EvenmatchError, ForbiddenError
from evenmatch.http import fast_requests, report_recording
from evenmatch.http.access import identified, is_allowed
from evenmatch.http.path_text import as_meant, is_text
from evenmatch.http.problems import refusal
from evenmatch.http.replayable_body import ReplayableBody
from evenmatch.http.request_bodies import QUICK
from evenmatch.http.request_context import context_of
from evenmatch.http.responses import encoded, send_at_once
from evenmatch.http.routes.tickets import done, permitted, player_of
from evenmatch.http.site import Site
from evenmatch.service.callers.access import Caller
from evenmatch.service.queues.requests import Accept, QueueRequest

ADDRESS = re.compile(r"/v1/ladders/([^/]+)/(matches|matches/batch|tickets|tickets/([1-9][0-9]{0,17})/(accept))")
Answer = Callable[[], Awaitable[bytes]]
NOT_KEPT = [(b"cache-control", b"no-store")]


@dataclass(frozen=True)
class FastRoute:
    """An endpoint that the fast path can answer.

    path_format  route label in the metrics
    needed       scope that the caller must have
    status       HTTP status of a successful response
    read         (site, ladder, number of the ticket in the path, caller, body) -> a function that answers;
                 None: leave it to the endpoint
    """

    path_format: str
    needed: str
    status: int
    read: Callable[[Site, str, int, Caller, bytes], Answer | None]


def _match(site: Site, ladder: str, _: int, __: Caller, body: bytes) -> Answer | None:
    batch = fast_requests.read_match(body)
    return None if batch is None else lambda: report_recording.report(site, ladder, batch)


def _batch(site: Site, ladder: str, _: int, __: Caller, body: bytes) -> Answer | None:
    batch = fast_requests.read_batch(body)
    return None if batch is None else lambda: report_recording.report_all(site, ladder, batch)


def _party(site: Site, ladder: str, _: int, caller: Caller, body: bytes) -> Answer | None:
    read = fast_requests.read_party(body)
    if read is None:
        return None
    try:
        join = permitted(caller, read)
    except ForbiddenError:
        return None
    return _requested(site, ladder, join)


def _accept(site: Site, ladder: str, ticket: int, caller: Caller, body: bytes) -> Answer | None:
    said = fast_requests.read_offer_answer(body)
    if said is None:
        return None
    try:
        player = player_of(caller, said.player)
    except ForbiddenError:
        return None
    return _requested(site, ladder, Accept(ticket, player, said.offer, caller.player is not None))


def _requested(site: Site, ladder: str, request: QueueRequest) -> Answer:
    async def answer() -> bytes:
        return encoded(done(ladder, await site.wishes.one(ladder, request)))

    return answer


ROUTES = {
    "matches": FastRoute("/v1/ladders/{ladder}/matches", "report", 200, _match),
    "matches/batch": FastRoute("/v1/ladders/{ladder}/matches/batch", "report", 200, _batch),
    "accept": FastRoute("/v1/ladders/{ladder}/tickets/{ticket}/accept", "queue", 200, _accept),
    "tickets": FastRoute("/v1/ladders/{ladder}/tickets", "queue", 201, _party),
}


class FastPath:
    """The middleware that answers the most frequent writes."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request here, or pass it on to the application."""
        address = ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if address is None or scope["query_string"]:
            await self._app(scope, receive, send)
            return
        ladder, route, ticket = as_meant(address[1]), ROUTES[address[4] or address[2]], int(address[3] or 0)
        body = ReplayableBody(receive)
        try:
            answer = await self._read(scope, route, ladder, ticket, await body.whole())
            payload = None if answer is None else await answer()
        except EvenmatchError as error:
            scope["route"] = route
            await refusal(error, context_of(scope))(scope, receive, send)
            return
        if payload is None:
            await self._app(scope, body, send)
            return
        scope["route"] = route
        await send_at_once(send, route.status, NOT_KEPT, payload)

    async def _read(
        self, scope: Scope, route: FastRoute, ladder: str, ticket: int, body: bytes | None
    ) -> Answer | None:
        """A function that answers the request, which is then counted for its caller; None: leave it to the endpoint.

        The caller is authenticated after the whole body has arrived: a key may be revoked during a slow upload.
        Raises AccessError or StoreError for a signed request that is refused.
        """
        caller = None if body is None or not is_text(ladder) else await identified(self._site, scope, body)
        if body is None or caller is None or not caller.may(route.needed, ladder):
            return None
        if len(body) <= QUICK:
            answer = route.read(self._site, ladder, ticket, caller, body)
        else:
            answer = await self._site.convert(ladder, route.read, self._site, ladder, ticket, caller, body)
        return answer if answer is not None and is_allowed(self._site, scope, caller) else None
