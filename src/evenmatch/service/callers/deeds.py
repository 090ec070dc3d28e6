"""What somebody does, to be noted in the audit trail by the transaction in which it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenmatch.ledger.store import Store
from evenmatch.service.callers import audit
from evenmatch.service.callers.access import Caller


@dataclass(frozen=True)
class Deed:
    """Somebody does something; the fields are those of audit.note. The body must hold no secret."""

    caller: Caller
    action: str
    ladder: str | None = None
    target: str | None = None
    body: Mapping[str, object] = field(default_factory=dict)
    request: str | None = None

    def note(self, store: Store, now: int, target: str | None = None) -> None:
        """Note it. target: what it was done to, where that is known only now."""
        audit.note(
            store,
            self.caller,
            self.action,
            ladder=self.ladder,
            target=self.target if target is None else target,
            body=self.body,
            now=now,
            request=self.request,
        )
