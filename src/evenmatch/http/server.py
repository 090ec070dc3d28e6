"""The server process: the application under uvicorn, and the background workers."""

from __future__ import annotations

import asyncio
import gc
import logging
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
from evenmatch.http import service_metrics
from evenmatch.http.app import Pages, application
from evenmatch.http.connections import Connections
from evenmatch.http.http_protocol import ProtocolLimits, limited_protocol
from evenmatch.http.logs import log
from evenmatch.http.open_files import choose_limits
from evenmatch.http.options import Options
from evenmatch.http.repeated_log import RepeatedWarnings, repeated
from evenmatch.http.site import Site
from evenmatch.http.stop_deadline import BACKGROUND, REQUESTS, StopDeadline
from evenmatch.http.trusted_proxies import TrustedProxies
from evenmatch.service import master_secret
from evenmatch.service.callers.audit_trail import Audit
from evenmatch.service.callers.keys import Keys
from evenmatch.service.callers.tokens import Tokens
from evenmatch.service.clock import DatabaseClock
from evenmatch.service.daily_decay import DailyDecay
from evenmatch.service.kernels import Compilation, Kernels
from evenmatch.service.live_matches.live_match_service import Running
from evenmatch.service.match_limits import MatchLimits
from evenmatch.service.queues.auto_policies import AutoPolicies
from evenmatch.service.queues.queue_service import QueueService
from evenmatch.service.service import Service
from evenmatch.service.webhooks.deliveries import Deliverer
from evenmatch.service.webhooks.subscriptions import Webhooks

Worker = tuple[str, Callable[[threading.Event], None]]
INTERRUPTED = 130  # the exit code
AGAIN = 1.0  # seconds until a worker that failed with a bug is restarted
FLUSH = 5.0  # seconds between two looks at what was only counted for the log


def site_over(service: Service, options: Options, compilation: Compilation | None = None) -> Site:
    """Create the site of a service; `compilation`: the compilation of its kernels, if it was started before."""
    database, clock = service.database, service.clock
    keys = Keys(database, clock)
    kernels = Kernels(
        lambda: {ladder.system: ladder.rules for ladder in service.ladders()},
        compilation,
        lambda parts: log.info("compiling", parts=list(parts), once="per installation"),
        lambda error: log.warning("kernels", error=str(error)),
    )
    service.match_limits = MatchLimits(options.team_limit, options.player_limit)
    site = Site(
        service=service,
        options=options,
        keys=keys,
        tokens=Tokens(database, clock, keys),
        audit=Audit(database),
        queue_service=QueueService(service, kernels.matchmaker_loaded),
        running=Running(service),
        webhooks=Webhooks(service, allow_private=options.private_webhooks),
        kernels=kernels,
        connections=Connections(choose_limits(options), TrustedProxies(options.trusted_proxies)),
    )
    service_metrics.watch(site)
    return site


def workers(site: Site) -> list[Worker]:
    """The background workers of this process; each runs in a thread until the event is set."""
    clock = site.service.clock
    return [
        ("hearing", site.queue_service.hear),
        ("hand-over", site.hand_over.run),
        *([("clock", clock.run)] if isinstance(clock, DatabaseClock) else []),
        *(matchmaking(site) if site.options.matchmaker else ()),
    ]


def matchmaking(site: Site) -> list[Worker]:
    """The workers for tasks that one process does for all: matches, webhooks, expired matches, decay, fits, checks."""
    return [
        ("matchmaker", service_metrics.TimedMatchmaker(site.queue_service, site.metrics).run),
        ("webhooks", Deliverer(site.webhooks).run),
        ("expiry", site.running.run),
        ("decay", DailyDecay(site.service).run),
        ("policies", AutoPolicies(site.queue_service, site.jobs).run),
        ("check", site.daily_check.run),
    ]


