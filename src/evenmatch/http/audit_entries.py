"""Audit entries for what a request is about to do."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Request

from evenmatch.accounts.access import Caller
from evenmatch.accounts.audit_entries import AuditEntry
from evenmatch.http.request_context import context_of


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
