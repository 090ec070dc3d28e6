"""Pages of lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from evenmatch.client.errors import ListMovedError
from evenmatch.http.models.standings import StandingsPage

T_co = TypeVar("T_co", covariant=True)


class Page(Protocol[T_co]):
    """One page of a list. next: the `cursor` of the following page; None on the last page."""

    @property
    def items(self) -> Sequence[T_co]:
        """The items on this page."""

    @property
    def next(self) -> str | None:
        """The cursor of the next page, or None."""


def check_moment(page: object) -> None:
    """Raise ListMovedError for a page of standings that is of another moment than the pages before."""
    if isinstance(page, StandingsPage) and page.moved:
        raise ListMovedError
