"""What pages need: names by how they begin, who was merged, and sessions that were ended."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")
MERGED = sa.text("merged_into IS NOT NULL")


def upgrade() -> None:
    """Make the indexes, and the table."""
    op.create_index("ix_player_folded", "player", ["folded"])
    op.create_index("ix_player_merged_into", "player", ["merged_into"], postgresql_where=MERGED, sqlite_where=MERGED)
    session = sa.Column("session", TEXT, primary_key=True, autoincrement=False)
    constraint = sa.PrimaryKeyConstraint("session", name="pk_ended_session")
    until = sa.Column("until", WHOLE, nullable=False)
    op.create_table("ended_session", session, until, constraint, sqlite_strict=True)
