"""What pages ask all the time of ladders with very many players: names by how they begin, and who was merged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

MERGED = sa.text("merged_into IS NOT NULL")


def upgrade() -> None:
    """Make the indexes."""
    op.create_index("ix_player_folded", "player", ["folded"])
    op.create_index("ix_player_merged_into", "player", ["merged_into"], postgresql_where=MERGED, sqlite_where=MERGED)
