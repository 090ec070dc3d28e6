"""The change of a process from a database that was moved to the one that it goes on with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from evenmatch.errors import EvenmatchError
from evenmatch.http.logs import log
from evenmatch.service.next_database import NextDatabase
from evenmatch.service.service import Service

RARELY, OFTEN = 1.0, 0.05  # seconds between two looks at the database: usually, and while it is being moved


class DatabaseChange:
    """Waits until the database of a process was moved, and opens the next one.

    opened  the service of the next database, from then on
    """

    def __init__(self, next_database: NextDatabase) -> None:
        self._next, self._problem = next_database, ""
        self.opened: Service | None = None

    def look(self) -> Service | None:
        """The service of the next database if that is open already; then `wait` is not needed."""
        self._is_close()
        return self.opened

    async def wait(self, leave: Callable[[], None]) -> None:
        """Look at the database until the next one is open, then call `leave`."""
        while self.opened is None:
            await asyncio.sleep(OFTEN if await asyncio.to_thread(self._is_close) else RARELY)
        leave()

    def _is_close(self) -> bool:
        """Open the next database if that is possible; whether it can be expected soon."""
        try:
            self.opened = self._next.open()
        except EvenmatchError as error:
            if str(error) != self._problem:
                log.error("next database", error=str(error))
            self._problem = str(error)
            return False
        return self._next.is_moving


def in_background(act: Callable[[], None]) -> None:
    """Run what ends the work on the former database, while the process already serves the next one."""
    threading.Thread(target=act, name="evenmatch-former-database", daemon=True).start()
