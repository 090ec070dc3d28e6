"""Run the migrations inside the transaction that database.py opened, so that they are atomic."""

from __future__ import annotations

from alembic import context

from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
