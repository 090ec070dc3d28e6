"""The master secret of a database: check it, change it, and recover from its loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from evenmatch.accounts import account_sql, request_sql
from evenmatch.accounts.access import OPERATOR
from evenmatch.accounts.audit_trail import note
from evenmatch.ledger import secret_checks
from evenmatch.ledger.database import Database
from evenmatch.ledger.secrets import new_secret, read_secret
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.subscriptions import new_webhook_secret

__all__ = ["ReplacedSecret", "confirm", "is_current", "new_secret", "reset", "rotate", "secret_place"]

RESEAL = (
    account_sql.reseal_api_keys,
    account_sql.reseal_shared_secrets,
    webhook_sql.reseal_webhooks,
    request_sql.reseal,
)


class ReplacedSecret(NamedTuple):
    """A webhook that has a new secret."""

    webhook: int
    url: str
    secret: str


def confirm(database: Database) -> None:
    """Raise SecretError unless this process has the database's master secret; create one for an SQLite database.

    A follower only compares: it must be able to open what the primary has sealed.
    """
    if database.writes_at is not None:
        if not is_current(database):
            raise database.master.mismatch()
        return
    with database.write() as store:
        secret_checks.sealer(store)


def is_current(database: Database) -> bool:
    """Whether this process has the database's master secret. Raises SecretError if it has none."""
    with database.read() as store:
        stored = secret_checks.read(store)
    return stored is None or database.master.sealer().is_checked_by(stored)


def rotate(database: Database, file: Path, clock: Callable[[], int]) -> Path | None:
    """Reseal everything with the master secret in a file, in one transaction.

    If the present secret is in the file beside an SQLite database, replaces that file and returns its path; otherwise
    the processes must be given the new secret. Raises SecretError.
    """
    new = read_secret(file)
    with database.write() as store:
        secret_checks.hold(store)
        old = secret_checks.sealer(store)
        for reseal in RESEAL:
            reseal(store, old, new)
        secret_checks.replace(store, new)
        note(store, OPERATOR, "secret.rotated", now=clock())
    beside = database.master.file
    if beside is None or database.master.place != str(beside):
        return None
    database.master.write(file.read_text(encoding="utf-8").strip())
    return beside


def reset(database: Database, clock: Callable[[], int]) -> list[ReplacedSecret]:
    """Replace everything that is sealed, because the master secret is lost or sealed values were exposed.

    Tokens and sessions end, existing keys can no longer sign, and webhooks get new secrets, which are returned. Keys
    that are sent in clear remain valid. Raises SecretError if there is no master secret to continue with.
    """
    replaced = []
    with database.write() as store:
        secret_checks.hold(store)
        secret_checks.replace(store, database.master.sealer_or_new())
        account_sql.delete_signing_keys(store)
        account_sql.delete_all_secrets(store)
        request_sql.delete_all(store)
        for hook in webhook_sql.read_all_webhooks(store):
            secret = new_webhook_secret()
            webhook_sql.set_secret(store, hook.webhook, secret.encode())
            replaced.append(ReplacedSecret(hook.webhook, hook.url, secret))
        note(store, OPERATOR, "secret.reset", now=clock())
    return replaced


def secret_place(database: Database) -> str | None:
    """Where the master secret of a database is expected: a variable or a path; None if nothing is sealed."""
    with database.read() as store:
        return None if secret_checks.read(store) is None else database.master.place
