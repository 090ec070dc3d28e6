"""Odds of each team, kept for an audit of queues; and the filters that players keep."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")


COLUMNS = (("queue", TEXT), ("formed_at", WHOLE), ("policy", WHOLE), ("body", TEXT))


def upgrade() -> None:
    """Make the table, and convert what is stored. Odds of one of three or more teams are dropped."""
    op.create_table(
        "formed_match",
        sa.Column("ladder", WHOLE, nullable=False, autoincrement=False),
        sa.Column("match_id", TEXT, nullable=False),
        *(sa.Column(name, kind, nullable=False) for name, kind in COLUMNS),
        sa.PrimaryKeyConstraint("ladder", "match_id", name="pk_formed_match"),
        sqlite_strict=True,
    )
    op.create_table(
        "queue_filter",
        sa.Column("ladder", WHOLE, nullable=False, autoincrement=False),
        sa.Column("player", WHOLE, nullable=False, autoincrement=False),
        sa.Column("body", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("ladder", "player", name="pk_queue_filter"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_formed_match_queue", "formed_match", ["ladder", "queue", "formed_at"])
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
