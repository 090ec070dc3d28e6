"""The server process: its socket, the application under uvicorn, the background workers, and its end.

Python waits for its threads when it exits, and a thread that computes or waits for a database cannot be cancelled. So
a process that was asked to stop ends within a deadline, whatever still runs. Nothing is lost: a transaction that was
not committed did not happen, and its caller got no answer.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from evenmatch.accounts.audit_trail import Audit
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import EvenmatchError, UsageError
from evenmatch.http import service_metrics
from evenmatch.http.app import Pages, application
from evenmatch.http.connections import ConnectionLimits, Connections
from evenmatch.http.hosts import TrustedProxies
from evenmatch.http.logs import log
from evenmatch.http.options import Options
from evenmatch.http.processes.group import ProcessGroup
from evenmatch.http.processes.metrics_exchange import MetricsExchange
from evenmatch.http.processes.retirement import Acceptor, Retirement, tell_ready
from evenmatch.http.protocol import LimitedProtocol, ProtocolLimits, limited_protocol
from evenmatch.http.repeated_log import RepeatedWarnings, repeated
from evenmatch.http.shares import share
from evenmatch.http.site import Site
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.live.live_matches import Running
from evenmatch.operations import master_secret
from evenmatch.operations.clock import DatabaseClock
from evenmatch.operations.kernels import Compilation, Kernels
from evenmatch.operations.service import Service
from evenmatch.queues.policy_fits import AutoPolicies
from evenmatch.queues.queue_service import QueueService
from evenmatch.recording.recorder import MatchLimits
from evenmatch.webhooks.delivery import Deliverer
from evenmatch.webhooks.subscriptions import Webhooks

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


if sys.platform != "win32":
    import resource

RESERVED = 128  # files for the database (33 connections, or 18 of two files each), webhooks, logs and copies
FEWEST, MOST = 64, 50_000  # connections by default
RAISE = "raise it with `ulimit -n`, LimitNOFILE= of systemd, or ulimits of a container"


def choose_limits(options: Options) -> ConnectionLimits:
    """The limits of connections that the options name, or that the limit of open files allows, of one process.

    Limits that the options name are of all serving processes at the port: each has its share of them, since new
    connections go to the process with the fewest.

    Raises UsageError where that is too low for the process, or for the connections that the options name.
    """
    open_files = _open_files()
    room = open_files - RESERVED
    if room < FEWEST:
        expected = f"expected at least {RESERVED + FEWEST}: {RESERVED} are kept for the database and files"
        raise UsageError(f"this process may open {open_files} files; {expected}: {RAISE}")
    if options.connections is not None and options.connections > room * options.workers:
        expected = f"expected at most {room * options.workers:,}, since a process may open {open_files:,} files"
        raise UsageError(f"EVENMATCH_CONNECTIONS is {options.connections:,}; {expected}: {RAISE}")
    count = options.workers
    total = min(room, MOST) if options.connections is None else share(options.connections, count)
    named = options.address_connections
    each = max(FEWEST // 2, total // 4) if named is None else share(named, count)
    return ConnectionLimits(total, each, total // 8)


def _open_files() -> int:
    """The limit of open files of this process; where the system has none, one that is never reached."""
    if sys.platform == "win32":
        return 2 * MOST
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * MOST if soft == resource.RLIM_INFINITY else soft


REQUESTS, BACKGROUND, END = 0.5, 0.55, 0.6  # shares of the time, until requests, background work and all else must end


class StopDeadline:
    """A thread that ends the process after a request to stop.

    within  seconds from the request to the end of the process, at most
    begin   called at once: asks what runs beside requests to stop
    cut     called before the process is ended, if it did not end by itself
    """

    def __init__(self, within: float, begin: Callable[[], None], cut: Callable[[], None]) -> None:
        self._within, self._begin, self._cut = within, begin, cut
        self._asked = threading.Event()
        self._asked_at: float | None = None

    def start(self) -> None:
        """Start the thread, which does nothing until `ask`."""
        threading.Thread(target=self._watch, name="evenmatch-stop", daemon=True).start()

    def ask(self) -> None:
        """Begin to stop. May be called by a signal handler, more than once."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the process was asked to stop."""
        return self._asked_at is not None

    def left(self, share: float) -> float:
        """Seconds left of a share of the time; all of it before a request to stop."""
        elapsed = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        return max(0.0, share * self._within - elapsed)

    def _watch(self) -> None:
        self._asked.wait()
        self._begin()
        time.sleep(self.left(END))
        try:
            self._cut()
            sys.stderr.flush()
        finally:
            os._exit(0)  # a stop that was requested is not a failure


Worker = tuple[str, Callable[[threading.Event], None]]
INTERRUPTED = 130  # the exit code
AGAIN = 1.0  # seconds until a worker that failed with a bug is restarted
FLUSH = 5.0  # seconds between two looks at what was only counted for the log


def site_over(
    service: Service, options: Options, compilation: Compilation | None = None, group: ProcessGroup | None = None
) -> Site:
    """Create the site of a service.

    compilation  the compilation of its kernels, if it was started before
    group        the serving processes that share the port; None: this is the only one
    """
    database, clock = service.database, service.clock
    keys = Keys(database, clock)
    kernels = Kernels(
        lambda: {ladder.system: ladder.rules for ladder in service.ladders()},
        compilation,
        lambda parts: log.info("compiling", parts=list(parts), once="per installation"),
        lambda error: log.warning("kernels", error=str(error)),
    )
    service.match_limits = MatchLimits(
        *(options.team_limit, options.player_limit, options.running_limit),
        *("EVENMATCH_TEAM_LIMIT", "EVENMATCH_PLAYER_LIMIT"),
    )
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
        group=group,
    )
    service_metrics.watch(site)
    if group is not None:
        site.exchange = MetricsExchange(group, site.metrics.registry, site.metrics.of_service)
    return site


