"""The client whose methods return when the answer is there."""

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
from evenmatch.client.operation import Blocking
from evenmatch.client.pages import Page
from evenmatch.client.streams import Events, events_of
from evenmatch.client.talk import Outcome, Patience, Pause, Step, Talk
from evenmatch.client.wire import auth_of, check_url, from_environment, request_of
from evenmatch.http.models.queues import TicketTold

P = ParamSpec("P")
T = TypeVar("T")


class Client(Calls, Blocking):
    """The service, as a game's backend or an operator's script uses it. For any number of threads.

    url       the address of `evenmatch serve`, or of the load balancer before it
    key       an API key or a player's token; None: only what the operator opened to everybody
    signed    sign each request by the key, which then does not travel
    patience  seconds for which what is safe to send twice is sent again, with growing pauses, after a failure
    timeout   seconds that one attempt may be silent, beside those for which it asks the service to wait

    Methods raise ProblemError where the service refuses, UnreachableError where no answer comes.

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.patience, self._timeout = patience, timeout
        self._http = httpx.Client(base_url=check_url(url), auth=auth_of(key, signed=signed), transport=transport)

    @classmethod
    def from_env(cls, *, signed: bool = False) -> Client:
        """A client of the service at EVENMATCH_URL, with the key in EVENMATCH_KEY. Raises UsageError without a URL."""
        return cls(*from_environment(), signed=signed)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, talk: Talk[T]) -> T:
        """What a talk comes to."""
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._take(step)

    def _take(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.send(request_of(self._http, step, self._timeout))
        except httpx.RequestError as error:
            return error

    def all(self, read: Callable[P, Page[T]], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Everything on all pages of a list, each page read when it is needed.

        >>> for row in client.all(client.get_standings, "arena", limit=500):
        ...     print(row.rank, row.player)
        """
        page = read(*args, **kwargs)
        yield from page.items
        while page.next is not None:
            page = read(*args, **{**kwargs, "cursor": page.next})  # type: ignore[arg-type] # what has pages has cursors
            yield from page.items

    def ticket_events(self, ladder: str, ticket: int) -> Iterator[TicketTold]:
        """A ticket as one stream tells it: now, at each change, every five seconds; reading is a sign of life.

        The stream ends when the ticket waits no longer, or breaks; `watch_ticket` goes on.
        """
        call = events_of(ladder, ticket)
        try:
            request = request_of(self._http, call, self._timeout)
            with closing(self._http.send(request, stream=True)) as answer:
                if not answer.is_success:
                    answer.read()
                    raise problem_of(answer)
                events = Events()
                for line in answer.iter_lines():
                    told = events.feed(line)
                    if told is not None:
                        yield told
        except httpx.RequestError as error:
            raise unreachable(str(call), error) from error

    def watch_ticket(self, ladder: str, ticket: int) -> Iterator[TicketTold]:
        """A ticket until it is matched or gone, told at each change and every five seconds, over broken streams too.

        >>> for seen in client.watch_ticket("arena", 12):
        ...     print(seen.state, *(line for told in seen.waiting.values() for line in told.sentences))
        """
        left = Patience(self.patience)
        while True:
            failed: ProblemError | UnreachableError = unreachable(str(events_of(ladder, ticket)), "the stream ended")
            try:
                for told in self.ticket_events(ladder, ticket):
                    left.renew()
                    yield told
                    if told.state in OVER:
                        return
            except (ProblemError, UnreachableError) as error:
                failed = error
            time.sleep(left.pause(failed).seconds)
