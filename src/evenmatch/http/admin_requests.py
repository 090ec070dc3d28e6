"""Parts shared by the endpoints for operators: page parameters and audit entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Request

from evenmatch.http.request_context import context_of
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.audit_entry import AuditEntry

Limit = Annotated[int, Query(ge=1, le=500, description="Most items on a page.")]
Cursor = Annotated[str | None, Query(description="The `next` of the previous page.")]


def audit_entry(
    request: Request,
    caller: Caller,
    action: str,
    ladder: str | None = None,
    target: str | None = None,
    body: Mapping[str, object] | None = None,
) -> AuditEntry:
    """The audit entry for the action that a caller is about to do."""
    return AuditEntry(caller, action, ladder, target, {} if body is None else body, context_of(request.scope).id)
