"""Tickets as server-sent events."""

from __future__ import annotations

from evenmatch.client.call import Call, at, nothing
from evenmatch.http.models.queues import TicketTold

SILENCE = 20.0  # seconds: the service tells a ticket every five


def events_of(ladder: str, ticket: int) -> Call[None]:
    """The call that opens a ticket's stream."""
    return Call("GET", at("ladders", ladder, "tickets", ticket, "events"), nothing, wait=SILENCE)


class Events:
    """What a stream's lines tell."""

    def __init__(self) -> None:
        self._kind, self._body = "message", list[str]()

    def feed(self, line: str) -> TicketTold | None:
        """The ticket that is told by this line and those before it; None: more must come, or it is another event."""
        if not line:
            kind, body = self._kind, "\n".join(self._body)
            self._kind, self._body = "message", []
            return TicketTold.model_validate_json(body) if kind == "ticket" and body else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._kind = value
        elif name == "data":
            self._body.append(value)
        return None
