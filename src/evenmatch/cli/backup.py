"""evenmatch backup: copy the whole database while it is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, opened, shown_database
from evenmatch.cli.shared.output import note, print_json, printable, working


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy, an SQLite database.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing file.")] = False,
    with_secret: Annotated[
        bool,
        typer.Option("--with-secret", help="Also copy the master secret, into FILE.secret, which only you can read."),
    ] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Copy the database as it is at this moment, while other processes read and write.

    To restore a copy, use it as --db, or put it in the place of the database while no process uses that. The master
    secret, without which a restored database does not serve, is not in the copy: keep a copy of it elsewhere, or add
    --with-secret, which writes it into FILE.secret with mode 0600. Whoever has both files can sign and log in as
    anybody. When you rename the copy, rename its secret too.

    PostgreSQL has its own tool, pg_dump; for a PostgreSQL database this command prints what to type. The exit code is 1
    if the database has lost a ladder: the copy is made, but replaces no former one.

    [bold]Examples[/bold]

    evenmatch backup monday.db

    evenmatch backup /backups/monday.db --with-secret

    evenmatch backup /backups/latest.db --replace --db league.db
    """
    from evenmatch.service.backup import backup
    from evenmatch.service.master_secret import secret_place

    with opened(db) as service:
        shown = shown_database(service)
        with working(f"copying {shown}"):
            copy = backup(service.database, file, replace=replace, with_secret=with_secret)
        secret = secret_place(service.database)
    if json:
        files = {"file": str(file), "secret": None if copy.secret is None else str(copy.secret)}
        print_json({"database": shown, **files, "bytes": copy.size, "damage": list(copy.damage)})
    else:
        print(printable(f"{file}: a copy of {shown}, {copy.size / 1e6:,.1f} MB"))
        if copy.secret is not None:
            print(printable(f"{copy.secret}: its master secret, mode 0600"))
            note("whoever has both files can sign and log in as anybody; keep them where only operators can read")
        elif secret is not None:
            note(
                f"the copy opens nothing without the master secret ({secret}); keep that elsewhere, or add "
                "--with-secret"
            )
        if copy.damage:
            print("the database is damaged, and so is the copy; restore a backup from before the damage")
            for line in copy.damage:
                print(printable(f"  {line}"))
    if copy.damage:
        raise typer.Exit(1)
