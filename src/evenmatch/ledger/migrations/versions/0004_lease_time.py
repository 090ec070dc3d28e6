"""When the holder of a lease last renewed it, so that time without a matchmaker does not count as waiting."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")


def upgrade() -> None:
    """Add the column."""
    op.add_column("lease", sa.Column("held_at", WHOLE, nullable=True))
