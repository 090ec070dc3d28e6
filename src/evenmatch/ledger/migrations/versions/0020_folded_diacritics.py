"""Names are searched without their diacritics."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from evenmatch.ledger.text import fold

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

BATCH = 10_000


def upgrade() -> None:
    """Fold the names of all players again."""
    connection = op.get_bind()
    read = sa.text("SELECT player, name, folded FROM player WHERE player > :after ORDER BY player LIMIT :most")
    write = sa.text("UPDATE player SET folded = :folded WHERE player = :player")
    after = 0
    while rows := connection.execute(read, {"after": after, "most": BATCH}).all():
        folded = [{"player": row.player, "folded": fold(row.name)} for row in rows]
        changed = [new for new, row in zip(folded, rows, strict=True) if new["folded"] != row.folded]
        if changed:
            connection.execute(write, changed)
        after = rows[-1].player
