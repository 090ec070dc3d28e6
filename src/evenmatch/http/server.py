"""The server: its socket, its processes under uvicorn, their background workers, and their end.

Python waits for its threads when it exits, and a thread that computes or waits for a database cannot be cancelled.
Therefore a stopping process is ended at a deadline, whatever is still running. Nothing is lost: an uncommitted
transaction has no effect, and its caller got no answer.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from evenmatch.accounts.audit_trail import Audit
from evenmatch.accounts.issuer_tokens import IssuerTokens, TrustedIssuer
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.linked_accounts import LinkedAccounts
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import UsageError
from evenmatch.http import service_metrics
from evenmatch.http.app import Pages, application
from evenmatch.http.logs import RepeatedWarnings, log, repeated
from evenmatch.http.metrics import SHARED_FOLDER, forget_process
from evenmatch.http.options import Options
from evenmatch.http.site import Site
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.live.live_matches import Running
from evenmatch.operations import master_secret
from evenmatch.operations.clock import DatabaseClock
from evenmatch.operations.kernels import Compilation, Kernels, parts_of
from evenmatch.operations.open_database import is_postgresql
from evenmatch.operations.service import Service
from evenmatch.queues.policy_fits import AutoPolicies
from evenmatch.queues.queue_service import QueueService
from evenmatch.recording.recorder import MatchLimits
from evenmatch.webhooks.allocation import Allocator
from evenmatch.webhooks.delivery import Deliverer
from evenmatch.webhooks.subscriptions import Webhooks

if sys.platform != "win32":
    import resource

Application = ASGIApp
BACKLOG = 2048  # connections that wait to be accepted
OPEN_FILES = 65_536  # the limit of open files that a process requests
FILES_KEPT = 128  # open files reserved for the database, webhooks, logs and copies
FEWEST_CONNECTIONS = 64
STARTED_WITHIN = 120  # seconds within which a new process must start, and a running one must answer its manager
LOADED_WITHIN = 20.0  # most seconds that a new process loads kernels while the replaced one still serves


def listen(options: Options) -> socket.socket:
    """Open the listening socket. Raises UsageError if the address is not available."""
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
    """Return the URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def check_workers(workers: int, database: str) -> None:
    """Raise UsageError if several processes cannot serve the database at this path or URL."""
    if workers > 1 and not is_postgresql(database):
        raise UsageError(
            f"--workers is {workers}, and the database is an SQLite file; expected 1. SQLite has one writer at a time, "
            "which one process keeps busy, and it does not tell other processes of changes. Use PostgreSQL for several "
            "processes (evenmatch copy copies the database), or leave out --workers and EVENMATCH_WORKERS"
        )


def allow_connections(wanted: int) -> int:
    """Raise the limit of open files and return the number of connections that it allows, at most `wanted`."""
    if sys.platform == "win32":
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        raised = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    files = wanted + FILES_KEPT if soft == resource.RLIM_INFINITY else soft
    return max(FEWEST_CONNECTIONS, min(wanted, files - FILES_KEPT))


# Shares of `stop_within` after which requests, background work and the process itself must have ended.
REQUESTS, BACKGROUND, END = 0.5, 0.55, 0.6
FAREWELL = 0.15  # longest share in which one of several processes answers once more on each connection
FAREWELL_CHECK = 0.05  # seconds between two looks whether a connection is still open
MANAGER_END = 0.9  # share after which the managing process must have ended


class StopDeadline:
    """A thread that ends the process at a deadline after a request to stop.

    within  most seconds from the request to the end of the process
    begin   called at once; asks background work to stop
    cut     called before the process is ended, if it has not ended by itself
    end     share of `within` after which the process is ended
    """

    def __init__(self, within: float, begin: Callable[[], None], cut: Callable[[], None], end: float = END) -> None:
        self._within, self._begin, self._cut, self._end = within, begin, cut, end
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
        """Whether the process has been asked to stop."""
        return self._asked_at is not None

    def left(self, share: float) -> float:
        """Return the seconds left of a share of the time; before a request to stop, all of them."""
        elapsed = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        return max(0.0, share * self._within - elapsed)

    def _watch(self) -> None:
        self._asked.wait()
        self._begin()
        time.sleep(self.left(self._end))
        try:
            self._cut()
            sys.stderr.flush()
        finally:
            os._exit(0)  # a requested stop is not a failure


Worker = tuple[str, Callable[[threading.Event], None]]
INTERRUPTED, FAILED_TO_START = 130, 1  # exit codes
AGAIN = 1.0  # seconds before a background worker that failed with a bug is restarted
FLUSH = 5.0  # seconds between two calls of `repeated.flush`


