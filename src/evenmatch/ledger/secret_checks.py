"""The row of table `secret_check`, by which a database recognizes its master secret."""

from __future__ import annotations

from evenmatch.ledger import live_schema
from evenmatch.ledger.rows import MASTER
from evenmatch.ledger.secrets import Sealer
from evenmatch.ledger.store import Store

_NAME = "master"


def read(store: Store) -> bytes | None:
    """The check value; None if nothing has been sealed yet."""
    rows = store.all("SELECT value FROM secret_check WHERE name = ?", _NAME)
    return bytes(rows[0][0]) if rows else None


def sealer(store: Store) -> Sealer:
    """The sealer for values that this transaction writes; a change of the master secret waits until it ends.

    The first use determines the master secret of the database.
    Raises SecretError if there is no master secret, or it does not belong to the database.
    """
    store.rows.share(store.connection, MASTER)
    stored = read(store)
    current = store.master.sealer_or_new() if stored is None else store.master.sealer()
    if stored is None:
        store.upsert(live_schema.secret_check, ("name", "value"), [(_NAME, current.check)], same=True)
        stored = read(store)  # another process may have been first
    if stored is None or not current.is_checked_by(stored):
        raise store.master.mismatch()
    return current


def hold(store: Store) -> None:
    """Wait until no transaction seals values, and block new ones until this one ends."""
    store.rows.hold(store.connection, MASTER)


def replace(store: Store, by: Sealer) -> None:
    """Replace the database's master secret; the caller replaces all sealed values."""
    store.upsert(live_schema.secret_check, ("name", "value"), [(_NAME, by.check)])
