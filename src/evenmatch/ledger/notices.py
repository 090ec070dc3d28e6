"""Words between the processes that share a PostgreSQL database, to wake who waits. SQLite has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc, pool

from evenmatch.errors import StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.rows import SqliteRows
from evenmatch.ledger.store import Store

LONGEST = 7000  # bytes of one notice; PostgreSQL takes 8,000
LOOK = 0.5  # seconds between two looks at whether to stop


def notify(store: Store, channel: str, text: str) -> None:
    """Send a notice when the transaction commits; nothing on SQLite."""
    if not isinstance(store.rows, SqliteRows):
        store.run("SELECT pg_notify(?, ?)", channel, text)


def listen(database: Database, channel: str, told: Callable[[str], None], is_over: Callable[[], bool]) -> None:
    """Call `told` with each notice until `is_over`; returns at once on SQLite. Raises StoreError where it is lost."""
    if isinstance(database.rows, SqliteRows):
        return
    engine = sa.create_engine(database.url, isolation_level="AUTOCOMMIT", poolclass=pool.NullPool)
    try:
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute(f'LISTEN "{channel}"')
            while not is_over():
                for notice in driver.notifies(timeout=LOOK):
                    told(notice.payload)
    except (exc.DBAPIError, engine.dialect.loaded_dbapi.Error, OSError) as error:
        raise StoreError(f"{database.shown}: no notices come any more ({error})") from error
    finally:
        engine.dispose()
