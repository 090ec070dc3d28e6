"""Middleware of a follower, a process that only reads: it refuses writes before anything of them is read."""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch.errors import FollowerError
from evenmatch.http.access import READS
from evenmatch.http.path_text import is_api
from evenmatch.http.problems import refusal
from evenmatch.http.request_context import context_of
from evenmatch.http.site import Site

READING = re.compile(r"/v1/ladders/[^/]+/odds")  # paths of requests with a body that change nothing
WRITING = re.compile(r"/v1/ladders/[^/]+/tickets(/.*)?")  # also to read one counts as a heartbeat, which is a write


class RefusedRoute:
    """The route of a refused write in the metrics."""

    path_format = "(follower)"


class Follower:
    """Refuses what only a process that writes can do, and says where it is."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._error = app, FollowerError(site.options.writes_at)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a write to the API; pages refuse theirs by themselves."""
        if scope["type"] == "http" and is_api(scope["path"]) and _is_write(scope["method"], scope["path"]):
            scope["route"] = RefusedRoute()
            response = refusal(self._error, context_of(scope))
            response.headers["Allow"] = ", ".join(READS)
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_write(method: str, path: str) -> bool:
    return WRITING.fullmatch(path) is not None or (method not in READS and READING.fullmatch(path) is None)
