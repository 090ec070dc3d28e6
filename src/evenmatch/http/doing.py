"""What the endpoints of operators have together: who does it, and pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Request

from evenmatch.http.asked import asked_of
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.deeds import Deed

Limit = Annotated[int, Query(ge=1, le=500, description="Items on a page.")]
Cursor = Annotated[str | None, Query(description="The `next` of the page before.")]


def deed(
    request: Request,
    caller: Caller,
    action: str,
    ladder: str | None = None,
    target: str | None = None,
    body: Mapping[str, object] | None = None,
) -> Deed:
    """What a caller is about to do, for the audit trail."""
    return Deed(caller, action, ladder, target, {} if body is None else body, asked_of(request.scope).id)
