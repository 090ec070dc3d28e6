"""Experiments with two policies in one queue."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "queue_experiment",
        sa.Column("ladder", WHOLE, nullable=False, autoincrement=False),
        sa.Column("experiment", WHOLE, nullable=False, autoincrement=False),
        sa.Column("queue", TEXT, nullable=False),
        sa.Column("started_at", WHOLE, nullable=False),
        sa.Column("stopped_at", WHOLE, nullable=True),
        sa.Column("body", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("ladder", "experiment", name="pk_queue_experiment"),
        sqlite_strict=True,
    )
