"""Synchronous client: its methods block until the response has arrived."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from types import TracebackType
from typing import ParamSpec, TypeVar

import httpx

from evenmatch.client.calls import Calls
from evenmatch.client.calls.tickets import OVER
from evenmatch.client.errors import ProblemError, UnreachableError, problem_of, unreachable
from evenmatch.client.operation import BlockingCaller
from evenmatch.client.pages import Page, check_moment
from evenmatch.client.streams import Events, events_of
from evenmatch.client.talk import Outcome, Patience, RetryPause, Step, Talk
from evenmatch.client.wire import auth_of, check_url, from_environment, request_of
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.queues import TicketOut

P = ParamSpec("P")
T = TypeVar("T")


class Client(Calls, BlockingCaller):
    """Client of the service for game backends and operator scripts. Safe to share between threads.

    url       address of `evenmatch serve`, or of the load balancer in front of it
    key       API key or player's token; None: only reads that the operator opened to everybody
    signed    sign each request with the key instead of sending the key
    patience  seconds during which a failed request is retried, with growing pauses
    timeout   seconds without data after which one attempt fails; a requested long poll adds its `wait`
    on_job    called every few seconds with the job that a method waits for, to show its progress

    Methods raise ProblemError if the service refuses the request, UnreachableError if there is no valid response.

    >>> with Client("https://ranks.example", "em_…") as client:
    ...     client.get_standings("arena").items[0].player
    'ann'
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.patience, self._timeout, self.on_job = patience, timeout, on_job
        self._http = httpx.Client(base_url=check_url(url), auth=auth_of(key, signed=signed), transport=transport)

    @classmethod
    def from_env(cls, *, signed: bool = False) -> Client:
        """Create a client from EVENMATCH_URL and EVENMATCH_KEY. Raises UsageError if EVENMATCH_URL is not set."""
        return cls(*from_environment(), signed=signed)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, talk: Talk[T]) -> T:
        """Carry out a talk and return its result."""
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._carry_out(step)

    def _carry_out(self, step: Step) -> Outcome:
        if isinstance(step, RetryPause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.send(request_of(self._http, step, self._timeout))
        except httpx.RequestError as error:
            return error

    def all(self, read: Callable[P, Page[T]], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Iterate over the items of all pages of a list; each page is requested when it is needed.

        Standings are those of one moment. Raises ListMovedError if they moved on in between: begin again.

        >>> for row in client.all(client.get_standings, "arena", limit=500):
        ...     print(row.rank, row.player)
        """
        page = read(*args, **kwargs)
        yield from page.items
        while page.next is not None:
            page = read(*args, **{**kwargs, "cursor": page.next})  # type: ignore[arg-type] # each such method takes a cursor
            check_moment(page)
            yield from page.items

    def ticket_events(self, ladder: str, ticket: int) -> Iterator[TicketOut]:
        """The states of a ticket from one event stream: now, after each change and every 5 s.

        Reading counts as a heartbeat. Ends when the ticket is matched or gone, or when the connection breaks;
        `watch_ticket` reconnects.
        """
        call = events_of(ladder, ticket)
        try:
            request = request_of(self._http, call, self._timeout)
            with closing(self._http.send(request, stream=True)) as response:
                if not response.is_success:
                    response.read()
                    raise problem_of(response)
                events = Events()
                for line in response.iter_lines():
                    ticket_state = events.feed(line)
                    if ticket_state is not None:
                        yield ticket_state
        except httpx.RequestError as error:
            raise unreachable(str(call), error) from error

    def watch_ticket(self, ladder: str, ticket: int) -> Iterator[TicketOut]:
        """The states of a ticket until it is matched or gone, after each change and every 5 s; reconnects if needed.

        Of a playlist, those of the ticket that has an offer or the match, of whichever ladder.

        >>> for ticket in client.watch_ticket("arena", 12):
        ...     print(ticket.state, *(sentence for queue in ticket.waiting.values() for sentence in queue.sentences))
        """
        retries = Patience(self.patience)
        while True:
            failure: ProblemError | UnreachableError | None
            failure = unreachable(str(events_of(ladder, ticket)), "the stream ended")
            try:
                for ticket_state in self.ticket_events(ladder, ticket):
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
                time.sleep(retries.pause(failure).seconds)
