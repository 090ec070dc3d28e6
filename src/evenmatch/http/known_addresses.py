"""The client addresses from which a known caller has asked lately."""

from __future__ import annotations

import time
from collections.abc import Callable

KNOWN_FOR = 600.0  # seconds after its last request that an address of a known caller counts as known
MOST_KNOWN = 100_000  # addresses


class KnownAddresses:
    """Addresses, each for KNOWN_FOR seconds after it was last remembered. Use it in the event loop's thread only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, float] = {}  # the longest ago first

    def remember(self, address: str) -> None:
        """Note that a known caller asks from this address."""
        self._seen.pop(address, None)
        self._seen[address] = self._clock()
        if len(self._seen) > MOST_KNOWN:
            del self._seen[next(iter(self._seen))]

    def __contains__(self, address: str) -> bool:
        seen = self._seen.get(address)
        return seen is not None and self._clock() - seen < KNOWN_FOR
