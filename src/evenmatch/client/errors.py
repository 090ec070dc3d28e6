"""Errors of a client: refused requests and missing responses."""

from __future__ import annotations

from http import HTTPStatus

import httpx
from pydantic import ValidationError

from evenmatch.errors import EvenmatchError
from evenmatch.http.models.problems import Problem

PASSING = frozenset({429, 502, 503, 504})  # HTTP statuses of failures that are usually temporary
STILL_RUNNING = "urn:evenmatch:problem:still-running"  # of the same request, whose answer was lost on the way
SHOWN = 300  # characters quoted from a response that is not problem+json


class ProblemError(EvenmatchError):
    """The service refused a request. `problem` gives the reason: `type` for programs, `detail` for people.

    >>> try:
    ...     client.report_match("arena", match)
    ... except ProblemError as error:
    ...     print(error.status, error.problem.detail)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        request = f" (request {problem.request_id})" if problem.request_id else ""
        super().__init__(f"{problem.status}: {problem.detail}{request}")

    @property
    def status(self) -> int:
        """The HTTP status, for example 404."""
        return self.problem.status

    @property
    def passes(self) -> bool:
        """Whether the failure is usually temporary, so that the same request may succeed later."""
        return self.status in PASSING or self.problem.type == STILL_RUNNING


class UnreachableError(EvenmatchError):
    """No response, or not one of evenmatch. It is not known whether the request was carried out.

    It was retried before, for `patience` seconds of the client.
    """


class ListMovedError(EvenmatchError):
    """The standings moved on between two pages of `all`, so that players could be repeated or missing: begin again."""

    def __init__(self) -> None:
        super().__init__(
            "the standings moved on between two pages, which the service keeps for a minute after the last page; "
            "begin again, with the largest `limit` of 500"
        )


def problem_of(response: httpx.Response) -> ProblemError:
    """The error for a response that is not 2xx; the header Retry-After is used if the body has no `retry_after`."""
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:  # for example from a proxy in between
        problem = _problem_of_other_server(response)
    after = response.headers.get("Retry-After", "")
    if problem.retry_after is None and after.isdecimal():
        problem = problem.model_copy(update={"retry_after": float(after)})
    return ProblemError(problem)


def _problem_of_other_server(response: httpx.Response) -> Problem:
    status = response.status_code
    title = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown status"
    body = " ".join(response.text.split())[:SHOWN]
    detail = f"{response.request.method} {response.request.url.path}: {title}{f': {body}' if body else ''}"
    return Problem(type="about:blank", title=title, status=status, detail=detail)


def unreachable(request: str, reason: Exception | str) -> UnreachableError:
    """The error for a request without a valid response."""
    text = reason if isinstance(reason, str) else str(reason) or type(reason).__name__
    return UnreachableError(f"{request}: {text}")
