"""Routes to the endpoints of the most frequent requests, ahead of FastAPI's own.

FastAPI's routing and its validation of parameters take longer than everything else that these requests need. A request
with unusual parameters takes FastAPI's route to the same endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evenmatch.accounts.access import Caller
from evenmatch.errors import EvenmatchError
from evenmatch.http.access import RequireScope, header
from evenmatch.http.hosts import as_meant, is_text
from evenmatch.http.problems import invalid, refusal
from evenmatch.http.request_context import BodyRefusedError, context_of
from evenmatch.http.routes.matches import report_match, report_matches
from evenmatch.http.routes.players import get_player
from evenmatch.http.routes.tickets import LONGEST_WAIT, accept_offer, join_queue, ticket

ADDRESS = re.compile(r"(/v1/ladders/)([^/]+)/(matches|matches/batch|tickets|(tickets|players)/([^/]+)(/accept)?)")
NUMBER = re.compile(r"[1-9][0-9]{0,17}")
QUERY = re.compile(rb"(?:after=([0-9]{1,18})&)?wait=([0-9]{1,2}(?:\.[0-9]{1,17})?)")  # the query of a usual long poll
Answer = Callable[[Request, Caller], Awaitable[Response]]


class HotRoute(NamedTuple):
    """The route to an endpoint.

    path_format  label of the route in the metrics
    require      authenticates the caller and checks their scope
    bind         (ladder, last part of the path as sent, query string) -> a function that answers the request;
                 None: leave the request to FastAPI
    """

    path_format: str
    require: RequireScope
    bind: Callable[[str, str, bytes], Answer | None]


def _without_query(
    endpoint: Callable[[str, Request, Caller], Awaitable[Response]],
) -> Callable[[str, str, bytes], Answer | None]:
    return lambda ladder, _, query: None if query else partial(endpoint, ladder)


def _accept(ladder: str, number: str, query: bytes) -> Answer | None:
    return None if query or NUMBER.fullmatch(number) is None else partial(accept_offer, ladder, int(number))


def _ticket(ladder: str, number: str, query: bytes) -> Answer | None:
    asked = QUERY.fullmatch(query)
    if NUMBER.fullmatch(number) is None or (query and asked is None):
        return None
    after = None if asked is None or asked[1] is None else int(asked[1])
    wait = 0.0 if asked is None else float(asked[2])
    return None if wait > LONGEST_WAIT else partial(ticket, ladder, int(number), after=after, wait=wait)


def _player(ladder: str, part: str, query: bytes) -> Answer | None:
    player = as_meant(part)
    return None if query or not is_text(player) else partial(get_player, ladder, player)


REPORT, QUEUE, READ = RequireScope("report"), RequireScope("queue"), RequireScope("read", open_read=True)
LADDER = "/v1/ladders/{ladder}"
ROUTES = {
    ("POST", "matches"): HotRoute(f"{LADDER}/matches", REPORT, _without_query(report_match)),
    ("POST", "matches/batch"): HotRoute(f"{LADDER}/matches/batch", REPORT, _without_query(report_matches)),
    ("POST", "tickets"): HotRoute(f"{LADDER}/tickets", QUEUE, _without_query(join_queue)),
    ("POST", "tickets/accept"): HotRoute(f"{LADDER}/tickets/{{ticket}}/accept", QUEUE, _accept),
    ("GET", "tickets/"): HotRoute(f"{LADDER}/tickets/{{ticket}}", QUEUE, _ticket),
    ("GET", "players/"): HotRoute(f"{LADDER}/players/{{player}}", READ, _player),
}


class HotRoutes:
    """The middleware that calls the endpoints of the most frequent requests."""

    def __init__(self, api: FastAPI) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request here, or pass it on to the API."""
        address = ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" else None
        route = None if address is None else ROUTES.get((scope["method"], _kind(address)))
        answer = None
        if address is not None and route is not None:
            ladder = as_meant(address[2])
            answer = route.bind(ladder, address[5] or "", scope["query_string"])
        if route is None or answer is None:
            await self._api(scope, receive, send)
            return
        scope["app"], scope["route"], scope["path_params"] = self._api, route, {"ladder": ladder}
        request = Request(scope, receive)
        response: Response
        try:
            if scope["method"] == "POST" and header(scope, b"authorization") is not None:
                # The caller is authenticated after the upload: a key may be revoked while a slow one lasts.
                with suppress(BodyRefusedError):  # the endpoint raises it again
                    await request.body()
            response = await answer(request, await route.require(request))
        except EvenmatchError as error:
            response = refusal(error, context_of(scope))
        except RequestValidationError as error:
            response = invalid(error, context_of(scope))
        await response(scope, receive, send)


def _kind(address: re.Match[str]) -> str:
    """The key of an address in ROUTES, beside the method."""
    return address[3] if address[4] is None else f"{address[4]}/{(address[6] or '')[1:]}"