@asynccontextmanager
async def beside(site: Site, deadline: StopDeadline) -> AsyncIterator[None]:
    """Run the background workers while the block runs; end them within their share of the time to stop."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=guarded, args=(name, run, stop), name=f"evenmatch-{name}", daemon=True)
        for name, run in workers(site)
    ]
    site.hand_over.begin(asyncio.get_running_loop())
    site.ticket_notifications.begin(asyncio.get_running_loop(), site.queue_service)
    for thread in threads:
        thread.start()
    site.kernels.begin()
    _tune_interpreter()
    flushing = asyncio.create_task(_flush_log())
    try:
        yield
    finally:
        site.stopping.set()
        stop.set()
        flushing.cancel()
        repeated.flush(everything=True)
        await asyncio.to_thread(site.kernels.stop)
        for thread in threads:
            await asyncio.to_thread(thread.join, deadline.left(BACKGROUND))
        await asyncio.to_thread(site.jobs.stop, deadline.left(BACKGROUND))
        site.close()


async def _flush_log() -> None:
    """Log what was only counted since the last minute."""
    while True:
        await asyncio.sleep(FLUSH)
        repeated.flush()


def _tune_interpreter() -> None:
    """Reduce pauses from garbage collection and thread switching.

    Objects loaded so far stay for the life of the process, so the collector ignores them; it also runs less often,
    since reference cycles are rare here. A short switch interval lets computing threads yield sooner to the event loop.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(0.0005)


def guarded(name: str, run: Callable[[threading.Event], None], stop: threading.Event) -> None:
    """Run a worker; if it fails with a bug, log the bug and restart the worker."""
    while not stop.is_set():
        try:
            run(stop)
        except Exception as error:
            log.error("bug", worker=name, exc_info=error)
            stop.wait(AGAIN)
        else:
            return  # the worker is finished


class _Server(uvicorn.Server):
    """A uvicorn server that, asked to stop, ends long polls and streams at once and finishes other requests."""

    def __init__(self, config: uvicorn.Config, site: Site, deadline: StopDeadline) -> None:
        super().__init__(config)
        self._site, self._deadline = site, deadline

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop the process; a second Ctrl-C ends it at once."""
        if self.should_exit and sig == signal.SIGINT:
            os._exit(INTERRUPTED)
        self._deadline.ask()
        self._site.stopping.set()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM without raising them again afterwards, since a requested stop is not a failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _note_cut(site: Site) -> None:
    """Log what the end of the process cuts off."""
    running = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    log.warning("cut off", after=f"{site.options.stop_within} s to stop", threads=sorted(running)[:20])


def listen(options: Options) -> socket.socket:
    """Open the listening socket at the address of the options. Raises UsageError if that fails."""
    listening = socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((options.host, options.port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose an address of this machine and "
            "a free port with --host and --port (0 takes any free port)"
        ) from None
    return listening


def address_of(listening: socket.socket) -> str:
    """The URL of a listening socket."""
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
    """Serve until Ctrl-C or SIGTERM; accepted requests are finished first, as far as `stop_within` allows.

    ready  called as soon as requests are answered
    pages  the web site; None: serve only the API
    compilation  the compilation of the kernels, if it was started before
    Raises SecretError without the master secret of the database, EvenmatchError if the server cannot start.
    """
    master_secret.confirm(service.database)
    site = site_over(service, options, compilation)
    deadline = StopDeadline(options.stop_within, site.jobs.ask_to_stop, lambda: _note_cut(site))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with beside(site, deadline):
            log.info(
                "serving",
                address=address_of(listening),
                database=service.database.shown,
                connections=site.connections.limits.total,
            )
            ready()
            yield
        log.info("stopped")

    protocol_limits = ProtocolLimits(options.head_within, float(options.body_rate))
    config = uvicorn.Config(
        application(site, lifespan, pages),
        http=limited_protocol(site.connections, protocol_limits, site.metrics.count_refused_connection),
        ws="none",
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=max(1, round(REQUESTS * options.stop_within)),
        timeout_keep_alive=75,
        backlog=2048,
    )
    for library in ("uvicorn.error", "asyncio"):
        logging.getLogger(library).addFilter(RepeatedWarnings())
    if "FORWARDED_ALLOW_IPS" in os.environ:
        log.warning("FORWARDED_ALLOW_IPS is not read", instead="EVENMATCH_TRUSTED_PROXIES")
    server = _Server(config, site, deadline)
    deadline.start()
    server.run([listening])
    if not server.started:
        raise EvenmatchError("the service could not start; see the log")
