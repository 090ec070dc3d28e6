"""The layer that lets no bug out: what nobody foresaw is logged, and told as a problem."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from evenmatch.http.asked import BodyTooLargeError, asked_of
from evenmatch.http.logs import log
from evenmatch.http.problems import OTHERS, respond, told


class Guard:
    """Answers with 413 or 500 where the application raises; where an answer has begun it is broken off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = asked_of(scope)
        try:
            await self._app(scope, receive, send)
        except BodyTooLargeError as error:
            if asked.status:
                raise
            await respond(told(OTHERS[413], error.detail, asked.id))(scope, receive, send)
        except Exception as error:
            log.error("bug", request=asked.id, method=scope["method"], path=scope["path"], exc_info=error)
            if asked.status:
                raise
            detail = "this is a bug of ours; the log has it under this request_id"
            await respond(told(OTHERS[500], detail, asked.id))(scope, receive, send)
