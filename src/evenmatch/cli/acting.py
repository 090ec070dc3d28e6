"""What is done at the command line, noted in the audit trail beside what is done over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenmatch.service.callers.deeds import Deed
    from evenmatch.service.service import Service


def deed(
    action: str, ladder: str | None = None, target: str | None = None, body: Mapping[str, object] | None = None
) -> Deed:
    """What whoever is at the command line is about to do; actions are named as the endpoints name them."""
    from evenmatch.service.callers.access import OPERATOR
    from evenmatch.service.callers.deeds import Deed

    return Deed(OPERATOR, action, ladder, target, {} if body is None else body)


def acting(
    service: Service,
    action: str,
    ladder: str | None = None,
    target: str | None = None,
    body: Mapping[str, object] | None = None,
) -> Service:
    """The same service; what is changed by it is noted so."""
    return service.noting(deed(action, ladder, target, body))
