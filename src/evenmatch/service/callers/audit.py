"""The trail of who did what: written with what was done, and never changed."""

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
    """What was done once.

    entry    counts up, with gaps;  at  microseconds since the epoch
    action   as `key.created`;  ladder, target  on which, and to what or whom
    request  by which the logs know the request
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
    """Note what a caller does, in the transaction in which it is done. The body must hold no secret."""
    for what, text in (("target", target), ("request id", request)):
        if text is not None:
            check_text(what, text)
    written = json.dumps({} if body is None else dict(body), ensure_ascii=False, sort_keys=True)
    row = (now, caller.actor, action, ladder, target, written, request)
    store.rows.insert(store.connection, live_schema.audit, COLUMNS, [row])


class Audit:
    """The trail, to be read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, ladder: str | None = None, before: int | None = None, limit: int = 50) -> list[Entry]:
        """The latest entries, the newest first.

        ladder  what was done on this one alone; None: everything
        before  the number of an entry: those older than it; where a page ended the next one begins
        """
        wanted = {"ladder = ?": ladder, "entry < ?": before}
        asked = {sql: value for sql, value in wanted.items() if value is not None}
        where = f" WHERE {' AND '.join(asked)}" if asked else ""
        sql = f"SELECT entry, {', '.join(COLUMNS)} FROM audit{where} ORDER BY entry DESC LIMIT ?"
        with self._database.read() as connection:
            rows = Store(connection, self._database.rows).all(sql, *asked.values(), limit)
        return [Entry(*row)._replace(body=json.loads(row[6])) for row in rows]
