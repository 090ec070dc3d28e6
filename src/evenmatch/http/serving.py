"""A process that serves: the application under uvicorn, with what goes on beside its requests."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http import figures
from evenmatch.http.app import Pages, application
from evenmatch.http.logs import log
from evenmatch.http.options import Options
from evenmatch.http.site import Site
from evenmatch.service.callers.audit import Audit
from evenmatch.service.callers.keys import Keys
from evenmatch.service.callers.tokens import Tokens
from evenmatch.service.hooks.deliveries import Deliverer
from evenmatch.service.hooks.webhooks import Webhooks
from evenmatch.service.kernels import Compilation, Kernels
from evenmatch.service.playing.running import Running
from evenmatch.service.queueing.desk import Desk
from evenmatch.service.service import Service

Worker = tuple[str, Callable[[threading.Event], None]]
INTERRUPTED = 130  # the exit code
AGAIN = 1.0  # seconds until a worker that a bug ended is begun anew
PATIENCE = 10.0  # seconds that what runs beside the requests has to end


def site_over(service: Service, options: Options, compilation: Compilation | None = None) -> Site:
    """The use cases over a database; `compilation`: of the kernels that they need, where it has begun already."""
    database, clock = service.database, service.clock
    keys = Keys(database, clock)
    kernels = Kernels(
        lambda: {ladder.system: ladder.rules for ladder in service.ladders()},
        compilation,
        lambda parts: log.info("compiling", parts=list(parts), once="per installation"),
        lambda error: log.warning("kernels", error=str(error)),
    )
    site = Site(
        service=service,
        options=options,
        keys=keys,
        tokens=Tokens(database, clock, keys),
        audit=Audit(database),
        desk=Desk(service, kernels.matchmaker_loaded),
        running=Running(service),
        webhooks=Webhooks(service, allow_private=options.private_webhooks),
        kernels=kernels,
    )
    figures.watch(site)
    return site


def workers(site: Site) -> list[Worker]:
    """What goes on beside the requests, each in a thread until the event is set."""
    return [("hearing", site.desk.hear), *(matchmaking(site) if site.options.matchmaker else ())]


def matchmaking(site: Site) -> list[Worker]:
    """What one process at a time does for all: it makes matches, sends webhooks and ends what expired."""
    return [
        ("matchmaker", figures.TimedMatchmaker(site.desk, site.metrics).run),
        ("webhooks", Deliverer(site.webhooks).run),
        ("expiry", site.running.run),
    ]


@asynccontextmanager
async def beside(site: Site) -> AsyncIterator[None]:
    """Run the workers while the block runs."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=guarded, args=(name, run, stop), name=f"evenmatch-{name}", daemon=True)
        for name, run in workers(site)
    ]
    site.wakes.begin(asyncio.get_running_loop(), site.desk)
    for thread in threads:
        thread.start()
    site.kernels.begin()
    _be_prompt()
    try:
        yield
    finally:
        site.stopping.set()
        stop.set()
        await asyncio.to_thread(site.kernels.stop)
        await asyncio.to_thread(site.jobs.stop, PATIENCE)
        for thread in threads:
            await asyncio.to_thread(thread.join, PATIENCE)
        site.threads.shutdown(wait=True)


def _be_prompt() -> None:
    """Let nobody wait for the interpreter's housekeeping.

    What was loaded so far stays: the collector need not look at it again and again; and looks for the rest less often,
    since almost nothing here refers to itself. A thread that computes hands on sooner to one that answers.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(0.0005)


def guarded(name: str, run: Callable[[threading.Event], None], stop: threading.Event) -> None:
    """Run a worker; a bug in it is logged, and it is begun anew."""
    while not stop.is_set():
        try:
            run(stop)
        except Exception as error:
            log.error("bug", worker=name, exc_info=error)
            stop.wait(AGAIN)
        else:
            return  # it has nothing more to do


class _Server(uvicorn.Server):
    """Ends long polls and streams as soon as it is asked to stop, and then waits for what is being answered."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Remember that the process is to stop; a second Ctrl-C ends it at once."""
        if self.should_exit and sig == signal.SIGINT:
            os._exit(INTERRUPTED)
        self._site.stopping.set()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals ourselves; having been asked to stop is no failure, so none is raised again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def listen(options: Options) -> socket.socket:
    """A socket at the address of the options. Raises UsageError where it cannot be had."""
    listening = socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((options.host, options.port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"{options.host}:{options.port} cannot be listened on: {error.strerror}; accepted is an address of this "
            "machine and a free port, by --host and --port (0 takes any)"
        ) from None
    return listening


def address_of(listening: socket.socket) -> str:
    """The address as people type it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    service: Service,
    options: Options,
    listening: socket.socket,
    ready: Callable[[], None] = lambda: None,
    *,
    pages: Pages | None = None,
    compilation: Compilation | None = None,
) -> None:
    """Serve until the process is asked to stop, by Ctrl-C or SIGTERM; what was accepted is finished.

    ready  called once requests are answered
    pages  the web site; None: the API alone
    compilation  of the kernels, where it has begun already
    """
    site = site_over(service, options, compilation)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with beside(site):
            log.info("serving", address=address_of(listening), database=service.database.shown)
            ready()
            yield
        log.info("stopped")

    config = uvicorn.Config(
        application(site, lifespan, pages),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=options.stop_within,
        timeout_keep_alive=75,
        backlog=2048,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = _Server(config, site)
    server.run([listening])
    if not server.started:
        raise EvenmatchError("the service could not begin; the log says why")
