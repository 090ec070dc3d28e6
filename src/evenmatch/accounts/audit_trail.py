"""The audit trail: one entry per action, written in the same transaction as the action, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import Caller
from evenmatch.accounts.account_sql import ALL_ENTRIES, AuditFilter, Entry
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text


@dataclass(frozen=True)
class AuditEntry:
    """An action of a caller, to be recorded in the audit trail. The body must not contain secrets.

    target   what the action is applied to
    request  id of the request, as in the logs
    """

    caller: Caller
    action: str
    ladder: str | None = None
    target: str | None = None
    body: Mapping[str, object] = field(default_factory=dict)
    request: str | None = None

    def note(self, store: Store, now: int, target: str | None = None) -> None:
        """Write the entry, in the transaction that performs the action.

        target  replaces the entry's own target, if it was unknown until now
        """
        target = self.target if target is None else target
        for what, text in (("target", target), ("request id", self.request)):
            if text is not None:
                check_text(what, text)
        row = (now, self.caller.actor, self.action, self.ladder, target, self.body, self.request)
        account_sql.insert_audit_entry(store, *row)


class Audit:
    """Read access to the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self,
        ladder: str | None = None,
        before: int | None = None,
        limit: int = 50,
        wanted: AuditFilter = ALL_ENTRIES,
    ) -> list[Entry]:
        """The latest entries, the newest first.

        ladder  only entries of this ladder; None: all entries
        before  only entries with a smaller number: the last number of a page gives the next page
        wanted  further conditions
        """
        wanted = wanted if ladder is None else wanted._replace(ladder=ladder)
        with self._database.read() as store:
            return account_sql.read_audit_page(store, wanted, before, limit)
