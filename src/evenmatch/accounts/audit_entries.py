"""Audit entries: actions to be recorded in the audit trail, in the transaction that performs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenmatch.accounts import audit_trail
from evenmatch.accounts.access import Caller
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.ladders.ladders import ChangeRules
from evenmatch.ledger.store import Store
from evenmatch.recording.insertion import InsertMatches
from evenmatch.times import iso_time

Correcting = Void | Unvoid | Ban | Reinstate | ChangeRules | InsertMatches


@dataclass(frozen=True)
class AuditEntry:
    """An action of a caller; the fields are those of audit_trail.note. The body must not contain secrets."""

    caller: Caller
    action: str
    ladder: str | None = None
    target: str | None = None
    body: Mapping[str, object] = field(default_factory=dict)
    request: str | None = None

    def note(self, store: Store, now: int, target: str | None = None) -> None:
        """Write the entry. target: replaces the entry's own, for a target that was not known before."""
        audit_trail.note(
            store,
            self.caller,
            self.action,
            ladder=self.ladder,
            target=self.target if target is None else target,
            body=self.body,
            now=now,
            request=self.request,
        )


def correcting(caller: Caller, ladder: str, wish: Correcting, request: str | None = None) -> AuditEntry:
    """The audit entry of a correction of a ladder's history."""
    match wish:
        case Void(match_id, reason):
            return AuditEntry(caller, "match.voided", ladder, match_id, {"reason": reason}, request)
        case Unvoid(match_id, reason):
            return AuditEntry(caller, "match.reinstated", ladder, match_id, {"reason": reason}, request)
        case Reinstate(player, reason):
            return AuditEntry(caller, "player.reinstated", ladder, player, {"reason": reason}, request)
        case Ban(player, rule, since, reason):
            body = {"rule": rule, "since": None if since is None else iso_time(since), "reason": reason}
            return AuditEntry(caller, "player.banned", ladder, player, body, request)
        case InsertMatches(batch, reason):
            target = batch.ids[0] if len(batch) == 1 else None
            return AuditEntry(
                caller, "matches.inserted", ladder, target, {"matches": len(batch), "reason": reason}, request
            )
        case ChangeRules(system, rules, start, skip_bad):
            change: dict[str, object] = {"system": system, "preset": rules.preset, "parameters": rules.values()}
            change |= {"from": "start" if start else "now", "skip_bad": skip_bad}
            return AuditEntry(caller, "rules.changed", ladder, None, change, request)
