"""The audit entries of corrections."""

from __future__ import annotations

from evenmatch.accounts.access import Caller
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.ladders.ladders import ChangeRules
from evenmatch.recording.insertion import InsertMatches
from evenmatch.times import iso_time

Correcting = Void | Unvoid | Ban | Reinstate | ChangeRules | InsertMatches


def correcting(caller: Caller, ladder: str, wish: Correcting, request: str | None = None) -> AuditEntry:
    """The audit entry of a correction of a ladder's history."""
    match wish:
        case Void(match_id, reason):
            return AuditEntry(caller, "match.voided", ladder, match_id, {"reason": reason}, request)
        case Unvoid(match_id, reason):
            return AuditEntry(caller, "match.reinstated", ladder, match_id, {"reason": reason}, request)
        case Reinstate(player, reason):
            return AuditEntry(caller, "player.reinstated", ladder, player, {"reason": reason}, request)
        case Ban(player, _, since, reason, until):
            times = {"since": since, "until": until}
            body: dict[str, object] = {"rule": wish.chosen_rule, "reason": reason}
            body |= {name: None if time is None else iso_time(time) for name, time in times.items()}
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
