"""The audit trail: one entry per action, written in the same transaction as the action, never changed."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import Caller
from evenmatch.accounts.account_sql import Entry
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text


def note(
    store: Store,
    caller: Caller,
    action: str,
    *,
    ladder: str | None = None,
    target: str | None = None,
    body: Mapping[str, object] | None = None,
    now: int,
    request: str | None = None,
) -> None:
    """Write an entry, in the transaction that performs the action. The body must not contain secrets."""
    for what, text in (("target", target), ("request id", request)):
        if text is not None:
            check_text(what, text)
    account_sql.insert_audit_entry(
        store, now, caller.actor, action, ladder=ladder, target=target, body=body or {}, request=request
    )


class Audit:
    """Read access to the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, ladder: str | None = None, before: int | None = None, limit: int = 50) -> list[Entry]:
        """The latest entries, the newest first.

        ladder  only entries of this ladder; None: all entries
        before  only entries with a smaller number: the last number of a page gives the next page
        """
        with self._database.read() as store:
            return account_sql.read_audit_page(store, ladder, before, limit)
