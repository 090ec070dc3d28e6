"""Transactions on a database of ladders, and who is noted as having done what is done in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store
from evenmatch.service.callers.deeds import Deed


class Transacting:
    """Opens transactions on a database; `clock` gives microseconds since the epoch."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self.database, self.clock = database, clock
        self._deed: Deed | None = None

    def close(self) -> None:
        """Close its connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def noting(self, deed: Deed) -> Self:
        """The same; what is changed by it is noted in the audit trail, in the same transaction."""
        other = copy(self)
        other._deed = deed
        return other

    def note(self, store: Store, target: str | None = None) -> None:
        """Note it, if there is something to be noted. target: what it was done to, where that is known only now."""
        if self._deed is not None:
            self._deed.note(store, self.clock(), target)

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        with self.database.read() as connection:
            yield Store(connection, self.database.rows)

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        with self.database.write() as connection:
            yield Store(connection, self.database.rows)

    @contextmanager
    def _read(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        with self._reading() as store:
            yield store, store.head(ladder)

    @contextmanager
    def reading(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        """A transaction that reads a ladder. Raises UnknownNameError where there is none of that name."""
        with self._read(ladder) as found:
            yield found

    @contextmanager
    def _write(self, ladder: str) -> Iterator[tuple[Store, Head]]:
        with self._writing() as store:
            yield store, store.lock(ladder)
