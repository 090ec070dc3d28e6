"""The master secret of a database: check it, rotate it, and recover from its loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evenmatch.accounts import account_sql, request_sql
from evenmatch.accounts.access import OPERATOR
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.errors import SecretError
from evenmatch.ledger import secret_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.secrets import new_secret
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.subscriptions import new_webhook_secret

__all__ = ["ReplacedSecret", "confirm", "is_current", "new_secret", "reset", "rotate", "secret_place"]


class ReplacedSecret(NamedTuple):
    """A webhook and its new secret."""

    webhook: int
    url: str
    secret: str


def confirm(database: Database) -> None:
    """Raise SecretError unless this process has the database's master secret; create one for an SQLite database.

    A follower only compares: it must be able to open what the primary has sealed.
    """
    if database.writes_at is None:
        with database.write() as store:
            secret_rows.sealer(store)
    elif not is_current(database):
        raise database.master.mismatch()


def is_current(database: Database) -> bool:
    """Return whether this process has the master secret of the database. Raises SecretError if it has none."""
    with database.read() as store:
        check = secret_rows.read_check(store)
    return check is None or secret_rows.fits(database.master.sealer(), check)


def secret_place(database: Database) -> str | None:
    """Return the variable or file that should contain the master secret; None if nothing is sealed."""
    with database.read() as store:
        return None if secret_rows.read_check(store) is None else database.master.place


def rotate(database: Database, clock: Callable[[], int]) -> None:
    """Seal everything with the first key of the master secret, in one transaction. Raises SecretError."""
    with database.write() as store:
        secret_rows.lock(store)
        secret_rows.reseal(store, secret_rows.sealer(store))
        AuditEntry(OPERATOR, "secret.rotated").note(store, clock())


def reset(database: Database, clock: Callable[[], int]) -> list[ReplacedSecret]:
    """Replace everything that is sealed, because the master secret is lost or was seen by others.

    Tokens and sessions end, existing keys can no longer sign, and webhooks get new secrets, which are returned. Bearer
    keys stay valid. Raises SecretError without a new master secret.
    """
    replaced = []
    with database.write() as store:
        secret_rows.lock(store)
        check, current = secret_rows.read_check(store), database.master.sealer(create=True)
        if check is not None and secret_rows.fits(current, check):
            raise SecretError("the master secret still opens what is in the database; set a new one first")
        secret_rows.write_check(store, current)
        account_sql.delete_signing_keys(store)
        request_sql.delete_all(store)
        for hook in webhook_sql.read_all_webhooks(store):
            secret = new_webhook_secret()
            webhook_sql.set_secret(store, hook.webhook, secret.encode())
            replaced.append(ReplacedSecret(hook.webhook, hook.url, secret))
        AuditEntry(OPERATOR, "secret.reset").note(store, clock())
    return replaced
