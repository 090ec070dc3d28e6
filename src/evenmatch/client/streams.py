"""Server-sent events of tickets."""

from __future__ import annotations

from evenmatch.client.call import Call, nothing, path_of
from evenmatch.http.models.queues import TicketOut

SILENCE = 20.0  # seconds without data; the service sends the ticket every 5 s


def events_of(ladder: str, ticket: int) -> Call[None]:
    """The call that opens the event stream of a ticket."""
    return Call("GET", path_of("ladders", ladder, "tickets", ticket, "events"), nothing, wait=SILENCE)


class Events:
    """Parser of the lines of an event stream."""

    def __init__(self) -> None:
        self._kind, self._body = "message", list[str]()

    def feed(self, line: str) -> TicketOut | None:
        """The ticket whose event ends with this line; None if the event is not complete or of another kind."""
        if not line:
            kind, body = self._kind, "\n".join(self._body)
            self._kind, self._body = "message", []
            return TicketOut.model_validate_json(body) if kind == "ticket" and body else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._kind = value
        elif name == "data":
            self._body.append(value)
        return None
