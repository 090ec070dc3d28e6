"""Notifications between processes that share a PostgreSQL database (LISTEN/NOTIFY); not available on SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc, pool

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.postgres_store import PostgresStore
from evenmatch.ledger.store import Store

LONGEST = 7000  # bytes of one notification; PostgreSQL allows 8,000
LOOK = 0.5  # seconds between calls of `is_over`


def notify(store: Store, channel: str, text: str) -> None:
    """Send a notification when the transaction commits; do nothing on SQLite."""
    if isinstance(store, PostgresStore):
        store.run("SELECT pg_notify(?, ?)", channel, text)


def listen(database: Database, channel: str, told: Callable[[str], None], is_over: Callable[[], bool]) -> None:
    """Call `told` with each notification until `is_over`; return at once on SQLite. Raises StoreError on disconnect."""
    if database.is_sqlite:
        return
    engine = sa.create_engine(database.url, isolation_level="AUTOCOMMIT", poolclass=pool.NullPool)
    try:
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute(f'LISTEN "{channel}"')
            while not is_over():
                for notification in driver.notifies(timeout=LOOK):
                    told(notification.payload)
    except (exc.DBAPIError, engine.dialect.loaded_dbapi.Error, OSError) as error:
        raise StoreError(f"{database.shown}: the connection for notifications was lost ({error})") from error
    finally:
        engine.dispose()
