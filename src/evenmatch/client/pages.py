"""Lists that come in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Page(Protocol[T_co]):
    """A page of a list. next: what to send as `cursor` to get the page after; None: this is the last."""

    @property
    def items(self) -> Sequence[T_co]:
        """What stands on it."""

    @property
    def next(self) -> str | None:
        """Where the next begins."""
