"""A column for what a rating system has learned of the ladder, beside the other results of a replay."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, empty: no system learned anything of a ladder before this version. Checkpoints lack it, too."""
    op.add_column("generation", sa.Column("learned", sa.LargeBinary(), nullable=True))
    op.execute("DELETE FROM checkpoint")
