"""Standings as a busy site reads them: the kept view and pages of it, without a thread and without the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from evenmatch.http.pages import Pages
from evenmatch.service.boards import View
from evenmatch.service.service import Service

T = TypeVar("T")


class Once(Generic[T]):
    """What is asked for while it is being made, in a thread, is made once. For the event loop's thread."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._making: dict[Hashable, asyncio.Future[T]] = {}

    async def get(self, question: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, or raises."""
        making = self._making.get(question)
        if making is None:
            making = asyncio.get_running_loop().run_in_executor(self._threads, make)
            self._making[question] = making
            making.add_done_callback(lambda done: self._end(question, done))
        return await asyncio.shield(making)  # who goes away takes nothing from the others

    def _end(self, question: Hashable, done: asyncio.Future[T]) -> None:
        del self._making[question]
        if not done.cancelled():
            done.exception()  # whoever asked may have gone: it is not to be called unheard


class Views:
    """The standings of ladders, and answers that were made from them. For the event loop's thread.

    A view that has become old is made anew by one thread, however many ask for it.
    """

    def __init__(self, service: Service, threads: ThreadPoolExecutor, pages: Pages) -> None:
        self._service, self._pages = service, pages
        self._views: Once[View] = Once(threads)
        self._answers: Once[bytes] = Once(threads)

    async def view(self, ladder: str) -> View:
        """A ladder's standings, which may be some seconds old. Raises UnknownNameError."""
        young = self._service.young_view(ladder)
        if young is not None:
            return young
        return await self._views.get(ladder, lambda: self._service.view(ladder, fresh=False))

    async def page(self, ladder: str, question: Hashable, make: Callable[[View], bytes]) -> tuple[View, bytes]:
        """The answer to a question about a ladder's standings, made in a thread where it is not kept, and from what."""
        view = await self.view(ladder)
        kept = self._pages.find((ladder, question), view)
        if kept is None:
            kept = await self._answers.get((ladder, question, id(view)), lambda: make(view))
            self._pages.keep((ladder, question), view, kept)
        return view, kept
