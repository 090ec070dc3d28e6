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
        bool, typer.Option("--restart", help="Discard an unfinished copy in the target and start over.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Copy a whole database into another one, from or to SQLite or PostgreSQL.

    Stop the service first: the copy fails if the source changes while it runs. Every table is compared bit for bit,
    and every ladder is verified. If the command is interrupted, run it again: it continues where it stopped. Until the
    copy is complete, no other command opens the target.

    Examples:
    evenmatch copy --from old.db --to postgresql://league@db.example/league
    evenmatch copy --from postgresql://league@db.example/league --to new.db
    """
    from evenmatch.operations.copy import copy_database

    result = copy_database(source, target, working, restart=restart)
    if json:
        print_json(result)
    else:
        _print(result)


def _print(result: DatabaseCopy) -> None:
    rows = [(name, f"{table.rows:,}", table.digest) for name, table in result.tables.items() if table.rows]
    print_table("Tables, equal in both databases", ("table", "rows", "digest"), rows, right=("rows",))
    for ladder in result.ladders:
        size = f"{counted(ladder.matches, 'match', 'matches')}, {counted(ladder.players, 'player')}"
        due = "" if ladder.is_equal else "; a rebuild is still due"
        print(printable(f"ladder {ladder.ladder}: everything matches ({size}){due}"))
    print(printable(f"copied {result.source} to {result.target}; the copy is ready to serve"))
    if result.needs_secret:
        place = "EVENMATCH_SECRET or EVENMATCH_SECRET_FILE" if result.secret is None else result.secret
        print(printable(f"processes that serve it need the same master secret as before, in {place}"), file=sys.stderr)
