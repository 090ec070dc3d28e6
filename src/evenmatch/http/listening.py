"""The listening socket of the service."""

from __future__ import annotations

import socket

from evenmatch.errors import UsageError
from evenmatch.http.options import Options

BACKLOG = 2048  # connections that wait to be accepted


def listen(options: Options) -> socket.socket:
    """Open the listening socket at the address of the options. Raises UsageError if that fails."""
    listening = socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((options.host, options.port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose an address of this machine with "
            "--host or EVENMATCH_HOST, and a free port with --port or EVENMATCH_PORT (0 takes any free port)"
        ) from None
    return listening


def address_of(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
