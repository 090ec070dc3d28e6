"""What goes wrong between a client and the service."""

from __future__ import annotations

from http import HTTPStatus

import httpx
from pydantic import ValidationError

from evenmatch.errors import EvenmatchError
from evenmatch.http.models.problems import Problem

PASSING = frozenset({429, 502, 503, 504})  # statuses that may be others in a moment
SHOWN = 300  # letters of an answer that is no problem+json


class ProblemError(EvenmatchError):
    """The service refused a request. `problem` says why: its `type` for programs, its `detail` for people.

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
        """The HTTP status, as 404."""
        return self.problem.status

    @property
    def passes(self) -> bool:
        """Whether the same request may be granted in a moment."""
        return self.status in PASSING


class UnreachableError(EvenmatchError):
    """No answer came, or none of evenmatch's. Whether the request was carried out is not known.

    What is safe to send twice was sent again, for as long as the client's `patience`.
    """


def problem_of(answer: httpx.Response) -> ProblemError:
    """What an answer that is no success says; `Retry-After` counts where the body tells no time."""
    try:
        problem = Problem.model_validate_json(answer.content)
    except ValidationError:  # as a proxy between says it
        problem = _foreign(answer)
    after = answer.headers.get("Retry-After", "")
    if problem.retry_after is None and after.isdecimal():
        problem = problem.model_copy(update={"retry_after": float(after)})
    return ProblemError(problem)


def _foreign(answer: httpx.Response) -> Problem:
    status = answer.status_code
    title = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown status"
    said = " ".join(answer.text.split())[:SHOWN]
    detail = f"{answer.request.method} {answer.request.url.path}: {title}{f': {said}' if said else ''}"
    return Problem(type="about:blank", title=title, status=status, detail=detail)


def unreachable(request: str, reason: Exception | str) -> UnreachableError:
    """The error for a request without an answer."""
    told = reason if isinstance(reason, str) else str(reason) or type(reason).__name__
    return UnreachableError(f"{request}: {told}")
