"""Seats of players that hold on one ladder only."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")


def upgrade() -> None:
    """Make the table, empty: matches that run already keep the seats that they gave."""
    op.create_table(
        "ladder_seat",
        sa.Column("ladder", WHOLE, nullable=False, autoincrement=False),
        sa.Column("player", WHOLE, nullable=False, autoincrement=False),
        sa.Column("match_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("ladder", "player", name="pk_ladder_seat"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
