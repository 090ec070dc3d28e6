"""Middleware that calls the endpoints of the most frequent reads (a ticket, a player) without the framework's routing.

Routing and parameter validation take as long as all else of these reads. The endpoint is the same, and so is the
result: a request whose caller is unknown or not allowed, or whose parameters are not certainly valid, is routed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evenmatch.errors import EvenmatchError
from evenmatch.http.access import header, is_allowed, recalled
from evenmatch.http.path_text import as_meant, is_text
from evenmatch.http.problems import refusal
from evenmatch.http.request_context import context_of
from evenmatch.http.routes.players import PLAYER, get_player
from evenmatch.http.routes.tickets import LONGEST_WAIT, ticket
from evenmatch.http.site import Site
from evenmatch.service.callers.access import ANYONE, Caller

ADDRESS = re.compile(r"/v1/ladders/([^/]+)/(tickets|players)/([^/]+)")
NUMBER = re.compile(r"[1-9][0-9]{0,17}")
QUERY = re.compile(
    rb"(?:after=([0-9]{1,18})&)?wait=([0-9]{1,2}(?:\.[0-9]{1,17})?)"
)  # others are valid, too, and routed
Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class FastRead:
    """An endpoint that is called here.

    path_format  route label in the metrics
    needed       scope that the caller must have
    read         (ladder, last part of the path as sent, query string, caller) -> a function that answers;
                 None: route it
    """

    path_format: str
    needed: str
    read: Callable[[str, str, bytes, Caller], Answer | None]


def _ticket(ladder: str, number: str, query: bytes, caller: Caller) -> Answer | None:
    asked = QUERY.fullmatch(query)
    if NUMBER.fullmatch(number) is None or (query and asked is None):
        return None
    after = None if asked is None or asked[1] is None else int(asked[1])
    wait = 0.0 if asked is None else float(asked[2])
    return None if wait > LONGEST_WAIT else lambda request: ticket(ladder, int(number), request, caller, after, wait)


def _player(ladder: str, part: str, query: bytes, caller: Caller) -> Answer | None:
    player = as_meant(part)
    return None if query or not is_text(player) else lambda request: get_player(ladder, player, request, caller)


READS = {
    "tickets": FastRead("/v1/ladders/{ladder}/tickets/{ticket}", "queue", _ticket),
    "players": FastRead(f"/v1{PLAYER.replace(':text', '')}", "read", _player),
}


class FastReads:
    """The middleware that calls the endpoints of the most frequent reads."""

    def __init__(self, api: FastAPI, site: Site) -> None:
        self._api, self._site = api, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request here, or pass it on to the API."""
        address = ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        answer = None if address is None else self._answer(scope, READS[address[2]], as_meant(address[1]), address[3])
        if answer is None:
            await self._api(scope, receive, send)
            return
        scope["app"] = self._api
        try:
            response = await answer(Request(scope, receive))
        except EvenmatchError as error:
            response = refusal(error, context_of(scope))
        await response(scope, receive, send)

    def _answer(self, scope: Scope, route: FastRead, ladder: str, part: str) -> Answer | None:
        """A function that answers the request, which is then counted for its caller; None: route it."""
        caller = recalled(self._site, scope) if is_text(ladder) and not _has_body(scope) else None
        if caller is None or caller is ANYONE or not caller.may(route.needed, ladder):
            return None
        answer = route.read(ladder, part, scope["query_string"], caller)
        if answer is None or not is_allowed(self._site, scope, caller):
            return None
        scope["route"] = route
        return answer


def _has_body(scope: Scope) -> bool:
    return header(scope, b"content-length") not in (None, "0") or header(scope, b"transfer-encoding") is not None
