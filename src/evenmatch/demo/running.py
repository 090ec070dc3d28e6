"""A demo that is served: the service with its pages, the matchmaker once it is compiled, and the crowd."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp

from evenmatch.demo.compiling import Compiling
from evenmatch.demo.crowd import Crowd
from evenmatch.http import logs
from evenmatch.http.options import Options
from evenmatch.http.serving import guarded, matchmaking, serve
from evenmatch.http.site import Site
from evenmatch.service.callers.keys import Keys
from evenmatch.service.service import Service
from evenmatch.web.app import pages

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where one is that listens everywhere
BEAT = 0.05  # seconds between two looks whether the service is to stop
PATIENCE = 10.0  # seconds that what runs beside the requests has to end


def serve_demo(
    path: Path,
    seed: int,
    options: Options,
    listening: socket.socket,
    compiling: Compiling,
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
        beside = Beside(compiling, crowd)
        try:
            serve(
                service,
                options.model_copy(update={"matchmaker": False}),  # until it is compiled; then `beside` runs it
                listening,
                lambda: ready(text),
                pages=beside.over,
            )
        finally:
            beside.end()
            for key in (operator, own):
                keys.revoke(key.key)


class Beside:
    """What goes on beside the requests of a demo, from when the matchmaker is compiled until the service stops."""

    def __init__(self, compiling: Compiling, crowd: Crowd | None) -> None:
        self._compiling, self._crowd = compiling, crowd
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def over(self, site: Site) -> ASGIApp:
        """The pages over these use cases; what goes on beside begins with them."""
        for name, run in matchmaking(site):
            self._begin(partial(self._run_compiled, name, run))
        self._begin(lambda: self._watch(site))
        if self._crowd is not None:
            self._crowd.begin()
        return pages(site)

    def end(self) -> None:
        """Stop all of it, and wait until it has ended."""
        self._stop.set()
        if self._crowd is not None:
            self._crowd.end()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _begin(self, run: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=run, name="evenmatch-demo", daemon=True))
        self._threads[-1].start()

    def _run_compiled(self, name: str, run: Callable[[threading.Event], None]) -> None:
        """Run a worker of the service, once there is what it runs on."""
        self._compiling.wait_for_matchmaker(self._stop)
        guarded(name, run, self._stop)

    def _watch(self, site: Site) -> None:
        """Stop as soon as the service is asked to."""
        while not site.stopping.is_set() and not self._stop.wait(BEAT):
            pass
        self._stop.set()
        if self._crowd is not None:
            self._crowd.leave()


def _loopback(listening: socket.socket) -> str:
    """The address by which this machine reaches a socket."""
    host, port = listening.getsockname()[:2]
    host = LOOPBACK.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
