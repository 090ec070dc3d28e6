"""uvicorn's HTTP protocol, with limits that it has no options for: heads, bodies, slow clients, connections.

uvicorn parses with httptools, to which its own limit on the size of a head does not apply. It waits without limit for
a head, for a body and for a client that does not read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from evenmatch.http.connections import Connection, Connections, NoRoomError
from evenmatch.http.problems import BUSY, OTHERS, ProblemKind, make_problem, respond
from evenmatch.http.repeated_log import repeated

HELD_BYTES = 16 * 1024  # a longer write is neither held back nor copied, which would cost more than a system call


class RequestTransport:
    """A transport that sends a short write with the next one: head and body of a response need one system call.

    Without a next one it is sent at the end of the response, or when the event loop is free again. What is written
    after the end of the connection is dropped: the application may not know yet that the client has gone.

    close  called in place of the transport's own, which would reset a connection that still receives
    """

    __slots__ = ("_held", "_is_due", "_loop", "_transport", "close", "is_closing")

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, close: Callable[[], None]
    ) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing, self.close = transport.is_closing, close
        self._held, self._is_due = b"", False

    def write(self, data: bytes) -> None:
        """Send this to the client."""
        if len(data) > HELD_BYTES:
            self.flush()
            self._send(data)
        elif self._held:
            held, self._held = self._held, b""
            self._send(held + data)
        else:
            self._held = bytes(data)
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._send_late)

    def flush(self) -> None:
        """Send what is held back. Must be called before the transport itself is written to, or closed."""
        if self._held:
            held, self._held = self._held, b""
            self._send(held)

    def _send_late(self) -> None:
        self._is_due = False
        self.flush()

    def _send(self, data: bytes) -> None:
        if not self.is_closing():
            self._transport.write(data)


HEAD_BYTES, HEADERS = 64 * 1024, 100  # most bytes and lines of a head, and of the trailer of a body in chunks
PIPELINED = 16  # requests that a client may send before the response to the first
BODY_CHECKS = 2.0  # seconds between two checks of a slow body
WRITE_WITHIN = 30.0  # seconds between two checks of a client that reads slowly
CUT_BEFORE = 0.3  # seconds before uvicorn cancels what still runs as it stops, which leaves a traceback for each
LINGER = 2.0  # seconds in which a client may read the refusal of a body that it still sends
LINGER_BYTES = 16 * 2**20  # of the body that are discarded meanwhile


class ProtocolLimits(NamedTuple):
    """Limits of slow clients.

    head_within  seconds for a head, also the first of a connection
    body_rate    fewest bytes per second of a body, and of a response that the client reads
    """

    head_within: float
    body_rate: float


class _RefusedError(Exception):
    """Raised inside the parser, which stops."""


class LimitedProtocol(HttpToolsProtocol):
    """The protocol of one connection. Subclasses, made by `limited_protocol`, belong to one server.

    A refusal that uvicorn would answer as invalid HTTP is answered by `send_400_response` with its own status.
    """

    open_connections: Connections
    limits: ProtocolLimits
    refused: Callable[[str], None]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._connection: Connection | None = None
        self._unanswered: deque[RequestResponseCycle] = deque()  # the first is answered now
        self._timer: asyncio.TimerHandle | None = None  # until the head or the body must be there
        self._write_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._stop_timer: asyncio.TimerHandle | None = None
        self._refusal = (400, "this is not valid HTTP/1.1")
        self._in_head, self._in_body, self._is_lingering = True, False, False
        self._has_progress = False  # whether a head began, or some of a body came, in the bytes that are being parsed
        self._head_bytes = self._head_lines = 0
        self._partial_bytes = 0  # without such progress
        self._body_bytes = self._raw_bytes = 0
        self._discarded_most = LINGER_BYTES
        self._body_begun = 0.0

    # the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Admit the connection, or refuse it."""
        super().connection_made(transport)
        self._request_transport = RequestTransport(transport, self.loop, self.finish)
        try:
            self._connection = self.open_connections.open(self.client[0] if self.client else "?", transport.abort)
        except NoRoomError as error:
            self.note_refusal(f"connections-{error.reason}")
            detail = f"too many connections are open, the limit {error.setting}; try again in a moment"
            transport.write(_refusal(BUSY, detail, retry_after=1.0))
            transport.close()
            return
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free everything that the connection holds."""
        if self._connection is not None:
            self.open_connections.close(self._connection)
        for timer in (self._timer, self._write_timer, self._close_timer, self._stop_timer):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
        self._disconnect()
        super().connection_lost(exc)

    def finish(self) -> None:
        """Close the connection once all is sent, without a reset that would destroy a response not yet read."""
        self._stop_waiting()
        self._unset_keepalive_if_required()
        self._request_transport.flush()
        if self.transport.is_closing() or self._is_lingering:
            return
        if self._in_body and self.transport.can_write_eof():
            self._is_lingering, self._raw_bytes = True, 0
            self.flow.resume_reading()
            self.transport.write_eof()
            self._close_timer = self.loop.call_later(LINGER, self._end_lingering)
        else:
            self.transport.close()
            self._watch_reader()

    def _end_lingering(self) -> None:
        if self.transport.get_write_buffer_size():
            self._watch_reader()
            self._close_timer = self.loop.call_later(LINGER, self._end_lingering)
        else:
            self.transport.abort()

    def shutdown(self) -> None:
        """End the connection, as the server stops: at once, or after the response to the present request.

        A client that has not sent all of it, or not read the response, is cut off when the time for requests ends.
        """
        if self.cycle is None or self.cycle.response_complete:
            self.finish()
            return
        self.cycle.keep_alive = False
        if self.config.timeout_graceful_shutdown is not None:
            left = self.config.timeout_graceful_shutdown - CUT_BEFORE
            self._stop_timer = self.loop.call_later(left, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without a further request."""
        self.finish()

    # what arrives

    def data_received(self, data: bytes) -> None:
        """Parse bytes from the client, within the limits."""
        self._raw_bytes += len(data)
        if self._is_lingering:
            if self._raw_bytes > self._discarded_most:
                self.transport.abort()
            return
        self._has_progress = False
        super().data_received(data)
        if self._in_head or self._in_body:
            self._check_unfinished(len(data))
        elif self._timer is None and self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self._wait_for_head()  # there were only blank lines

    def _check_unfinished(self, size: int) -> None:
        """Check a request whose last bytes are still to come."""
        if self.transport.is_closing() or self._is_lingering:
            return
        self._partial_bytes += 0 if self._has_progress else size
        if self._partial_bytes > HEAD_BYTES:
            if self._in_head:
                self._refuse_head()
            self.send_400_response("")
        elif self._timer is None:
            if self._in_head:
                self._wait_for_head()
            else:
                self._check_body()

    def on_message_begin(self) -> None:
        """Begin a head."""
        super().on_message_begin()
        self.scope["evenmatch.connection"] = self._connection  # type: ignore[typeddict-unknown-key]
        self._in_head = self._has_progress = True
        self._head_bytes = self._head_lines = self._partial_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Add to the target of the request."""
        self._count_head(len(url), 0)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Those after a body are not needed and left out."""
        self._count_head(len(name) + len(value), 1)
        if self._in_head:
            super().on_header(name, value)

    def _count_head(self, size: int, lines: int) -> None:
        self._head_bytes += size
        self._head_lines += lines
        if self._head_bytes > HEAD_BYTES or self._head_lines > HEADERS:
            self._refuse_head()
            raise _RefusedError

    def _refuse_head(self) -> None:
        expected = f"expected at most {HEAD_BYTES:,} bytes in {HEADERS} headers"
        self._refusal = 431, f"the head of the request is too large; {expected}"

    def on_headers_complete(self) -> None:
        """Begin to answer the request."""
        if len(self.pipeline) >= PIPELINED:
            self._refusal = 400, f"more than {PIPELINED} requests were sent before the first was answered"
            raise _RefusedError
        self._in_head, self._in_body = False, True
        self._body_bytes = self._partial_bytes = 0
        self._body_begun = 0.0
        self._stop_waiting()
        if self._connection is not None:
            self._connection.begin_request()
        super().on_headers_complete()
        self.cycle.transport = self._request_transport  # type: ignore[assignment]
        self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Add to the body."""
        self._body_bytes += len(body)
        self._has_progress, self._partial_bytes = True, 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._in_body = False
        if self._connection is not None:
            self._connection.end_request()
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, unless the client still sends a body that is not read."""
        self._request_transport.flush()
        self._unanswered.popleft()
        is_unread = self._in_body and not self._unanswered
        super().on_response_complete()
        if is_unread:
            self.finish()
        elif self._connection is not None and self._is_idle(self._connection):
            self.open_connections.rest(self._connection)

    def _is_idle(self, connection: Connection) -> bool:
        """Whether no request is answered, except one without an API key whose body is still to come."""
        if self._in_body and len(self._unanswered) == 1:
            return not connection.has_key
        return not self._unanswered

    # slow clients

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self.limits.head_within, self._head_is_late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_is_late(self) -> None:
        self._timer = None
        self.note_refusal("slow-head")
        if not self._raw_bytes:
            self.finish()
            return
        self.refuse(408, f"the head did not arrive within {self.limits.head_within:g} s, EVENMATCH_HEAD_WITHIN")

    def _check_body(self) -> None:
        """Refuse a body that arrives too slowly; time in which the application does not read does not count."""
        self._timer = None
        now = self.loop.time()
        if not self._body_begun or self.flow.read_paused:
            self._body_begun = now
        allowed = self.limits.head_within + self._body_bytes / self.limits.body_rate
        if now - self._body_begun > allowed:
            self.note_refusal("slow-body")
            rate = f"{self.limits.body_rate:g} bytes per second, EVENMATCH_BODY_RATE"
            self.refuse(408, f"the body arrived too slowly; expected {rate}")
        else:
            self._timer = self.loop.call_later(min(BODY_CHECKS, self.limits.head_within), self._check_body)

    def pause_writing(self) -> None:
        """Note that the client reads more slowly than the response is made."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """Note that the client has read most of it."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _watch_reader(self) -> None:
        size = self.transport.get_write_buffer_size()
        if size and self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_WITHIN, self._check_writing, size)

    def _check_writing(self, before: int) -> None:
        """End a connection whose client has read too little since there were `before` bytes to send."""
        size = self.transport.get_write_buffer_size()
        if before - size < min(before, self.limits.body_rate * WRITE_WITHIN):
            self.note_refusal("slow-reader")
            self.transport.abort()
        else:
            self._write_timer = self.loop.call_later(WRITE_WITHIN, self._check_writing, size)

    # refusals

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser did not accept, in place of uvicorn's refusal."""
        status, detail = self._refusal
        self.note_refusal({431: "large-head"}.get(status, "invalid"))
        self.refuse(status, detail)

    def refuse(self, status: int, detail: str) -> None:
        """Send a problem and close the connection; without a word where it could be taken for another's response."""
        is_answering = any(cycle.response_started or not cycle.more_body for cycle in self._unanswered)
        self._disconnect()
        if is_answering:
            self.transport.abort()
            return
        self._request_transport.flush()
        self.transport.write(_refusal(OTHERS[status], detail))
        self._in_body, self._discarded_most = True, HEAD_BYTES  # whatever still arrives is not read
        self.finish()

    def _disconnect(self) -> None:
        """Tell the application of each request, not only of the newest as uvicorn does, that the client has gone."""
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        self._unanswered.clear()

    def note_refusal(self, reason: str) -> None:
        """Count a refusal in the metrics and, once a minute, in the log."""
        self.refused(reason)
        repeated.warning("connection refused", reason=reason, client=self.client[0] if self.client else "?")


def limited_protocol(
    connections: Connections, protocol_limits: ProtocolLimits, count: Callable[[str], None]
) -> type[LimitedProtocol]:
    """The protocol class of a server. count: called with a word for each refusal."""

    class Protocol(LimitedProtocol):
        open_connections, limits, refused = connections, protocol_limits, staticmethod(count)

    return Protocol


def _refusal(kind: ProblemKind, detail: str, retry_after: float | None = None) -> bytes:
    """A problem as it goes over the wire."""
    response = respond(make_problem(kind, detail, retry_after=retry_after))
    lines = [STATUS_LINE[kind.status], b"connection: close\r\n"]
    lines += [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
    return b"".join((*lines, b"\r\n", bytes(response.body)))
