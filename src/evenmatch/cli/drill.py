"""evenmatch drill: restore the latest backup for a trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.output import print_json, printable, working

if TYPE_CHECKING:
    from evenmatch.service.drill import Drill

SHOWN = 20


def command(
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
    from evenmatch.service.drill import drill, latest_backup

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
