"""evenmatch copy: copy a whole database into another one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import counted
from evenmatch.cli.shared.output import print_json, print_table, printable, working

if TYPE_CHECKING:
    from evenmatch.operations.copy import DatabaseCopy


def command(
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="The database to copy: an SQLite file, or a PostgreSQL URL.")
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="URL", help="An empty database, or an SQLite file that does not exist yet.")
    ],
    restart: Annotated[
        bool, typer.Option("--restart", help="Drop what an unfinished copy has left in the target, and begin again.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Copy everything from one database into another: SQLite to PostgreSQL, back, or within a kind.

    Stop the service first: if the source is written to meanwhile, the copy fails. Every table is compared bit for bit,
    and every ladder is verified. If the command is interrupted, run it again: it continues where it stopped. Until the
    copy is complete, no other command opens the target.

    Examples:
    evenmatch copy --from old.db --to postgresql://league@db.example/league
    evenmatch copy --from postgresql://league@db.example/league --to new.db
    """
    from evenmatch.operations.copy import copy_database

    result = copy_database(source, target, working, restart=restart)
    if json:
        print_json(_document(result))
    else:
        _print(result)


def _print(result: DatabaseCopy) -> None:
    rows = [(name, f"{table.rows:,}", table.digest) for name, table in result.tables.items() if table.rows]
    print_table("Tables that are equal in both databases", ("table", "rows", "digest"), rows, right=("rows",))
    for ladder in result.ladders:
        size = f"{counted(ladder.matches, 'match', 'matches')}, {counted(ladder.players, 'player')}"
        due = "" if ladder.is_equal else "; a rebuild is due, as before"
        print(printable(f"ladder {ladder.ladder}: all is equal ({size}){due}"))
    print(printable(f"{result.source} is copied to {result.target}; serve the copy"))
    if result.needs_secret:
        place = "EVENMATCH_SECRET or EVENMATCH_SECRET_FILE" if result.secret is None else result.secret
        print(printable(f"its processes need the same master secret as before, in {place}"), file=sys.stderr)


def _document(result: DatabaseCopy) -> dict[str, object]:
    return {
        "from": result.source,
        "to": result.target,
        "tables": [
            {"table": name, "rows": table.rows, "digest": table.digest} for name, table in result.tables.items()
        ],
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
