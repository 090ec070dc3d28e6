"""Columns for the expected move of a player's percentile by the next match, beside the other states."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
REAL: Kind = sa.Double().with_variant(sqlite.REAL(), "sqlite")
BYTES: Kind = sa.LargeBinary()


def upgrade() -> None:
    """Add the columns, without moves until a rebuild, and delete checkpoints, which lack the moves."""
    op.add_column("state", sa.Column("recent_change", REAL, nullable=False, server_default="0"))
    op.add_column("state", sa.Column("expected_move", REAL, nullable=False, server_default="100"))
    op.add_column("generation", sa.Column("sample", BYTES, nullable=True))
    op.execute("DELETE FROM checkpoint")
