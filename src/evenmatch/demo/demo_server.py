"""Serve the demo: the service with its pages, and the crowd."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from starlette.types import ASGIApp

from evenmatch.accounts.keys import Keys
from evenmatch.demo.crowd import SimulatedCrowd
from evenmatch.http import logs
from evenmatch.http.options import Options
from evenmatch.http.server import serve
from evenmatch.http.site import Site
from evenmatch.operations.kernels import Compilation
from evenmatch.operations.service import Service
from evenmatch.web.app import pages

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # how to reach a server that listens on all interfaces
POLL = 0.05  # seconds between two checks of the stop event


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

    players  whether the crowd plays
    ready    called once requests are answered, with an operator's key that is revoked at the end
    """
    logs.begin(options)
    with Service.open(str(path)) as service:
        keys = Keys(service.database, service.clock)
        operator, text = keys.create("operator of this demo", ["admin"])
        crowd_key, crowd_text = keys.create("crowd of this demo", ["report", "queue"])
        crowd = SimulatedCrowd(_loopback(listening), crowd_text, seed) if players else None
        try:
            serve(
                *(service, options, listening, lambda: ready(text)),
                pages=lambda site: _pages_with(crowd, site),
                compilation=compilation,
            )
        finally:
            if crowd is not None:
                crowd.end()
            for key in (operator, crowd_key):
                keys.revoke(key.key)


def _pages_with(crowd: SimulatedCrowd | None, site: Site) -> ASGIApp:
    """Create the pages of a site; start the crowd, and stop it as soon as the service is asked to stop."""
    if crowd is not None:
        threading.Thread(target=_accompany, args=(crowd, site), name="evenmatch-demo", daemon=True).start()
    return pages(site, is_demo=True)


def _accompany(crowd: SimulatedCrowd, site: Site) -> None:
    """Start the crowd once the matchmaker is compiled, which its requests would slow down, and stop it in time."""
    while not site.stopping.is_set() and not site.kernels.matchmaker_loaded.wait(POLL):
        pass
    if not site.stopping.is_set():
        crowd.begin()
    while not site.stopping.is_set():
        time.sleep(POLL)
    crowd.leave()


def _loopback(listening: socket.socket) -> str:
    """The URL of a listening socket on this machine."""
    host, port = listening.getsockname()[:2]
    host = LOOPBACK.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