def site_over(service: Service, options: Options, compilation: Compilation | None = None) -> Site:
    """Create the site of a service. compilation: the running compilation of its kernels, if any."""
    database, clock = service.database, service.clock
    keys = Keys(database, clock)
    kernels = Kernels(
        lambda: parts_of(service.ladders()),
        compilation,
        lambda parts: log.info("compiling", parts=list(parts), once="per installation"),
        lambda error: log.warning("kernels", error=str(error)),
    )
    service.match_limits = MatchLimits(
        *(options.team_limit, options.player_limit, options.running_limit),
        *("EVENMATCH_TEAM_LIMIT", "EVENMATCH_PLAYER_LIMIT"),
    )
    queue_service = QueueService(service, kernels.matchmaker_loaded)
    accounts = LinkedAccounts(database, clock)
    issuer = TrustedIssuer(options.player_issuer, options.player_audience, options.player_claim)
    trusted = IssuerTokens(issuer, clock, accounts) if issuer.url and issuer.audience else None
    site = Site(
        service=service,
        options=options,
        keys=keys,
        accounts=accounts,
        tokens=Tokens(database, clock, keys, trusted),
        audit=Audit(database),
        queue_service=queue_service,
        running=Running(service, queue_service.notifier),
        webhooks=Webhooks(service, allow_private=options.private_webhooks),
        kernels=kernels,
    )
    service_metrics.watch(site)
    return site


def workers(site: Site) -> list[Worker]:
    """Return the background workers of this process. Each runs in a thread until the event is set."""
    clock, follows = site.service.clock, site.options.follower
    writing = [
        ("hearing", site.queue_service.notifier.hear),
        ("heartbeats", site.queue_service.heartbeats.run),
    ]
    return [
        *(() if follows else writing),  # a standby has no notifications
        *([("clock", clock.run)] if isinstance(clock, DatabaseClock) else []),
        *(matchmaking(site) if site.options.matchmaker and not follows else ()),
    ]


def matchmaking(site: Site) -> list[Worker]:
    """Return the workers for tasks that one process does for all, such as making matches and sending webhooks."""
    return [
        ("matchmaker", service_metrics.TimedMatchmaker(site.queue_service, site.metrics).run),
        ("webhooks", Deliverer(site.webhooks).run),
        ("allocation", Allocator(site.webhooks, site.queue_service).run),
        ("expiry", site.running.run),
        ("decay", DailyDecay(site.service).run),
        ("policies", AutoPolicies(site.queue_service, site.jobs).run),
        ("check", site.daily_check.run),
    ]


@asynccontextmanager
async def beside(site: Site, deadline: StopDeadline) -> AsyncIterator[None]:
    """Run the background workers during the block, and end them within their share of the time to stop."""
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
        forget_process(os.getpid())


async def _flush_log() -> None:
    """Log the counts of repeated events regularly."""
    while True:
        await asyncio.sleep(FLUSH)
        repeated.flush()


def _tune_interpreter() -> None:
    """Reduce pauses from garbage collection.

    The collector ignores the objects loaded so far, since they live as long as the process. It also runs less often,
    since reference cycles are rare. The switch interval stays at Python's 5 ms: a tenth of that costs more than it
    saves, see docs/scale.md.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def guarded(name: str, run: Callable[[threading.Event], None], stop: threading.Event) -> None:
    """Run a worker. If it fails with a bug, log the bug and restart the worker."""
    while not stop.is_set():
        try:
            run(stop)
        except Exception as error:
            log.error("bug", thread=name, exc_info=error)
            stop.wait(AGAIN)
        else:
            return  # the worker is finished


def served_application(
    service: Service,
    options: Options,
    address: str,
    ready: Callable[[], None] = lambda: None,
    *,
    pages: Pages | None = None,
    compilation: Compilation | None = None,
) -> Application:
    """Create the application of one process. Its lifespan runs the background workers and handles signals to stop.

    address  the URL for the log
    ready    called once requests are answered
    pages    the web site; None: serve only the API
    """
    site = site_over(service, options, compilation)
    deadline = StopDeadline(options.stop_within, site.jobs.ask_to_stop, lambda: _note_cut(site))
    deadline.start()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with _noticing_signals(site, deadline):
            async with beside(site, deadline):
                log.info("serving", address=address, database=service.database.shown)
                ready()
                if multiprocessing.parent_process() is not None:  # one of several
                    await asyncio.to_thread(site.kernels.ready.wait, LOADED_WITHIN)
                yield
            log.info("stopped")

    for library in ("uvicorn.error", "asyncio"):
        logging.getLogger(library).addFilter(RepeatedWarnings())
    return application(site, lifespan, pages)


@contextmanager
def _noticing_signals(site: Site, deadline: StopDeadline) -> Iterator[None]:
    """On SIGINT or SIGTERM, start the deadline and end long polls before uvicorn stops the server.

    One of several processes first stops accepting connections and answers once more on each open one, with
    `Connection: close`, until none is open or a share FAREWELL of the time has passed. uvicorn alone would close
    connections without warning, so that requests in transit failed. A second Ctrl-C ends the process at once. If the
    managing process ends, this one stops as after a SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if deadline.is_asked and number == signal.SIGINT:
            os._exit(INTERRUPTED)
        handler = before[signal.Signals(number)]
        if manager is None and callable(handler):
            deadline.ask()
            site.stopping.set()
            handler(number, frame)
        elif callable(handler) and not deadline.is_asked:
            deadline.ask()
            loop.call_soon_threadsafe(say_farewell, partial(handler, number, frame))

    def say_farewell(stop: Callable[[], object]) -> None:
        site.stopping.set()
        server = getattr(before[signal.SIGTERM], "__self__", None)  # uvicorn's handlers are methods of its server
        if not isinstance(server, uvicorn.Server):
            stop()
            return
        for accepting in server.servers:
            accepting.close()
        latest = loop.time() + FAREWELL * site.options.stop_within
        loop.call_later(FAREWELL_CHECK, stop_once_silent, server, stop, latest)  # a connection may be opening

    def stop_once_silent(server: uvicorn.Server, stop: Callable[[], object], latest: float) -> None:
        if server.server_state.connections and loop.time() < latest:
            loop.call_later(FAREWELL_CHECK, stop_once_silent, server, stop, latest)
        else:
            stop()

    loop, manager = asyncio.get_running_loop(), multiprocessing.parent_process()
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    if manager is not None:
        loop.add_reader(manager.sentinel, _stop_without_manager, manager.sentinel)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop_without_manager(sentinel: int) -> None:
    asyncio.get_running_loop().remove_reader(sentinel)
    os.kill(os.getpid(), signal.SIGTERM)


