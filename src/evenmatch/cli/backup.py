"""evenmatch backup and drill: copy the database while it is in use, and restore the latest backup for a trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, opened, shown_database
from evenmatch.cli.shared.output import note, print_json, printable, working

if TYPE_CHECKING:
    from evenmatch.operations.backup import Drill


def command_backup(
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
    from evenmatch.operations.backup import backup
    from evenmatch.operations.master_secret import secret_place

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


SHOWN = 20


def command_drill(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="A backup, or a folder: its newest file.")],
    live: Annotated[
        str | None,
        typer.Option("--live", metavar="URL", help="The database that the backup is of; it is only read."),
    ] = None,
    max_age: Annotated[
        float | None, typer.Option("--max-age", metavar="HOURS", min=0, help="An older backup counts as a failure.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Restore a backup into a temporary folder, check its file, and replay and verify every ladder in it.

    With --live, the events of the backup must be the beginning of those in that database, --max-age also counts from
    the first event that the backup lacks, and the master secret must be that of the backup. The exit code is 0 if all
    is well and 1 otherwise, so that a timer can run this. The folder is TMPDIR, and needs room for the backup.

    [bold]Examples[/bold]

    evenmatch drill monday.db

    evenmatch drill /backups --live evenmatch.db --max-age 26
    """
    from evenmatch.operations.backup import drill, latest_backup

    with working(f"restoring {latest_backup(backup)}"):
        result = drill(backup, live)
    is_late = max_age is not None and result.age > max_age * 3600
    if json:
        print_json({**_document(result), "sound": result.is_sound and not is_late})
    else:
        _print(result, live)
        if is_late:
            print(f"  it is {result.age / 3600:,.1f} hours old; expected at most {max_age:g}")
    if is_late or not result.is_sound:
        raise typer.Exit(1)


def _print(result: Drill, live: str | None) -> None:
    summary = "can be restored" if result.is_sound else "cannot be relied on"
    print(printable(f"{result.file}: {summary}, checked in {result.seconds:,.1f} s"))
    for line in result.problems[:SHOWN]:
        print(printable(f"  {line}"))
    for ladder in result.ladders:
        findings = [*ladder.damage, *ladder.differences]
        size = f"{ladder.events:,} events, {ladder.matches:,} matches, {ladder.players:,} players"
        state = f"{size}, all is equal" if not findings else "is damaged" if ladder.damage else f"{size}, not equal"
        if not findings and (ladder.due is not None or not ladder.same_engine):
            state += ", a rebuild is due"
        print(printable(f"  ladder {ladder.ladder}: {state}"))
        for line in [*findings[:SHOWN], *ladder.unchecked]:
            print(printable(f"    {line}"))
    if not (result.ladders or result.problems):
        print("  there is no ladder in it")
    if result.recorded is not None:
        print(printable(f"  its last event was recorded at {result.recorded}"))
    for line in result.notes:
        print(printable(f"  {line}"))
    if live is not None and result.is_sound:
        print("  the live database goes on from it")


def _document(result: Drill) -> dict[str, object]:
    return {
        "file": str(result.file),
        "age_seconds": round(result.age, 1),
        "recorded": result.recorded,
        "seconds": round(result.seconds, 3),
        "problems": list(result.problems),
        "notes": list(result.notes),
        "ladders": [
            {
                "ladder": ladder.ladder,
                "events": ladder.events,
                "matches": ladder.matches,
                "damage": list(ladder.damage),
                "differences": list(ladder.differences),
                "unchecked": list(ladder.unchecked),
            }
            for ladder in result.ladders
        ],
        "heads": [head.document() for head in result.heads],
    }
