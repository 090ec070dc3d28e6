"""evenmatch move: move a whole database into another one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import Yes, ask, counted
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working

if TYPE_CHECKING:
    from evenmatch.service.move import Move


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
    from evenmatch.service import move

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
