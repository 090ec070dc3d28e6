"""Sealed columns, and the row of table `secret_check` by which a database recognizes its master secret."""

from __future__ import annotations

from evenmatch.errors import SecretError
from evenmatch.ledger import live_schema
from evenmatch.ledger.schema import METADATA
from evenmatch.ledger.secrets import Sealer
from evenmatch.ledger.store import MASTER, Store

_CHECK = "secret_check", "master"  # the table and row for which the check value is sealed
SEALED = (  # table, columns of its primary key, sealed column
    ("api_key", ("key",), "signing_key"),
    ("webhook", ("webhook",), "secret"),
    ("idempotent_request", ("caller", "digest"), "answer"),
)


def read_check(store: Store) -> bytes | None:
    """Return a value that only the master secret of the database opens; None if nothing was sealed yet."""
    rows = store.all("SELECT value FROM secret_check WHERE name = ?", _CHECK[1])
    return bytes(rows[0][0]) if rows else None


def fits(sealer: Sealer, check: bytes) -> bool:
    """Return whether a sealer has the master secret of the database with this check value."""
    try:
        sealer.open(check, *_CHECK)
    except SecretError:
        return False
    return True


def sealer(store: Store) -> Sealer:
    """Return the sealer for values that this transaction writes; a rotation waits until it ends.

    The first call determines the master secret of the database.
    Raises SecretError if this process has no master secret, or another one than the database.
    """
    store.share(MASTER)
    check = read_check(store)
    current = store.master.sealer(create=check is None)
    if check is None:
        write_check(store, current, same=True)
        check = read_check(store)  # another process may have been first
    if check is None or not fits(current, check):
        raise store.master.mismatch()
    return current


def lock(store: Store) -> None:
    """Wait until no transaction seals values, and block new ones until this one ends."""
    store.hold(MASTER)


def write_check(store: Store, by: Sealer, *, same: bool = False) -> None:
    """Make this sealer's secret the one of the database. same: keep an existing one."""
    row = (_CHECK[1], by.seal(b"", *_CHECK))
    store.upsert(live_schema.secret_check, ("name", "value"), [row], same=same)


def reseal(store: Store, by: Sealer) -> None:
    """Open all sealed values and seal them with the first key of the sealer. Raises SecretError."""
    for table, key, column in SEALED:
        rows = store.all(f"SELECT {column}, {', '.join(key)} FROM {table} WHERE LENGTH({column}) > 0")
        resealed = [(*row, by.seal(by.open(bytes(sealed), table, *row), table, *row)) for sealed, *row in rows]
        store.update(METADATA.tables[table], key, (column,), resealed)
    write_check(store, by)
