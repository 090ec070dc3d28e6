"""Transactions on a database of ladders, with an audit entry for each change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store


class Transacting:
    """Base class that opens transactions on a database; `clock` returns microseconds since the epoch."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self.database, self.clock = database, clock
        self._audit_entry: AuditEntry | None = None

    def close(self) -> None:
        """Close the connections of the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def noting(self, audit_entry: AuditEntry) -> Self:
        """A copy that records its changes in the audit trail, each in the transaction that makes it."""
        other = copy(self)
        other._audit_entry = audit_entry
        return other

    def note(self, store: Store, target: str | None = None) -> None:
        """Write the audit entry, if there is one. target: what was changed, if that was not known earlier."""
        if self._audit_entry is not None:
            self._audit_entry.note(store, self.clock(), target)

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        with self.database.read() as store:
            yield store

    @contextmanager
    def _writing(self, *, patient: bool = False) -> Iterator[Store]:
        with self.database.write(patient=patient) as store:
            yield store

    @contextmanager
    def _read(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        with self._reading() as store:
            yield store, store.head(ladder)

    @contextmanager
    def reading(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        """Open a transaction that reads a ladder. Raises UnknownNameError."""
        with self._read(ladder) as store_and_head:
            yield store_and_head

    @contextmanager
    def _write(self, ladder: str, *, patient: bool = False) -> Iterator[tuple[Store, Head]]:
        with self._writing(patient=patient) as store:
            yield store, store.lock(ladder)
