"""Rows of table `audit`: one entry per action, inserted in the transaction of the action and never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store

_COLUMNS = ("at", "actor", "action", "ladder", "target", "body", "request")


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


def insert(
    store: Store,
    now: int,
    actor: str,
    action: str,
    *,
    ladder: str | None,
    target: str | None,
    body: Mapping[str, object],
    request: str | None,
) -> None:
    """Insert an entry with the fields of Entry. now: its time."""
    written = json.dumps(dict(body), ensure_ascii=False, sort_keys=True)
    row = (now, actor, action, ladder, target, written, request)
    store.insert(live_schema.audit, _COLUMNS, [row])


def contains(store: Store, actor: str, request: str, since: int) -> bool:
    """Whether a request of an actor has been noted since a time in microseconds."""
    sql = "SELECT 1 FROM audit WHERE at >= ? AND actor = ? AND request = ? LIMIT 1"
    return bool(store.all(sql, since, actor, request))


def read_page(store: Store, ladder: str | None, before: int | None, limit: int) -> list[Entry]:
    """The latest entries, the newest first.

    ladder  only entries of this ladder; None: all entries;  before  only entries with a smaller number; None: all
    """
    conditions = {"ladder = ?": ladder, "entry < ?": before}
    filters = {sql: value for sql, value in conditions.items() if value is not None}
    where = f" WHERE {' AND '.join(filters)}" if filters else ""
    sql = f"SELECT entry, {', '.join(_COLUMNS)} FROM audit{where} ORDER BY entry DESC LIMIT ?"
    rows = store.all(sql, *filters.values(), limit)
    return [Entry(*row)._replace(body=json.loads(row[6])) for row in rows]
