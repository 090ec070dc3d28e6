"""Skeletons of names, by which names that may pass as another one are noticed."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

from evenmatch.ledger.name_skeletons import LOOK_ALIKE, oddities_of, skeleton_of

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")
ODD = sa.text("oddities IS NOT NULL")
BATCH = 10_000


def upgrade() -> None:
    """Make the table, with a row for every name; of names that look alike the first player's is not odd."""
    table = op.create_table(
        "name_check",
        sa.Column("name", TEXT, nullable=False, autoincrement=False),
        sa.Column("skeleton", TEXT, nullable=False),
        sa.Column("oddities", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_name_check"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    connection = op.get_bind()
    seen: set[str] = set()
    after: tuple[int, str] = (0, "")
    sql = sa.text(
        "SELECT player, name FROM name WHERE player > :player OR (player = :player AND name > :name) "
        "ORDER BY player, name LIMIT :most"
    )
    while rows := connection.execute(sql, {"player": after[0], "name": after[1], "most": BATCH}).all():
        listed = []
        for _, name in rows:
            skeleton, oddities = skeleton_of(name), list(oddities_of(name))
            if skeleton in seen:
                oddities.insert(0, LOOK_ALIKE)
            seen.add(skeleton)
            listed.append({"name": name, "skeleton": skeleton, "oddities": ",".join(oddities) or None})
        connection.execute(sa.insert(table), listed)
        after = rows[-1][0], rows[-1][1]
    op.create_index("ix_name_check_skeleton", "name_check", ["skeleton"])
    op.create_index("ix_name_check_odd", "name_check", ["name"], postgresql_where=ODD, sqlite_where=ODD)
