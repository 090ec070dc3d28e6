"""Routes to the endpoints of the most frequent requests, ahead of FastAPI's own.

FastAPI's routing and its validation of parameters take longer than everything else these requests need. A request whose
caller is unknown or lacks the scope, or whose parameters are unusual, takes FastAPI's route to the same endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evenmatch.accounts.access import ANYONE, Caller
from evenmatch.errors import EvenmatchError
from evenmatch.http.access import header, identified, is_allowed, recalled
from evenmatch.http.hosts import as_meant, is_text
from evenmatch.http.middleware import ReplayableBody
from evenmatch.http.problems import invalid, refusal
from evenmatch.http.request_context import context_of
from evenmatch.http.routes.matches import report_match, report_matches
from evenmatch.http.routes.players import get_player
from evenmatch.http.routes.tickets import LONGEST_WAIT, accept_offer, join_queue, ticket
from evenmatch.http.site import Site

ADDRESS = re.compile(r"(/v1/ladders/)([^/]+)/(matches|matches/batch|tickets|(tickets|players)/([^/]+)(/accept)?)")
NUMBER = re.compile(r"[1-9][0-9]{0,17}")
QUERY = re.compile(
    rb"(?:after=([0-9]{1,18})&)?wait=([0-9]{1,2}(?:\.[0-9]{1,17})?)"
)  # others are valid, too, and routed
Answer = Callable[[Request], Awaitable[Response]]


class HotRoute(NamedTuple):
    """The route to an endpoint.

    path_format  label of the route in the metrics
    needed       scope that the caller must have
    bind         (ladder, last part of the path as sent, query string, caller) -> a function that answers the request;
                 None: leave the request to FastAPI
    """

    path_format: str
    needed: str
    bind: Callable[[str, str, bytes, Caller], Answer | None]


def _report(ladder: str, _: str, query: bytes, caller: Caller) -> Answer | None:
    return None if query else lambda request: report_match(ladder, request, caller)


def _batch(ladder: str, _: str, query: bytes, caller: Caller) -> Answer | None:
    return None if query else lambda request: report_matches(ladder, request, caller)


def _join(ladder: str, _: str, query: bytes, caller: Caller) -> Answer | None:
    return None if query else lambda request: join_queue(ladder, request, caller)


def _accept(ladder: str, number: str, query: bytes, caller: Caller) -> Answer | None:
    if query or NUMBER.fullmatch(number) is None:
        return None
    return lambda request: accept_offer(ladder, int(number), request, caller)


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


ROUTES = {
    ("POST", "matches"): HotRoute("/v1/ladders/{ladder}/matches", "report", _report),
    ("POST", "matches/batch"): HotRoute("/v1/ladders/{ladder}/matches/batch", "report", _batch),
    ("POST", "tickets"): HotRoute("/v1/ladders/{ladder}/tickets", "queue", _join),
    ("POST", "tickets/accept"): HotRoute("/v1/ladders/{ladder}/tickets/{ticket}/accept", "queue", _accept),
    ("GET", "tickets/"): HotRoute("/v1/ladders/{ladder}/tickets/{ticket}", "queue", _ticket),
    ("GET", "players/"): HotRoute("/v1/ladders/{ladder}/players/{player}", "read", _player),
}


class HotRoutes:
    """The middleware that calls the endpoints of the most frequent requests."""

    def __init__(self, api: FastAPI, site: Site) -> None:
        self._api, self._site = api, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request here, or pass it on to the API."""
        address = ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" else None
        route = None if address is None else ROUTES.get((scope["method"], _kind(address)))
        if address is None or route is None:
            await self._api(scope, receive, send)
            return
        body = ReplayableBody(receive)
        scope["app"] = self._api
        try:
            ladder = as_meant(address[2])
            caller = await self._caller(scope, body) if is_text(ladder) else None
            answer = None
            if caller is not None and caller is not ANYONE and caller.may(route.needed, ladder):
                answer = route.bind(ladder, address[5] or "", scope["query_string"], caller)
            if caller is None or answer is None or not is_allowed(self._site, scope, caller):
                await self._api(scope, body, send)
                return
            scope["route"] = route
            scope["path_params"] = {"ladder": ladder}
            response = await answer(Request(scope, body))
        except EvenmatchError as error:
            scope["route"] = route
            response = refusal(error, context_of(scope))
        except RequestValidationError as error:
            response = invalid(error, context_of(scope))
        await response(scope, body, send)

    async def _caller(self, scope: Scope, body: ReplayableBody) -> Caller | None:
        """The caller of the request; None: the endpoint authenticates them, or says why it does not.

        The caller of a write is authenticated after the whole body has arrived: a key may be revoked during a slow
        upload. Raises AccessError or StoreError for a signed request that is refused.
        """
        if scope["method"] == "GET":
            return None if _has_body(scope) else recalled(self._site, scope)
        if header(scope, b"authorization") is None:  # refused without reading the body
            return None
        content = await body.whole()
        return None if content is None else await identified(self._site, scope, content)


def _kind(address: re.Match[str]) -> str:
    """The key of an address in ROUTES, beside the method."""
    return address[3] if address[4] is None else f"{address[4]}/{(address[6] or '')[1:]}"


def _has_body(scope: Scope) -> bool:
    return header(scope, b"content-length") not in (None, "0") or header(scope, b"transfer-encoding") is not None
