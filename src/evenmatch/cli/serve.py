"""evenmatch serve: the HTTP service and web site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared.database_options import DATABASE, Db, typed
from evenmatch.cli.shared.output import note
from evenmatch.errors import needing

if TYPE_CHECKING:
    from evenmatch.service.service import Service


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
    next_db: Annotated[
        str | None,
        typer.Option(
            "--next-db",
            metavar="URL",
            envvar="EVENMATCH_NEXT_DB",
            help="The database to go on with once evenmatch move has moved --db to it.",
        ),
    ] = None,
) -> None:
    """Serve ladders, queues and players over HTTP until Ctrl-C or SIGTERM, then finish accepted requests.

    Creates the database if it does not exist. Any number of processes may serve one PostgreSQL database. The address is
    printed to standard output when the server listens, the log to standard error. Every setting can also be given by an
    environment variable, for example EVENMATCH_PORT=8080; options take precedence. A second Ctrl-C ends at once.

    [bold]Examples[/bold]

    evenmatch serve

    evenmatch serve --db postgresql://league@db.example/league --host 0.0.0.0 --port 80

    evenmatch serve --port 0 --open-reads --log-format text
    """
    given = {
        "host": host,
        "port": port,
        "open_reads": open_reads or None,
        "log_format": log_format,
        "matchmaker": False if no_matchmaker else None,
    }
    _serve(db, next_db, {name: value for name, value in given.items() if value is not None})


def _serve(db: str, next_db: str | None, given: dict[str, object]) -> None:
    with needing("serve", "the service"):
        from evenmatch.http import logs
        from evenmatch.http.database_change import DatabaseChange, in_background
        from evenmatch.http.options import read_options
        from evenmatch.http.server import address_of, listen, serve
        from evenmatch.service.move import check_served
        from evenmatch.service.next_database import NextDatabase
        from evenmatch.service.service import Service
        from evenmatch.web.app import pages

    options = read_options(given)
    listening = listen(options)
    with listening, Service.open(db) as service:
        change = None if next_db is None else DatabaseChange(NextDatabase(service.database, next_db))
        if change is None:
            check_served(service.database)
        logs.begin(options)
        _note_missing_key(service, db, open_reads=options.open_reads)
        shown_pages = pages if options.pages else None
        moved = serve(
            *(service, options, listening),
            lambda: print(f"serving at {address_of(listening)}", flush=True),
            pages=shown_pages,
            change=change,
        )
        if moved is not None:
            with moved:
                in_background(service.close)
                serve(moved, options, listening, pages=shown_pages)


def _note_missing_key(service: Service, db: str, *, open_reads: bool) -> None:
    """Print how to create an API key if there is no valid one."""
    from evenmatch.service.callers.keys import Keys

    now = service.clock()
    if not any(key.state(now) == "good" for key in Keys(service.database, service.clock).list()):
        without = "reading is allowed, nothing else" if open_reads else "only health checks are allowed"
        note(f"there is no API key yet: without one, {without}; to create one: {_create(db)}")


def _create(db: str) -> str:
    return typed(db, "key create operator --scope admin")
