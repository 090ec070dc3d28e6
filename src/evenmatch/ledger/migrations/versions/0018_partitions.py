"""Hash partitions by ladder of the large tables, in a PostgreSQL database in which nothing is recorded yet.

Tables that have rows stay whole: to copy them would stop the service for as long as that takes. `evenmatch move` into a
new database partitions them while the service goes on. Every statement works with both.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0015"
branch_labels = None
depends_on = None

COUNT = 8
KEYS = {  # the columns of the constraints of each table; all begin with the ladder
    "event": {"pk_event": ("PRIMARY KEY", "ladder, position"), "uq_event_id": ("UNIQUE", "ladder, id")},
    "appearance": {"pk_appearance": ("PRIMARY KEY", "ladder, player, position")},
    "state": {"pk_state": ("PRIMARY KEY", "ladder, generation, player")},
    "journal": {"pk_journal": ("PRIMARY KEY", "ladder, generation, position")},
    "checkpoint": {"pk_checkpoint": ("PRIMARY KEY", "ladder, generation, position")},
}
OPTIONS = {"state": " WITH (fillfactor = 70)"}  # as 0001 sets it
# What a table has that its successor would not have.
BOUND = "SELECT relacl IS NOT NULL OR relhastriggers FROM pg_class WHERE oid = CAST(:name AS regclass)"


def upgrade() -> None:
    """Replace the tables if all are empty and none has grants or triggers."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    op.execute(f"LOCK TABLE {', '.join(KEYS)} IN ACCESS EXCLUSIVE MODE")
    if all(_is_replaceable(connection, name) for name in KEYS):
        for name in KEYS:
            _partition(name)


def _is_replaceable(connection: sa.Connection, name: str) -> bool:
    has_rows = connection.execute(sa.text(f"SELECT EXISTS (SELECT 1 FROM {name})")).scalar_one()
    return not has_rows and not connection.execute(sa.text(BOUND), {"name": name}).scalar_one()


def _partition(name: str) -> None:
    op.execute(f"ALTER TABLE {name} RENAME TO {name}_whole")
    op.execute(f"CREATE TABLE {name} (LIKE {name}_whole INCLUDING DEFAULTS) PARTITION BY HASH (ladder)")
    op.execute(f"DROP TABLE {name}_whole")
    for constraint, (kind, columns) in KEYS[name].items():
        op.execute(f"ALTER TABLE {name} ADD CONSTRAINT {constraint} {kind} ({columns})")
    for number in range(COUNT):
        op.execute(
            f"CREATE TABLE {name}_{number} PARTITION OF {name} "
            f"FOR VALUES WITH (MODULUS {COUNT}, REMAINDER {number}){OPTIONS.get(name, '')}"
        )
