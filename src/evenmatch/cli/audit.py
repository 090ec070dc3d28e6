"""Audit entries of commands, in the same audit trail as those of HTTP requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenmatch.accounts.audit_entries import AuditEntry
    from evenmatch.operations.service import Service


def audit_entry(
    action: str, ladder: str | None = None, target: str | None = None, body: Mapping[str, object] | None = None
) -> AuditEntry:
    """An audit entry of the operator at the command line; action names are those of the HTTP endpoints."""
    from evenmatch.accounts.access import OPERATOR
    from evenmatch.accounts.audit_entries import AuditEntry

    return AuditEntry(OPERATOR, action, ladder, target, {} if body is None else body)


def acting(
    service: Service,
    action: str,
    ladder: str | None = None,
    target: str | None = None,
    body: Mapping[str, object] | None = None,
) -> Service:
    """The same service, recording its changes with this audit entry."""
    return service.noting(audit_entry(action, ladder, target, body))
