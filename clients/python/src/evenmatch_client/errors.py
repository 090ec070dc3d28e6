"""Errors of the client: refused requests and missing answers."""

from __future__ import annotations

from http import HTTPStatus

import httpx
import msgspec

from evenmatch_client.models import Problem

TEMPORARY = frozenset({429, 502, 503, 504})  # HTTP statuses after which the same request may succeed
STILL_RUNNING = "urn:evenmatch:problem:still-running"  # the type for a request whose first attempt is not finished
QUOTED_AT_MOST = 300  # characters of an answer that is not a problem


class EvenmatchClientError(Exception):
    """Base class of the client's errors."""


class ProblemError(EvenmatchClientError):
    """The service refused a request. `problem` says why: `type` for programs, `detail` for people."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        request = f" (request {problem.request_id})" if problem.request_id else ""
        super().__init__(f"{problem.status}: {problem.detail}{request}")

    @property
    def status(self) -> int:
        """The HTTP status, for example 404."""
        return self.problem.status

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in TEMPORARY or self.problem.type == STILL_RUNNING

    @classmethod
    def of(cls, response: httpx.Response) -> ProblemError:
        """The error for an answer that is not a success, also from a proxy in between."""
        try:
            problem = msgspec.json.decode(response.content, type=Problem)
        except (msgspec.DecodeError, UnicodeDecodeError):
            status = response.status_code
            title = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown status"
            body = " ".join(response.text.split())[:QUOTED_AT_MOST]
            detail = f"{response.request.method} {response.request.url.path}: {title}{f': {body}' if body else ''}"
            problem = Problem("about:blank", title, status, detail)
        after = response.headers.get("Retry-After", "")
        if problem.retry_after is None and after.isdecimal():
            problem.retry_after = float(after)
        return cls(problem)


class UnreachableError(EvenmatchClientError):
    """No answer, or none from evenmatch, for `patience` seconds. The request may have been carried out."""


class ListMovedError(EvenmatchClientError):
    """The standings moved on between two pages: players could be repeated or missing. Start again."""
