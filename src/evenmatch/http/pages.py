"""Answers that many ask for, kept as bytes while what they were made from is the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

MOST = 512


class Pages:
    """The latest answers, by what they tell and by what they were made from. For one thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[object, bytes]] = OrderedDict()

    def find(self, question: Hashable, made_from: object) -> bytes | None:
        """The answer to a question, if it was made from this very object."""
        kept = self._kept.get(question)
        if kept is None or kept[0] is not made_from:
            return None
        self._kept.move_to_end(question)
        return kept[1]

    def keep(self, question: Hashable, made_from: object, answer: bytes) -> None:
        """Keep an answer, in the place of the one that nobody asked for longest."""
        self._kept[question] = (made_from, answer)
        self._kept.move_to_end(question)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def get(self, question: Hashable, made_from: object, make: Callable[[], bytes]) -> bytes:
        """The answer to a question, made if need be."""
        found = self.find(question, made_from)
        if found is None:
            found = make()
            self.keep(question, made_from, found)
        return found