def workers(site: Site) -> list[Worker]:
    """The background workers of this process; each runs in a thread until the event is set."""
    clock, follows = site.service.clock, site.options.follower
    writing = [
        ("hearing", site.queue_service.hear),
        ("heartbeats", site.queue_service.heartbeats.run),
    ]
    return [
        *(() if follows else writing),  # a standby has no notifications
        *([("clock", clock.run)] if isinstance(clock, DatabaseClock) else []),
        *(matchmaking(site) if site.options.matchmaker and not follows else ()),
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
    site.ticket_notifications.begin(asyncio.get_running_loop(), site.queue_service)
    for thread in threads:
        thread.start()
    site.kernels.begin()
    _tune_interpreter()
    flushing = asyncio.create_task(_flush_log())

    def end() -> None:
        site.kernels.stop()
        for thread in threads:
            thread.join(deadline.left(BACKGROUND))
        site.jobs.stop(deadline.left(BACKGROUND))
        site.close()

    try:
        yield
    finally:
        site.stopping.set()
        stop.set()
        flushing.cancel()
        repeated.flush(everything=True)
        await asyncio.to_thread(end)


async def _flush_log() -> None:
    """Log what was only counted since the last minute."""
    while True:
        await asyncio.sleep(FLUSH)
        repeated.flush()


def _tune_interpreter() -> None:
    """Reduce pauses from garbage collection.

    Objects loaded so far stay for the life of the process, so the collector ignores them; it also runs less often,
    since reference cycles are rare here. The switch interval stays as Python has it (5 ms): a tenth of that costs more
    than it saves, see docs/scale.md.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def guarded(name: str, run: Callable[[threading.Event], None], stop: threading.Event) -> None:
    """Run a worker; if it fails with a bug, log the bug and restart the worker."""
    while not stop.is_set():
        try:
            run(stop)
        except Exception as error:
            log.error("bug", thread=name, exc_info=error)
            stop.wait(AGAIN)
        else:
            return  # the worker is finished


class _Server(uvicorn.Server):
    """A uvicorn server that, asked to stop, ends long polls and streams at once and finishes other requests."""

    def __init__(
        self, config: uvicorn.Config, protocol: type[LimitedProtocol], site: Site, deadline: StopDeadline
    ) -> None:
        super().__init__(config)
        self._protocol, self._site, self._deadline = protocol, site, deadline
        self._retirement: Retirement | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop the process; a second Ctrl-C ends it at once."""
        if self.should_exit and sig == signal.SIGINT:
            os._exit(INTERRUPTED)
        self._deadline.ask()
        self._site.stopping.set()
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections; in a group of processes, only this one's share of them."""
        group = self._site.group
        if group is None or sockets is None:
            await super().startup(sockets)
            return
        await super().startup([])
        make = partial(self._protocol, self.config, self.server_state, {})
        acceptor = Acceptor(sockets[0], group.memory, group.cell, make, lambda: len(self.server_state.connections))
        acceptor.start()
        self._retirement = Retirement(self._site, acceptor, self._after_retirement)
        group.supervision.on_retirement(self._retirement.ask)

    def _after_retirement(self) -> None:
        self._deadline.ask()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and end those that are open."""
        if self._retirement is not None and self._site.group is not None:
            self._site.group.supervision.on_retirement(None)
            self._retirement.acceptor.stop()
        await super().shutdown(sockets)

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


def serve(
    service: Service,
    options: Options,
    listening: socket.socket,
    ready: Callable[[], None] = lambda: None,
    *,
    pages: Pages | None = None,
    compilation: Compilation | None = None,
    group: ProcessGroup | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM; accepted requests are finished first, as far as `stop_within` allows.

    ready  called as soon as requests are answered
    pages  the web site; None: serve only the API
    compilation  the compilation of the kernels, if it was started before
    group  the serving processes that share the port; None: this is the only one
    Raises SecretError without the master secret of the database, EvenmatchError if the server cannot start.
    """
    master_secret.confirm(service.database)
    site = site_over(service, options, compilation, group)
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
            telling = None if group is None else asyncio.create_task(tell_ready(site, group.supervision))
            yield
            if telling is not None:
                telling.cancel()
        log.info("stopped")

    protocol_limits = ProtocolLimits(options.head_within, float(options.body_rate))
    protocol = limited_protocol(site.connections, protocol_limits, site.metrics.count_refused_connection)
    config = uvicorn.Config(
        application(site, lifespan, pages),
        http=protocol,
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
        backlog=BACKLOG,
    )
    for library in ("uvicorn.error", "asyncio"):
        logging.getLogger(library).addFilter(RepeatedWarnings())
    if "FORWARDED_ALLOW_IPS" in os.environ:
        log.warning("FORWARDED_ALLOW_IPS is not read", instead="EVENMATCH_TRUSTED_PROXIES")
    server = _Server(config, protocol, site, deadline)
    deadline.start()
    server.run([listening])
    if site.exchange is not None:
        site.exchange.close()
    if not server.started:
        raise EvenmatchError("the service could not start; see the log")
