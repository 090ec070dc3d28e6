"""Serve the demo: the service with its pages, and the crowd that plays."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from starlette.types import ASGIApp

from evenmatch.demo.crowd import Crowd
from evenmatch.http import logs
from evenmatch.http.options import Options
from evenmatch.http.serving import serve
from evenmatch.http.site import Site
from evenmatch.service.callers.keys import Keys
from evenmatch.service.kernels import Compilation
from evenmatch.service.service import Service
from evenmatch.web.app import pages

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where one is that listens everywhere
BEAT = 0.05  # seconds between two looks whether the service is to stop


def serve_demo(
    path: Path,
    seed: int,
    options: Options,
    listening: socket.socket,
    compilation: Compilation,
    *,
    players: bool,
    ready: Callable[[str], None],
) -> None:
    """Serve the demo's ladders from this database until the process is asked to stop.

    players  whether there is a crowd
    ready    called with an operator's key, which ends with this, once requests are answered
    """
    logs.begin(options)
    with Service.open(str(path)) as service:
        keys = Keys(service.database, service.clock)
        operator, text = keys.create("operator of this demo", ["admin"])
        own, crowds = keys.create("crowd of this demo", ["report", "queue"])
        crowd = Crowd(_loopback(listening), crowds, seed) if players else None
        try:
            serve(
                *(service, options, listening, lambda: ready(text)),
                pages=lambda site: _pages_with(crowd, site),
                compilation=compilation,
            )
        finally:
            if crowd is not None:
                crowd.end()
            for key in (operator, own):
                keys.revoke(key.key)


def _pages_with(crowd: Crowd | None, site: Site) -> ASGIApp:
    """The pages of a site; the crowd begins with them, and leaves as soon as the service is asked to stop."""
    if crowd is not None:
        threading.Thread(target=_leave_in_time, args=(crowd, site), name="evenmatch-demo", daemon=True).start()
        crowd.begin()
    return pages(site)


def _leave_in_time(crowd: Crowd, site: Site) -> None:
    while not site.stopping.is_set():
        time.sleep(BEAT)
    crowd.leave()


def _loopback(listening: socket.socket) -> str:
    """The address by which this machine reaches a socket."""
    host, port = listening.getsockname()[:2]
    host = LOOPBACK.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
