"""The client whose methods are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from types import TracebackType
from typing import ParamSpec, TypeVar

import httpx

from evenmatch.client.calls import Calls
from evenmatch.client.calls.tickets import OVER
from evenmatch.client.errors import ProblemError, UnreachableError, problem_of, unreachable
from evenmatch.client.operation import Awaiting
from evenmatch.client.pages import Page
from evenmatch.client.streams import Events, events_of
from evenmatch.client.talk import Outcome, Patience, Pause, Step, Talk
from evenmatch.client.wire import auth_of, check_url, from_environment, request_of
from evenmatch.http.models.queues import TicketTold

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient(Calls, Awaiting):
    """The service for programs with an event loop of asyncio; all as `Client` has it, but its methods are awaited.

    >>> async with AsyncClient("https://ranks.example", "em_…") as client:
    ...     page = await client.get_standings("arena")
    ...     async for row in client.all(client.get_standings, "arena", limit=500):
    ...         print(row.rank, row.player)
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        signed: bool = False,
        patience: float = 30.0,
        timeout: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.patience, self._timeout = patience, timeout
        self._http = httpx.AsyncClient(base_url=check_url(url), auth=auth_of(key, signed=signed), transport=transport)

    @classmethod
    def from_env(cls, *, signed: bool = False) -> AsyncClient:
        """A client of the service at EVENMATCH_URL, with the key in EVENMATCH_KEY. Raises UsageError without a URL."""
        return cls(*from_environment(), signed=signed)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, talk: Talk[T]) -> T:
        """What a talk comes to."""
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._take(step)

    async def _take(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.send(request_of(self._http, step, self._timeout))
        except httpx.RequestError as error:
            return error

    async def all(
        self, read: Callable[P, Coroutine[object, None, Page[T]]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[T]:
        """Everything on all pages of a list, each page read when it is needed."""
        page = await read(*args, **kwargs)
        for item in page.items:
            yield item
        while page.next is not None:
            page = await read(*args, **{**kwargs, "cursor": page.next})  # type: ignore[arg-type] # what has pages has cursors
            for item in page.items:
                yield item

    async def ticket_events(self, ladder: str, ticket: int) -> AsyncGenerator[TicketTold, None]:
        """A ticket as one stream tells it: now, at each change, every five seconds; reading is a sign of life.

        The stream ends when the ticket waits no longer, or breaks; `watch_ticket` goes on.
        """
        call = events_of(ladder, ticket)
        try:
            async with aclosing(
                await self._http.send(request_of(self._http, call, self._timeout), stream=True)
            ) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise problem_of(answer)
                events = Events()
                async for line in answer.aiter_lines():
                    told = events.feed(line)
                    if told is not None:
                        yield told
        except httpx.RequestError as error:
            raise unreachable(str(call), error) from error

    async def watch_ticket(self, ladder: str, ticket: int) -> AsyncGenerator[TicketTold, None]:
        """A ticket until it is matched or gone, told at each change and every five seconds, over broken streams too.

        >>> async for seen in client.watch_ticket("arena", 12):
        ...     print(seen.state, *(line for told in seen.waiting.values() for line in told.sentences))
        """
        left = Patience(self.patience)
        while True:
            failed: ProblemError | UnreachableError = unreachable(str(events_of(ladder, ticket)), "the stream ended")
            try:
                async with aclosing(self.ticket_events(ladder, ticket)) as events:
                    async for told in events:
                        left.renew()
                        yield told
                        if told.state in OVER:
                            return
            except (ProblemError, UnreachableError) as error:
                failed = error
            await asyncio.sleep(left.pause(failed).seconds)
