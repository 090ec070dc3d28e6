"""uvicorn with the limited protocol over an application of a test, in a thread of this process."""

import asyncio
import socket
import threading
import time
from typing import Self

import uvicorn

from evenmatch.http.connections import ConnectionLimits, Connections
from evenmatch.http.hosts import TrustedProxies
from evenmatch.http.protocol import ProtocolLimits, limited_protocol

PATIENCE = 20.0  # seconds


class ProtocolServer:
    """Serves `app` on a free port; `reasons` says what was refused, in order."""

    def __init__(self, app, *, total=100, each=100, reserve=0, head_within=0.5, body_rate=10_000, proxies=()):
        limits = ConnectionLimits(total, each, reserve)
        self.connections, self.reasons = Connections(limits, TrustedProxies(proxies)), []
        protocol = limited_protocol(self.connections, ProtocolLimits(head_within, body_rate), self.reasons.append)
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
        self._server, self._opened = uvicorn.Server(config), []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = self._listening.getsockname()
        self._thread = threading.Thread(target=self._server.run, args=([self._listening],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._opened:
            connection.close()
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def connect(self, source="127.0.0.1"):
        """A connection from this address of the loopback network; it is closed with the server at the latest."""
        self._opened.append(socket.create_connection(self.address, PATIENCE, source_address=(source, 0)))
        return self._opened[-1]


def wait_for(is_so, within=PATIENCE):
    """Wait until this holds; fails after some seconds."""
    end = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def received(connection):
    """All that a connection receives until the server closes it."""
    pieces = []
    try:
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def received_until(connection, ending):
    """What a connection receives up to this ending, however many pieces it arrives in."""
    text = b""
    while not text.endswith(ending):
        piece = connection.recv(1 << 16)
        assert piece, text
        text += piece
    return text


async def whole_body(receive):
    """The body of a request; None if the client hung up."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


async def answer(send, body, status=200):
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def echo(scope, receive, send):
    """Answers with what was sent; /early: without reading it, /known: a key, /player: a token, /slow: in a second."""
    if scope["path"] in ("/known", "/player"):
        scope["evenmatch.connection"].recognise(has_key=scope["path"] == "/known")
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    if scope["path"] == "/large":
        await answer(send, b"x" * 8_000_000)
        return
    body = b"early" if scope["path"] == "/early" else await whole_body(receive)
    if body is not None:
        await answer(send, body or b"%d headers" % len(scope["headers"]))
