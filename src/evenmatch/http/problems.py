"""Errors as problem+json (RFC 9457), through one table."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

from evenmatch.errors import (
    AccessError,
    BadRowsError,
    BusyError,
    ConflictError,
    EvenmatchError,
    FollowerError,
    ForbiddenError,
    HostError,
    InputError,
    IssuerError,
    NotYetError,
    RateLimitError,
    StillRunningError,
    StoreError,
    UnansweredError,
    UnknownNameError,
    UsageError,
)
from evenmatch.http.logs import log
from evenmatch.http.models.base import Fault, Problem
from evenmatch.http.request_context import RequestContext
from evenmatch.times import iso_time

MEDIA_TYPE = "application/problem+json"


class ProblemKind(NamedTuple):
    """How a kind of error is reported: HTTP status, last part of the problem's `type`, and title."""

    status: int
    slug: str
    title: str


FOLLOWER = ProblemKind(405, "follower", "This process only reads")

# The first matching class applies, so a subclass is listed before its parent.
TABLE: Sequence[tuple[type[EvenmatchError], ProblemKind]] = (
    (UnknownNameError, ProblemKind(404, "unknown-name", "Nothing with this name exists")),
    (UsageError, ProblemKind(422, "bad-value", "A value is not accepted")),
    (BadRowsError, ProblemKind(422, "bad-match", "A match cannot be rated")),
    (NotYetError, ProblemKind(409, "not-yet", "Not at this time")),
    (StillRunningError, ProblemKind(409, "still-running", "The same request is still running")),
    (ConflictError, ProblemKind(409, "conflict", "This conflicts with existing data")),
    (InputError, ProblemKind(422, "bad-value", "A value is not accepted")),
    (ForbiddenError, ProblemKind(403, "forbidden", "The key does not allow this")),
    (HostError, ProblemKind(421, "misdirected", "The service does not answer under this host name")),
    (RateLimitError, ProblemKind(429, "too-many-requests", "Too many requests")),
    (AccessError, ProblemKind(401, "unauthorized", "A valid key or token is needed")),
    (IssuerError, ProblemKind(503, "issuer-unavailable", "The identity provider cannot be reached")),
    (BusyError, ProblemKind(503, "busy", "Too many requests of this kind are waiting")),
    (FollowerError, FOLLOWER),
    (StoreError, ProblemKind(503, "database", "The database does not answer")),
    (EvenmatchError, ProblemKind(500, "error", "Something went wrong")),
)
NAMED_INSIDE = {
    "system",
    "preset",
    "parameter",
    "setting",
    "context column",
    "policy",
    "option",
    "scope",
    "event",
}  # named in the body, not in the path
OF_ALL_LADDERS = {"ladder", "player", "job", "webhook"}  # the known names of these may belong to any ladder
OTHERS = {
    400: ProblemKind(400, "malformed", "The request cannot be read"),
    404: ProblemKind(404, "unknown-address", "Nothing exists at this address"),
    405: ProblemKind(405, "method", "This address does not support the method"),
    408: ProblemKind(408, "timeout", "The request did not arrive in time"),
    413: ProblemKind(413, "too-large", "The body is too large"),
    422: ProblemKind(422, "bad-value", "A value is not accepted"),
    431: ProblemKind(431, "large-head", "The head of the request is too large"),
    500: ProblemKind(500, "internal", "Internal server error"),
    503: ProblemKind(503, "stopping", "This process is about to stop"),
}
STARTING = ProblemKind(503, "starting", "This process is getting ready")
DATABASE_AGAIN = 1  # seconds before a request is repeated that the database did not answer


def kind_of(error: EvenmatchError) -> ProblemKind:
    """Return how an EvenmatchError is reported."""
    if isinstance(error, UnknownNameError) and error.kind.split(" of ")[0] in NAMED_INSIDE:
        return OTHERS[422]
    return next(kind for parent, kind in TABLE if isinstance(error, parent))


