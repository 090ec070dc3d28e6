"""A cache of encoded responses, each valid while the object it was made from is the current one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

MOST = 512


class ByteCache:
    """An LRU cache of encoded responses by question and source object. Not thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._cached: OrderedDict[Hashable, tuple[object, bytes]] = OrderedDict()

    def find(self, question: Hashable, made_from: object) -> bytes | None:
        """The cached answer to a question, if it was made from this same object."""
        cached = self._cached.get(question)
        if cached is None or cached[0] is not made_from:
            return None
        self._cached.move_to_end(question)
        return cached[1]

    def keep(self, question: Hashable, made_from: object, answer: bytes) -> None:
        """Store an answer, removing the least recently used one if the cache is full."""
        self._cached[question] = (made_from, answer)
        self._cached.move_to_end(question)
        if len(self._cached) > self._most:
            self._cached.popitem(last=False)

    def get(self, question: Hashable, made_from: object, make: Callable[[], bytes]) -> bytes:
        """The answer to a question, computed with `make` and stored if it is not cached."""
        answer = self.find(question, made_from)
        if answer is None:
            answer = make()
            self.keep(question, made_from, answer)
        return answer
