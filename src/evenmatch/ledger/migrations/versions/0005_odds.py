"""Odds of offers and live matches: of each team, and no longer of the first one alone."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Convert what is stored. With three or more teams the odds were of two of them: they are dropped."""
    connection = op.get_bind()
    for table, key in (("offer", "offer"), ("live", "match_id")):
        rows = connection.execute(sa.text(f"SELECT ladder, {key}, body FROM {table}")).all()
        change = sa.text(f"UPDATE {table} SET body = :body WHERE ladder = :ladder AND {key} = :key")
        for ladder, number, text in rows:
            body = json.loads(text)
            if "odds" in body:
                changed = json.dumps({**body, "odds": _of_each_team(body)}, ensure_ascii=False, sort_keys=True)
                connection.execute(change, {"body": changed, "ladder": ladder, "key": number})


def _of_each_team(body: dict[str, Any]) -> list[float] | None:
    first = body["odds"]
    return None if first is None or len(body["teams"]) != 2 else [first, 1 - first]
