"""The state of one request: its id, caller, rate limit and response status."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import Scope

from evenmatch.accounts.access import Caller
from evenmatch.http.models.base import Problem
from evenmatch.http.rate_limits import Allowance

LONGEST_LOGGED = 200  # characters of a path


@dataclass(slots=True)
class RequestContext:
    """The state of one request, filled in while it is handled.

    ladders     the ladders that the caller may read, once the caller is known; None: all
    waits       the response waits for a change (long poll or stream), so its duration is not measured
    status      status of the response; 0 until it begins
    caller      the caller, once authenticated
    unfinished  the work that still runs although the response says that it was not done in time
    """

    id: str
    actor: str | None = None
    ladders: frozenset[str] | None = frozenset()
    allowance: Allowance | None = None
    waits: bool = False
    status: int = 0
    caller: Caller | None = None
    unfinished: Future[Any] | None = None


class BodyRefusedError(HTTPException):
    """A body that is too large to be read. FastAPI passes an HTTPException on and replaces any other exception."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.status, problem.detail)


def logged_path(scope: Scope) -> str:
    """Return the path of a request for the log, shortened, since anyone can send a very long one."""
    path: str = scope["path"]
    return path if len(path) <= LONGEST_LOGGED else f"{path[:LONGEST_LOGGED]}…"


def context_of(scope: Scope) -> RequestContext:
    """Return the context of the request with this scope."""
    context: RequestContext = scope["evenmatch.asked"]
    return context
