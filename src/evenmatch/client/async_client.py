"""Asynchronous client: its methods are coroutines."""

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
from evenmatch.client.operation import AwaitingCaller
from evenmatch.client.pages import Page, check_moment
from evenmatch.client.streams import Events, events_of
from evenmatch.client.talk import Outcome, Patience, RetryPause, Step, Talk
from evenmatch.client.wire import auth_of, check_url, from_environment, request_of
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.queues import TicketOut

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient(Calls, AwaitingCaller):
    """Client of the service for asyncio programs: the same methods and arguments as `Client`, but awaited.

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
        on_job: Callable[[JobOut], None] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.patience, self._timeout, self.on_job = patience, timeout, on_job
        self._http = httpx.AsyncClient(base_url=check_url(url), auth=auth_of(key, signed=signed), transport=transport)

    @classmethod
    def from_env(cls, *, signed: bool = False) -> AsyncClient:
        """Create a client from EVENMATCH_URL and EVENMATCH_KEY. Raises UsageError if EVENMATCH_URL is not set."""
        return cls(*from_environment(), signed=signed)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, talk: Talk[T]) -> T:
        """Carry out a talk and return its result."""
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._carry_out(step)

    async def _carry_out(self, step: Step) -> Outcome:
        if isinstance(step, RetryPause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.send(request_of(self._http, step, self._timeout))
        except httpx.RequestError as error:
            return error

    async def all(
        self, read: Callable[P, Coroutine[object, None, Page[T]]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[T]:
        """Iterate over the items of all pages of a list; each page is requested when it is needed.

        Standings are those of one moment. Raises ListMovedError if they moved on in between: begin again.
        """
        page = await read(*args, **kwargs)
        for item in page.items:
            yield item
        while page.next is not None:
            page = await read(*args, **{**kwargs, "cursor": page.next})  # type: ignore[arg-type] # each such method takes a cursor
            check_moment(page)
            for item in page.items:
                yield item

    async def ticket_events(self, ladder: str, ticket: int) -> AsyncGenerator[TicketOut, None]:
        """The states of a ticket from one event stream: now, after each change and every 5 s.

        Reading counts as a heartbeat. Ends when the ticket is matched or gone, or when the connection breaks;
        `watch_ticket` reconnects.
        """
        call = events_of(ladder, ticket)
        try:
            async with aclosing(
                await self._http.send(request_of(self._http, call, self._timeout), stream=True)
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise problem_of(response)
                events = Events()
                async for line in response.aiter_lines():
                    ticket_state = events.feed(line)
                    if ticket_state is not None:
                        yield ticket_state
        except httpx.RequestError as error:
            raise unreachable(str(call), error) from error

    async def watch_ticket(self, ladder: str, ticket: int) -> AsyncGenerator[TicketOut, None]:
        """The states of a ticket until it is matched or gone, after each change and every 5 s; reconnects if needed.

        Of a playlist, those of the ticket that has an offer or the match, of whichever ladder.

        >>> async for ticket in client.watch_ticket("arena", 12):
        ...     print(ticket.state, *(sentence for queue in ticket.waiting.values() for sentence in queue.sentences))
        """
        retries = Patience(self.patience)
        while True:
            failure: ProblemError | UnreachableError | None
            failure = unreachable(str(events_of(ladder, ticket)), "the stream ended")
            try:
                async with aclosing(self.ticket_events(ladder, ticket)) as events:
                    async for ticket_state in events:
                        retries.renew()
                        yield ticket_state
                        if ticket_state.follow is not None:
                            ladder, ticket, failure = ticket_state.follow.ladder, ticket_state.follow.ticket, None
                            break
                        if ticket_state.state in OVER:
                            return
            except (ProblemError, UnreachableError) as error:
                failure = error
            if failure is not None:
                await asyncio.sleep(retries.pause(failure).seconds)
