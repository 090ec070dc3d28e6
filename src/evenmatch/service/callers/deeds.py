"""What somebody does, to be noted in the audit trail by the transaction in which it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenmatch.ledger.store import Store
from evenmatch.service.callers import audit
from evenmatch.service.callers.access import Caller
from evenmatch.service.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.service.ladders import ChangeRules
from evenmatch.service.times import iso_time

Correcting = Void | Unvoid | Ban | Reinstate | ChangeRules


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


def correcting(caller: Caller, ladder: str, wish: Correcting, request: str | None = None) -> Deed:
    """Somebody corrects a ladder's history."""
    match wish:
        case Void(match_id, reason):
            return Deed(caller, "match.voided", ladder, match_id, {"reason": reason}, request)
        case Unvoid(match_id, reason):
            return Deed(caller, "match.reinstated", ladder, match_id, {"reason": reason}, request)
        case Reinstate(player, reason):
            return Deed(caller, "player.reinstated", ladder, player, {"reason": reason}, request)
        case Ban(player, rule, since, reason):
            body = {"rule": rule, "since": None if since is None else iso_time(since), "reason": reason}
            return Deed(caller, "player.banned", ladder, player, body, request)
        case ChangeRules(system, rules, start, skip_bad):
            told: dict[str, object] = {"system": system, "preset": rules.preset, "parameters": rules.values()}
            told |= {"from": "start" if start else "now", "skip_bad": skip_bad}
            return Deed(caller, "rules.changed", ladder, None, told, request)
