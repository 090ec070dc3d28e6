"""evenmatch move: move a whole database into another one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, Yes, ask, counted, opened, shown_database
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working

if TYPE_CHECKING:
    from evenmatch.operations.move import Move


def command(
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="The database to move: an SQLite file, or a PostgreSQL URL.")
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="URL", help="An empty database, or an SQLite file that does not exist yet.")
    ],
    restart: Annotated[
        bool, typer.Option("--restart", help="Drop what an unfinished move has copied, and begin again.")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="End the move: the source takes writes again, the target is emptied.")
    ] = False,
    yes: Yes = False,
    json: options.Json = False,
) -> None:
    """Move everything from one database into another: SQLite to PostgreSQL, back, or to another one of the same kind.

    The service goes on meanwhile. Every table is compared bit for bit, and every ladder verified. At the end writes
    are refused for about a second, while the last changes are copied; then the source refuses them for ever, and
    processes begun with evenmatch serve --next-db go on with the new database. If the command is interrupted, type it
    again: it goes on where it was. Until it is finished, no command opens the target.

    [bold]Examples[/bold]

    evenmatch move --from old.db --to postgresql://league@db.example/league

    evenmatch move --from postgresql://league@db.example/league --to new.db
    """
    from evenmatch.operations import move

    if cancel:
        move.cancel(source, target, lambda question: ask(question, yes))
        note("the move is cancelled: the source takes writes again")
        return
    result = move.move(source, target, working, restart=restart)
    if json:
        print_json(_document(result))
    else:
        _print(result)


def _print(result: Move) -> None:
    rows = [(table.table, f"{table.rows:,}", table.digest) for table in result.tables if table.rows]
    if rows:
        print_table("Tables that are equal in both databases", ("table", "rows", "digest"), rows, right=("rows",))
    for ladder in result.ladders:
        size = f"{counted(ladder.matches, 'match', 'matches')}, {counted(ladder.players, 'player')}"
        due = "" if ladder.is_equal else "; a rebuild is due, as before"
        print(printable(f"ladder {ladder.ladder}: all is equal ({size}){due}"))
    if result.changed:
        print(f"{counted(result.changed, 'row')} changed meanwhile and were copied and compared again")
    if result.pause is not None:
        print(f"no writes were taken for {result.pause:.2f} s")
    print(printable(f"{result.source} was moved to {result.target}; serve the new one"))
    if result.needs_secret:
        place = "EVENMATCH_SECRET or EVENMATCH_SECRET_FILE" if result.secret is None else result.secret
        print(printable(f"its processes need the same master secret as before, in {place}"), file=sys.stderr)


def _document(result: Move) -> dict[str, object]:
    return {
        "from": result.source,
        "to": result.target,
        "pause": result.pause,
        "changed": result.changed,
        "tables": [{"table": table.table, "rows": table.rows, "digest": table.digest} for table in result.tables],
        "ladders": [
            {
                "ladder": ladder.ladder,
                "events": ladder.events,
                "matches": ladder.matches,
                "players": ladder.players,
                "rebuild_due": not ladder.is_equal,
            }
            for ladder in result.ladders
        ],
    }


app = typer.Typer(help="The master secret, with which secrets in a database are sealed.", no_args_is_help=True)


@app.command()
def new() -> None:
    """Print a new master secret.

    It seals what a database contains that could sign: keys, tokens, sessions and webhooks. So a copy of the database
    opens nothing. Give it to all processes as EVENMATCH_SECRET, or as a file that EVENMATCH_SECRET_FILE names, and keep
    a copy apart from backups. An SQLite database gets one by itself, in a file beside it, unless one is set.

    [bold]Example[/bold]

    evenmatch secret new > /etc/evenmatch/secret
    """
    from evenmatch.operations.master_secret import new_secret

    print(new_secret())


@app.command()
def rotate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file with the new master secret.")],
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Seal everything in a database with another master secret, in one transaction.

    The present one is that of the environment, or of the file beside an SQLite database, which is replaced. Keys,
    tokens, sessions and webhooks stay valid. Stop the processes of the service first, and start them with the new one.

    [bold]Example[/bold]

    evenmatch secret rotate /etc/evenmatch/secret-2027
    """
    from evenmatch.operations import master_secret

    with opened(db) as service:
        shown = shown_database(service)
        place = master_secret.rotate(service.database, file, service.clock)
    if json:
        print_json({"database": shown, "file": None if place is None else str(place)})
        return
    print(printable(f"{shown}: sealed with the master secret of {file}"))
    note("start all processes with it" if place is None else f"it is in {place} now, where processes find it")


@app.command()
def reset(db: Db = DATABASE, yes: Yes = False, json: options.Json = False) -> None:
    """Replace everything that is sealed, because the master secret is lost, or others have seen what it sealed.

    Set another master secret first; an SQLite database gets one in a new file. All players' tokens and sessions end,
    existing keys cannot sign requests any more, and webhooks get new secrets, which are printed. Keys that are sent as
    they are stay valid. Stop the processes of the service first.

    [bold]Example[/bold]

    evenmatch secret reset
    """
    from evenmatch.operations import master_secret

    ask("Replace the secrets of tokens, sessions and webhooks, and let no existing key sign any more?", yes)
    with opened(db) as service:
        shown = shown_database(service)
        replaced = master_secret.reset(service.database, service.clock)
    if json:
        print_json({"database": shown, "webhooks": [hook._asdict() for hook in replaced]})
        return
    for hook in replaced:
        print(printable(f"webhook {hook.webhook} ({hook.url}): {hook.secret}"))
    note(f"{shown}: tokens and sessions have ended, keys that sign must be replaced")
    if replaced:
        note(f"give {counted(len(replaced), 'webhook')} the secret that is shown; it cannot be shown again")
