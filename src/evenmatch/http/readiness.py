"""Regular tests whether the database accepts the writes of this process, or the reads of a follower."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from evenmatch.errors import SecretError, StoreError
from evenmatch.http.logs import log
from evenmatch.operations.master_secret import is_current
from evenmatch.operations.open_database import public_reason, read_test, write_test
from evenmatch.operations.service import Service

TEST_EVERY = 5.0  # seconds
FAILED_AFTER = 10.0  # seconds before a test without a result counts as failed
PATIENCE = 1.0  # seconds to wait for a new result if there is an earlier one
OTHER_SECRET = "this process has another master secret than the database"


class Readiness:
    """Tests writes and the master secret, and keeps the last result. For one event loop.

    The last result holds while a test runs, so that another writer's long transaction does not fail it at once.

    clock   returns seconds, monotonic
    latest  seconds before a test without a result counts as failed
    """

    def __init__(
        self, service: Service, clock: Callable[[], float] = time.monotonic, latest: float = FAILED_AFTER
    ) -> None:
        self._service, self._clock, self._latest = service, clock, latest
        self._begun: float | None = None
        self._test: asyncio.Task[str | None] | None = None
        self._result: str | None = None
        self._has_result = False

    async def problem(self) -> str | None:
        """Return why the database cannot be written, or read by a follower; None if it works."""
        now = self._clock()
        if self._test is None and (self._begun is None or now - self._begun >= TEST_EVERY):
            self._begun, self._test = now, asyncio.create_task(asyncio.to_thread(self._run))
        test = self._test
        if test is not None and self._begun is not None:
            left = self._latest - (now - self._begun)
            wait = min(left, PATIENCE) if self._has_result else left
            await asyncio.wait({test}, timeout=max(wait, 0.0))
            if test.done():
                self._keep(test)
            elif wait >= left:
                return self._failure(f"it has not completed one within {self._latest:g} s")
        return self._result

    def _keep(self, test: asyncio.Task[str | None]) -> None:
        if self._test is not test:  # another request has already stored its result
            return
        result = test.result()
        if result != self._result:
            log.warning("write test", problem=result or "none")
        self._result, self._has_result, self._test = result, True, None

    def _run(self) -> str | None:
        try:
            if self._service.database.writes_at is None:
                write_test(self._service.database, self._service.clock)
            else:
                read_test(self._service.database)
            return None if is_current(self._service.database) else OTHER_SECRET
        except SecretError:
            return OTHER_SECRET
        except StoreError as error:
            return self._failure(public_reason(self._service.database, error))

    def _failure(self, reason: str) -> str:
        fails = "accepts no writes" if self._service.database.writes_at is None else "cannot be read"
        return f"the database {fails}: {reason}"
