"""The server process: the application under uvicorn, and the background workers."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from evenmatch.errors import EvenmatchError
from evenmatch.http import service_metrics
from evenmatch.http.app import Pages, application
from evenmatch.http.connections import Connections
from evenmatch.http.database_change import DatabaseChange, in_background
from evenmatch.http.http_protocol import LimitedProtocol, ProtocolLimits, limited_protocol
from evenmatch.http.listening import BACKLOG, address_of
from evenmatch.http.logs import log
from evenmatch.http.open_files import choose_limits
from evenmatch.http.options import Options
from evenmatch.http.processes.acceptor import Acceptor
from evenmatch.http.processes.group import ProcessGroup
from evenmatch.http.processes.metrics_exchange import MetricsExchange
from evenmatch.http.processes.retirement import Retirement, tell_ready
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
LEAVE = 1  # seconds for the requests that run when the process changes to another database; none of them can write


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
        ("requests", site.idempotent_requests.run),
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
async def beside(site: Site, deadline: StopDeadline, change: DatabaseChange | None = None) -> AsyncIterator[None]:
    """Run the background workers while the block runs; end them within their share of the time to stop.

    change  if it has opened the next database, the process does not wait for their end
    """
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
        if change is not None and change.opened is not None:
            in_background(end)
        else:
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

    def leave(self) -> None:
        """End like `handle_exit`, but soon: the process goes on with another database."""
        self.config.timeout_graceful_shutdown = LEAVE
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
    change: DatabaseChange | None = None,
) -> Service | None:
    """Serve until Ctrl-C or SIGTERM; accepted requests are finished first, as far as `stop_within` allows.

    Returns the service of another database if this process is to go on with that one; else None.

    ready  called as soon as requests are answered
    pages  the web site; None: serve only the API
    compilation  the compilation of the kernels, if it was started before
    group  the serving processes that share the port; None: this is the only one
    change  ends this, too, once it has opened another database; `listening` stays open for it
    Raises SecretError without the master secret of the database, EvenmatchError if the server cannot start.
    """
    master_secret.confirm(service.database)
    site = site_over(service, options, compilation, group)
    deadline = StopDeadline(options.stop_within, site.jobs.ask_to_stop, lambda: _note_cut(site))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with beside(site, deadline, change):
            changing = None if change is None else asyncio.create_task(change.wait(server.leave))
            log.info(
                "serving",
                address=address_of(listening),
                database=service.database.shown,
                connections=site.connections.limits.total,
            )
            ready()
            telling = None if group is None else asyncio.create_task(tell_ready(site, group.supervision))
            yield
            for task in (telling, changing):
                if task is not None:
                    task.cancel()
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
    server.run([listening if change is None else listening.dup()])
    if site.exchange is not None:
        site.exchange.close()
    if not server.started:
        raise EvenmatchError("the service could not start; see the log")
    return None if change is None or deadline.is_asked else change.opened
