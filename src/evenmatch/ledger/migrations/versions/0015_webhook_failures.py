"""A table for webhooks whose receivers fail, and for their pauses."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")


def upgrade() -> None:
    """Create the table, empty: failures are counted from now on."""
    op.create_table(
        "webhook_failure",
        sa.Column("webhook", WHOLE, nullable=False, autoincrement=False),
        sa.Column("failures", WHOLE, nullable=False),
        sa.Column("failed_at", WHOLE, nullable=False),
        sa.Column("paused_at", WHOLE, nullable=True),
        sa.Column("probe_at", WHOLE, nullable=True),
        sa.PrimaryKeyConstraint("webhook", name="pk_webhook_failure"),
        sqlite_strict=True,
    )
