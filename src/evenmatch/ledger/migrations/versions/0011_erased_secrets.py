"""Changes nothing: a database has this version once the secrets that 0010 sealed are erased from its free space."""

from __future__ import annotations

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing; see Database._erase_deleted, which cannot run inside a transaction."""