def _note_cut(site: Site) -> None:
    """Log the threads that are still running when the process is ended."""
    running = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    log.warning("cut off", after=f"{site.options.stop_within} s to stop", threads=sorted(running)[:20])


def _config(app: Application | Callable[[], Application], options: Options) -> uvicorn.Config:
    """Configure uvicorn for an application, or for a function that creates it in each of several processes."""
    if "FORWARDED_ALLOW_IPS" in os.environ:
        log.warning("FORWARDED_ALLOW_IPS is ignored", instead="EVENMATCH_TRUSTED_PROXIES")
    return uvicorn.Config(
        app,
        factory=options.workers > 1,
        workers=options.workers,
        ws="none",
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=allow_connections(options.connections),
        timeout_graceful_shutdown=max(1, round((REQUESTS - FAREWELL) * options.stop_within)),
        timeout_keep_alive=75,
        timeout_worker_healthcheck=STARTED_WITHIN,
        backlog=BACKLOG,
    )


def serve(
    service: Service,
    options: Options,
    listening: socket.socket,
    ready: Callable[[], None] = lambda: None,
    *,
    pages: Pages | None = None,
    compilation: Compilation | None = None,
) -> None:
    """Serve in this process until Ctrl-C or SIGTERM, then finish running requests, if `stop_within` allows.

    Arguments as for `served_application`. Raises SecretError without the master secret of the database.
    """
    master_secret.confirm(service.database)
    app = served_application(service, options, address_of(listening), ready, pages=pages, compilation=compilation)
    if threading.current_thread() is threading.main_thread():
        ignore_hangup()
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises the signal again after it stopped
    with suppress(KeyboardInterrupt):
        uvicorn.Server(_config(app, options)).run([listening])


def ignore_hangup() -> None:
    """Ignore SIGHUP, which is a request to replace the processes, meant for their manager."""
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def serve_with_workers(make: Callable[[], Application], options: Options, listening: socket.socket) -> None:
    """Serve in several processes until Ctrl-C or SIGTERM. SIGHUP replaces them one by one; uvicorn replaces dead ones.

    make  creates the application of a process; must be picklable
    """
    with tempfile.TemporaryDirectory(prefix="evenmatch-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        manager = Multiprocess(_config(make, options), [listening])
        deadline = StopDeadline(
            options.stop_within, lambda: _ask_to_stop(manager), lambda: _kill(manager, folder), MANAGER_END
        )
        deadline.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: deadline.ask())
        manager.run()
    if not deadline.is_asked:
        sys.exit(FAILED_TO_START)  # a process could not start, so uvicorn ended all of them


def _ask_to_stop(manager: Multiprocess) -> None:
    """Stop all processes, even while the manager waits for a frozen one."""
    manager.should_exit.set()
    for process in manager.processes:
        if process.pid is not None and process.exitcode is None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)


def _kill(manager: Multiprocess, folder: str) -> None:
    """Kill the processes that have not ended in time."""
    late = [process for process in manager.processes if process.exitcode is None]
    if late:
        log.error("killed", processes=[process.pid for process in late])
    for process in late:
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)
