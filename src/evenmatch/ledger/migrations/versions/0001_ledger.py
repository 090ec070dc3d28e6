"""The ledger as it began."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
REAL: Kind = sa.Double().with_variant(sqlite.REAL(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")
BYTES: Kind = sa.LargeBinary()


def upgrade() -> None:
    """Make every table."""
    _create(
        "player",
        sa.Column("player", WHOLE, sa.Identity(), primary_key=True),
        _column("name", TEXT),
        _column("folded", TEXT),
        _column("merged_into", empty=True),
        _column("erased_at", empty=True),
    )
    _create("name", _key("name", TEXT), _column("player"), sa.Index("ix_name_player", "player"), clustered=True)
    _create(
        "ladder",
        sa.Column("ladder", WHOLE, sa.Identity(), primary_key=True),
        _column("name", TEXT),
        _column("position"),
        _column("generation"),
        _column("corrected"),
        _column("due", empty=True),
        _column("settings", TEXT),
        _column("created_at"),
        _column("divided_at"),
        sa.UniqueConstraint("name", name="uq_ladder_name"),
    )
    _create(
        "generation",
        _key("ladder"),
        _key("generation"),
        _column("system", TEXT),
        _column("engine", TEXT),
        _column("planned"),
        _column("time", empty=True),
        _column("ready"),
        _column("made_at"),
    )
    _create(
        "event",
        _key("ladder"),
        _key("position"),
        _column("id", TEXT),
        _column("kind", TEXT),
        _column("digest", BYTES),
        _column("recorded_at"),
        _column("played_at", empty=True),
        _column("duration", REAL, empty=True),
        _column("rated", empty=True),
        _column("teams", BYTES, empty=True),
        _column("players", BYTES, empty=True),
        _column("slots", BYTES, empty=True),
        _column("labels", TEXT, empty=True),
        _column("body", TEXT, empty=True),
        _column("generation", empty=True),
        _column("told", BYTES, empty=True),
        _column("seal", BYTES, empty=True),
        sa.UniqueConstraint("ladder", "id", name="uq_event_id"),
    )
    _create("correction", _key("ladder"), _key("position"), clustered=True)
    _create("appearance", _key("ladder"), _key("player"), _key("position"), clustered=True)
    _create(
        "state",
        _key("ladder"),
        _key("generation"),
        _key("player"),
        _column("rating", REAL),
        _column("matches"),
        _column("completed"),
        _column("last_played"),
        _column("last_completed"),
        _column("record", BYTES),
        clustered=True,
    )
    _create("journal", _key("ladder"), _key("generation"), _key("position"), _column("lines", BYTES))
    _create(
        "checkpoint",
        _key("ladder"),
        _key("generation"),
        _key("position"),
        _column("time", empty=True),
        _column("states", BYTES),
    )
    _create("division", _key("ladder"), _key("player"), _column("division"), clustered=True)
    _create(
        "season",
        _key("ladder"),
        _key("season"),
        _column("title", TEXT),
        _column("position"),
        _column("opened_at"),
        _column("closed_at", empty=True),
    )
    _create(
        "final",
        _key("ladder"),
        _key("season"),
        _key("player"),
        _column("rank", empty=True),
        _column("rating", REAL),
        _column("percentile", empty=True),
        _column("division", TEXT, empty=True),
        _column("matches"),
        _column("completed"),
        clustered=True,
    )
    if op.get_bind().dialect.name == "postgresql":  # room in each page for the states that matches change
        op.execute("ALTER TABLE state SET (fillfactor = 70)")


def _create(name: str, *parts: sa.Column[Any] | sa.schema.SchemaItem, clustered: bool = False) -> None:
    key = [part.name for part in parts if isinstance(part, sa.Column) and part.primary_key]
    constraint = sa.PrimaryKeyConstraint(*key, name=f"pk_{name}")
    op.create_table(name, *parts, constraint, sqlite_strict=True, sqlite_with_rowid=not clustered)


def _key(name: str, kind: Kind = WHOLE) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def _column(name: str, kind: Kind = WHOLE, *, empty: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=empty)
