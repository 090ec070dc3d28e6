"""uvicorn over an application of a test, in a thread of this process."""

import socket
import threading
import time
from typing import Self

import uvicorn

PATIENCE = 20.0  # seconds


class ProtocolServer:
    """Serves `app` on a free port."""

    def __init__(self, app):
        config = uvicorn.Config(
            app,
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
