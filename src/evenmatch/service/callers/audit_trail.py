"""The audit trail: one entry per action, written in the same transaction as the action, never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text
from evenmatch.service.callers.access import Caller

COLUMNS = ("at", "actor", "action", "ladder", "target", "body", "request")


class Entry(NamedTuple):
    """An entry of the audit trail.

    entry    ascending number, with gaps;  at  microseconds since the epoch
    action   for example `key.created`;  ladder, target  what the action was applied to
    request  the request id, as in the logs
    """

    entry: int
    at: int
    actor: str
    action: str
    ladder: str | None
    target: str | None
    body: dict[str, object]
    request: str | None


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
    written = json.dumps({} if body is None else dict(body), ensure_ascii=False, sort_keys=True)
    row = (now, caller.actor, action, ladder, target, written, request)
    store.rows.insert(store.connection, live_schema.audit, COLUMNS, [row])


class Audit:
    """Read access to the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, ladder: str | None = None, before: int | None = None, limit: int = 50) -> list[Entry]:
        """The latest entries, the newest first.

        ladder  only entries of this ladder; None: all entries
        before  only entries with a smaller number: the last number of a page gives the next page
        """
        conditions = {"ladder = ?": ladder, "entry < ?": before}
        filters = {sql: value for sql, value in conditions.items() if value is not None}
        where = f" WHERE {' AND '.join(filters)}" if filters else ""
        sql = f"SELECT entry, {', '.join(COLUMNS)} FROM audit{where} ORDER BY entry DESC LIMIT ?"
        with self._database.read() as connection:
            rows = Store(connection, self._database.rows).all(sql, *filters.values(), limit)
        return [Entry(*row)._replace(body=json.loads(row[6])) for row in rows]
