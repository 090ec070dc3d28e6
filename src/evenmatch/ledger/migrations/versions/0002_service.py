"""What a running service keeps beside the ledger: keys, queues, running matches, webhooks."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
REAL: Kind = sa.Double().with_variant(sqlite.REAL(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")
BYTES: Kind = sa.LargeBinary()
OPEN = "state = 'open'"
DEAD = "next_at IS NULL AND delivered_at IS NULL"


def upgrade() -> None:
    """Make the tables; those of the ledger stay as they are."""
    _create(
        "api_key",
        _key("key", TEXT),
        _column("name", TEXT),
        _column("digest", BYTES),
        _column("scopes", TEXT),
        _column("ladders", TEXT, empty=True),
        _column("created_at"),
        _column("expires_at", empty=True),
        _column("revoked_at", empty=True),
    )
    _create("secret", _key("name", TEXT), _column("value", BYTES), _column("created_at"))
    _create("counter", _key("name", TEXT), _column("value"))
    _create(
        "audit",
        sa.Column("entry", WHOLE, sa.Identity(), primary_key=True),
        _column("at"),
        _column("actor", TEXT),
        _column("action", TEXT),
        _column("ladder", TEXT, empty=True),
        _column("target", TEXT, empty=True),
        _column("body", TEXT),
        _column("request", TEXT, empty=True),
        sa.Index("ix_audit_ladder", "ladder", "entry"),
    )
    _create("lease", _key("name", TEXT), _column("owner", TEXT), _column("beat"))
    _create("line", _key("ladder"), _column("change"))
    _create(
        "queue", _key("ladder"), _key("queue", TEXT), _column("change"), _column("policy", TEXT), _column("rules", TEXT)
    )
    _create(
        "ticket",
        _key("ladder"),
        _key("ticket"),
        _column("change"),
        _column("state", TEXT),
        _column("queued_at"),
        _column("seen_at"),
        _column("body", TEXT),
        _column("offer", empty=True),
        _column("match_id", TEXT, empty=True),
        _column("ended", TEXT, empty=True),
        sa.Index("ix_ticket_change", "ladder", "change"),
    )
    _create(
        "seat",
        _key("player"),
        _column("ladder"),
        _column("ticket", empty=True),
        _column("match_id", TEXT, empty=True),
        clustered=True,
    )
    _create(
        "offer",
        _key("ladder"),
        _key("offer"),
        _column("change"),
        _column("queue", TEXT),
        _column("state", TEXT),
        _column("made_at"),
        _column("deadline"),
        _column("match_id", TEXT, empty=True),
        _column("body", TEXT),
        _column("said", TEXT),
        sa.Index("ix_offer_change", "ladder", "change"),
    )
    _create(
        "penalty",
        _key("ladder"),
        _key("player"),
        _column("strikes", REAL),
        _column("struck_at"),
        _column("until"),
        clustered=True,
    )
    _create(
        "live",
        _key("ladder"),
        _key("match_id", TEXT),
        _column("change"),
        _column("state", TEXT),
        _column("queue", TEXT, empty=True),
        _column("started_at"),
        _column("expires_at"),
        _column("body", TEXT),
        _column("openings", TEXT, empty=True),
        sa.Index("ix_live_change", "ladder", "change"),
        sa.Index("ix_live_open", "ladder", postgresql_where=sa.text(OPEN), sqlite_where=sa.text(OPEN)),
    )
    _create(
        "webhook",
        sa.Column("webhook", WHOLE, sa.Identity(), primary_key=True),
        _column("ladder", TEXT, empty=True),
        _column("url", TEXT),
        _column("secret", BYTES),
        _column("events", TEXT),
        _column("created_at"),
        _column("removed_at", empty=True),
    )
    _create("told", _key("ladder"), _key("webhook"), _column("position"), _column("change"), clustered=True)
    _create(
        "delivery",
        sa.Column("delivery", WHOLE, sa.Identity(), primary_key=True),
        _column("webhook"),
        _column("event", TEXT),
        _column("body", TEXT),
        _column("made_at"),
        _column("attempts"),
        _column("next_at", empty=True),
        _column("delivered_at", empty=True),
        _column("error", TEXT, empty=True),
        sa.Index("ix_delivery_next_at", "next_at"),
        sa.Index("ix_delivery_webhook", "webhook", "delivery"),
        sa.Index("ix_delivery_dead", "delivery", postgresql_where=sa.text(DEAD), sqlite_where=sa.text(DEAD)),
    )
    _create(
        "job",
        _key("job", TEXT),
        _column("ladder_name", TEXT),
        _column("kind", TEXT),
        _column("state", TEXT),
        _column("done"),
        _column("total"),
        _column("told", TEXT),
        _column("begun_at"),
        _column("changed_at"),
    )


def _create(name: str, *parts: sa.Column[Any] | sa.schema.SchemaItem, clustered: bool = False) -> None:
    key = [part.name for part in parts if isinstance(part, sa.Column) and part.primary_key]
    constraint = sa.PrimaryKeyConstraint(*key, name=f"pk_{name}")
    op.create_table(name, *parts, constraint, sqlite_strict=True, sqlite_with_rowid=not clustered)


def _key(name: str, kind: Kind = WHOLE) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def _column(name: str, kind: Kind = WHOLE, *, empty: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=empty)
