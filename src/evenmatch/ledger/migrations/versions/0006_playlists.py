"""The tickets of each playlist."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


TEXT: sa.types.TypeEngine[Any] = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")


def upgrade() -> None:
    """Add the column; tickets that wait are in no playlist."""
    op.add_column("ticket", sa.Column("playlist", TEXT, nullable=True))
