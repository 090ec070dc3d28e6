"""Create every table, and on PostgreSQL divide the large ones into partitions by ladder.

No version of evenmatch has been released, so this script creates the tables of `schema` as they are now. The first
change of the schema after a release freezes it.
"""

from __future__ import annotations

from alembic import op

from evenmatch.ledger.schema import METADATA

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PARTITIONS = 8
OPTIONS = {"state": " WITH (fillfactor = 70)"}  # room in each page for the states that matches change


def upgrade() -> None:
    """Create the tables."""
    connection = op.get_bind()
    METADATA.create_all(connection)
    if connection.dialect.name != "postgresql":
        return
    for table in METADATA.tables.values():
        if table.dialect_options["postgresql"]["partition_by"]:
            for number in range(PARTITIONS):
                op.execute(
                    f"CREATE TABLE {table.name}_{number} PARTITION OF {table.name} "
                    f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number}){OPTIONS.get(table.name, '')}"
                )