def within(ladders: Collection[str] | None, error: EvenmatchError) -> EvenmatchError:
    """Return the error without names from ladders that the caller may not read. ladders: those they may; None: all."""
    if ladders is None or not isinstance(error, UnknownNameError) or error.kind not in OF_ALL_LADDERS:
        return error
    return UnknownNameError(error.kind, error.name, ())


def problem_of(error: EvenmatchError, request_id: str | None = None) -> Problem:
    """Return the problem that reports an EvenmatchError."""
    kind = kind_of(error)
    detail, faults = str(error), None
    if isinstance(error, BadRowsError):
        faults = [Fault(where=row.match_id or "", reason=row.reason) for row in error.problems]
        detail = f"{error.source}: {error.problems[0].reason}" if len(faults) == 1 else f"{error.source}: {error.count}"
    retry = None
    if isinstance(error, RateLimitError | StillRunningError | BusyError):
        retry = error.retry_after
    elif isinstance(error, StoreError):
        retry = DATABASE_AGAIN
    until = iso_time(error.until) if isinstance(error, NotYetError) else None
    return make_problem(kind, detail, request_id, problems=faults, retry_after=retry, until=until)


def make_problem(
    kind: ProblemKind,
    detail: str,
    request_id: str | None = None,
    *,
    problems: list[Fault] | None = None,
    retry_after: float | None = None,
    until: str | None = None,
) -> Problem:
    """Return a problem of this kind."""
    return Problem(
        type=f"urn:evenmatch:problem:{kind.slug}",
        title=kind.title,
        status=kind.status,
        detail=detail.encode(errors="backslashreplace").decode(),  # it may quote text that JSON cannot represent
        request_id=request_id,
        problems=problems,
        retry_after=retry_after,
        until=until,
    )


def refusal(error: EvenmatchError, context: RequestContext) -> Response:
    """Return the response for an EvenmatchError. Details of a database error go to the log only."""
    if isinstance(error, UnansweredError):
        context.unfinished = error.work
    return respond(refused_problem(error, context))


def refused_problem(error: EvenmatchError, context: RequestContext) -> Problem:
    """Return the problem of that response."""
    if isinstance(error, StoreError):
        log.error("database", request=context.id, error=str(error))
        error = StoreError(
            "the database does not answer; the request was stored in full or not at all: send it again with the same id"
        )
    return problem_of(within(context.ladders, error), context.id)


def invalid(error: RequestValidationError, context: RequestContext) -> Response:
    """Return the response to a request with an invalid body or invalid parameters."""
    errors = error.errors()
    if any(fault["type"] == "json_invalid" for fault in errors):
        detail = f"the body is not valid JSON: {errors[0].get('ctx', {}).get('error', errors[0]['msg'])}"
        return respond(make_problem(OTHERS[400], detail, context.id))
    faults = [Fault(_where(fault["loc"]), _reason(fault)) for fault in errors[:100]]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    detail = f"{faults[0].where}: {faults[0].reason}{more}"
    return respond(make_problem(OTHERS[422], detail, context.id, problems=faults))


def _where(location: tuple[str | int, ...]) -> str:
    """Return the dotted path of a value in the body, such as `teams.0.place`, or the name of a parameter."""
    parts = location[1:] if location and location[0] in {"body", "query", "path", "header"} else location
    return ".".join(map(str, parts)) or str(location[0] if location else "")


def _reason(error: dict[str, Any]) -> str:
    value = error.get("input")
    is_shown = error["type"] != "missing" and not isinstance(value, dict | list | bytes)
    shown = f" (sent: {str(value)[:80]!r})" if is_shown else ""
    return f"{error['msg'].removeprefix('Value error, ')}{shown}"


def respond(problem: Problem) -> Response:
    """Return the response for a problem."""
    headers = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(problem.retry_after))
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="evenmatch"'
    return Response(msgspec.json.encode(problem), problem.status, headers, MEDIA_TYPE)
