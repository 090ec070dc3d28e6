"""evenmatch serve: the HTTP service and web site."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared.database_options import DATABASE, Db, typed
from evenmatch.cli.shared.output import fail, note
from evenmatch.errors import EvenmatchError, needing

if TYPE_CHECKING:
    from evenmatch.http.options import Options
    from evenmatch.http.server import Application
    from evenmatch.operations.service import Service


def command(
    db: Db = DATABASE,
    host: Annotated[
        str | None, typer.Option("--host", metavar="H", help="Address to listen on: 127.0.0.1; 0.0.0.0 for all.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, metavar="N", help="Port: 8080; 0: a free one, which is printed."),
    ] = None,
    open_reads: Annotated[
        bool, typer.Option("--open-reads", help="Allow reading ladders and players without a key.")
    ] = False,
    log_format: Annotated[
        str | None, typer.Option("--log-format", metavar="F", help="Format of log lines: json or text.")
    ] = None,
    no_matchmaker: Annotated[
        bool, typer.Option("--no-matchmaker", help="Leave matchmaking and webhooks to other processes.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, max=64, metavar="N", help="Processes that serve at the port: 1."),
    ] = None,
    follower: Annotated[
        bool, typer.Option("--follower", help="Only read, also from a hot standby; take no writes.")
    ] = False,
) -> None:
    """Serve ladders, queues and players over HTTP until Ctrl-C or SIGTERM, then finish accepted requests.

    Creates the database if it does not exist. Any number of processes may serve one PostgreSQL database. --workers
    starts several at one port and replaces those that die; SIGHUP replaces each of them, for instance after an upgrade.
    The address is printed to standard output when the server listens, the log to standard error. Every setting can also
    be given by an environment variable, for example EVENMATCH_PORT=8080; options take precedence. A second Ctrl-C ends
    the service at once.

    Examples:
    evenmatch serve
    evenmatch serve --db postgresql://league@db.example/league --host 0.0.0.0 --port 80 --workers 4
    evenmatch serve --db postgresql://league@standby.example/league --follower
    evenmatch serve --port 0 --open-reads --log-format text
    """
    given = {
        "host": host,
        "port": port,
        "open_reads": open_reads or None,
        "log_format": log_format,
        "matchmaker": False if no_matchmaker else None,
        "workers": workers,
        "follower": follower or None,
    }
    _serve(db, {name: value for name, value in given.items() if value is not None})


def _serve(db: str, given: dict[str, object]) -> None:
    with needing("serve", "the service"):
        from evenmatch.http import logs
        from evenmatch.http.options import read_options
        from evenmatch.http.server import address_of, check_workers, listen, serve, serve_with_workers
        from evenmatch.operations import master_secret
        from evenmatch.web.app import pages

    options = read_options(given)
    check_workers(options.workers, db)
    with listen(options) as listening:
        address = address_of(listening)
        with _open(db, options) as service:
            logs.begin(options)
            master_secret.confirm(service.database)
            _note_missing_key(service, db, open_reads=options.open_reads)
            if options.workers == 1:
                serve(
                    *(service, options, listening, lambda: print(f"serving at {address}", flush=True)),
                    pages=pages if options.pages else None,
                )
                return
        print(f"serving at {address}", flush=True)
        serve_with_workers(partial(worker_application, db, given, address), options, listening)


def worker_application(db: str, given: dict[str, object], address: str) -> Application:
    """The application of one of several processes; the manager calls this in the process."""
    from evenmatch.http import logs
    from evenmatch.http.options import read_options
    from evenmatch.http.server import ignore_hangup, served_application
    from evenmatch.operations import master_secret
    from evenmatch.web.app import pages

    ignore_hangup()
    try:
        options = read_options(given)
        logs.begin(options)
        service = _open(db, options)
        master_secret.confirm(service.database)
        return served_application(service, options, address, pages=pages if options.pages else None)
    except EvenmatchError as error:
        fail(error)
        sys.exit(1)  # not the status with which uvicorn would end all processes


def _open(db: str, options: Options) -> Service:
    from evenmatch.operations.open_database import open_served

    return open_served(db, options.writes_at if options.follower else None)


def _note_missing_key(service: Service, db: str, *, open_reads: bool) -> None:
    """Print how to create an API key if there is no valid one."""
    from evenmatch.accounts.keys import Keys

    now = service.clock()
    if not any(key.state(now) == "good" for key in Keys(service.database, service.clock).list()):
        without = "reading is allowed, nothing else" if open_reads else "only health checks are allowed"
        note(f"there is no API key yet: without one, {without}; to create one: {_create(db)}")


def _create(db: str) -> str:
    return typed(db, "key create operator --scope admin")
