"""Middleware that logs unexpected exceptions and answers them with a problem."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch.http.logs import log
from evenmatch.http.problems import OTHERS, make_problem, respond
from evenmatch.http.request_context import BodyRefusedError, context_of, logged_path


class ErrorBoundary:
    """Answer exceptions with what they say or 500; if the response has already begun, raise again, which aborts it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = context_of(scope)
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            return  # the client has hung up
        except BodyRefusedError as error:
            if context.status:
                raise
            await respond(error.problem)(scope, receive, send)
        except Exception as error:
            log.error("bug", request=context.id, method=scope["method"], path=logged_path(scope), exc_info=error)
            if context.status:
                raise
            detail = "this is a bug in evenmatch; the server log has the details under this request_id"
            await respond(make_problem(OTHERS[500], detail, context.id))(scope, receive, send)
