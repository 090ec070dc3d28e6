"""Seal what signs: keys, shared secrets and webhooks; tables for signatures that were seen and repeated requests.

Values are sealed in the current format of sealing.py, which opens every format that was written.
"""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import sqlite

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# As in schema.py when this was written; a migration stands by itself, so that it does the same for ever.
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")
BYTES: Kind = sa.LargeBinary()


def upgrade() -> None:
    """Make the tables, and seal the secrets. Raises SecretError if there are secrets and no master secret."""
    _create("secret_check", _key("name", TEXT), _column("value", BYTES))
    _create("seen_signature", _key("until"), _key("digest", BYTES), clustered=True)
    _create(
        "idempotent_request",
        _key("caller", TEXT),
        _key("digest", BYTES),
        _column("content", BYTES),
        _column("request", TEXT),
        _column("begun_at"),
        _column("held_until"),
        _column("status", empty=True),
        _column("answer", BYTES, empty=True),
    )
    op.create_index("ix_idempotent_request_begun_at", "idempotent_request", ["begun_at"])
    op.execute("ALTER TABLE api_key RENAME COLUMN digest TO verifier")
    op.add_column("api_key", sa.Column("signing_key", BYTES, nullable=True))
    _seal()


def _seal() -> None:
    connection = op.get_bind()
    connection.execute(sa.text("UPDATE webhook SET secret = :nothing WHERE removed_at IS NOT NULL"), {"nothing": b""})
    keys = connection.execute(sa.text("SELECT key, verifier FROM api_key")).all()
    shared = connection.execute(sa.text("SELECT name, value FROM secret")).all()
    hooks = connection.execute(sa.text("SELECT webhook, secret FROM webhook WHERE removed_at IS NULL")).all()
    if not (keys or shared or hooks):
        return
    sealer = context.config.attributes["master"].sealer_or_new()
    check = sa.text("INSERT INTO secret_check (name, value) VALUES ('master', :value)")
    connection.execute(check, {"value": sealer.check})
    for key, signing_key in keys:  # so far the hash that verified a key was the one that signs
        values = {"key": key, "verifier": hashlib.sha256(signing_key).digest()}
        values["sealed"] = sealer.seal(bytes(signing_key), "api_key", key)
        connection.execute(
            sa.text("UPDATE api_key SET verifier = :verifier, signing_key = :sealed WHERE key = :key"), values
        )
    for name, value in shared:
        values = {"name": name, "sealed": sealer.seal(bytes(value), "secret", name)}
        connection.execute(sa.text("UPDATE secret SET value = :sealed WHERE name = :name"), values)
    for webhook, secret in hooks:
        values = {"webhook": webhook, "sealed": sealer.seal(bytes(secret), "webhook", webhook)}
        connection.execute(sa.text("UPDATE webhook SET secret = :sealed WHERE webhook = :webhook"), values)


def _create(name: str, *columns: sa.Column[Any], clustered: bool = False) -> None:
    key = [column.name for column in columns if column.primary_key]
    constraint = sa.PrimaryKeyConstraint(*key, name=f"pk_{name}")
    op.create_table(name, *columns, constraint, sqlite_strict=True, sqlite_with_rowid=not clustered)


def _key(name: str, kind: Kind = WHOLE) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def _column(name: str, kind: Kind = WHOLE, *, empty: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=empty)
