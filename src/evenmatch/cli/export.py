"""evenmatch export: a ladder's matches, ratings, journal and corrections into files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.database import DATABASE, Db, OnLadder, check_unlike, counted, ladder_of, opened
from evenmatch.cli.output import print_json, printable, working
from evenmatch.errors import UsageError


def command(
    ladder: OnLadder = None,
    matches: Annotated[
        Path | None, typer.Option("--matches", metavar="FILE", help="Every recorded match, a row per player.")
    ] = None,
    only_counted: Annotated[
        bool, typer.Option("--counted", help="Of the matches only those that count, refunds as column keep.")
    ] = False,
    ratings: Annotated[
        Path | None, typer.Option("--ratings", metavar="FILE", help="Everybody's rating, rank, percentile, division.")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option("--journal", metavar="FILE", help="Every change of a rating, with its factors.")
    ] = None,
    corrections: Annotated[
        Path | None, typer.Option("--corrections", metavar="FILE", help="Voids, bans, changes of rules, seasons.")
    ] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Write a ladder as tables, all of one moment: .csv, .parquet or .jsonl, as the suffix says.

    Of several files all are written or none. With --counted, `evenmatch rate` makes the ladder's ratings of the
    matches, unless it had seasons, starting ratings or parameters that changed from then on.

    [bold]Examples[/bold]

    evenmatch export --ladder duel --ratings ratings.csv

    evenmatch export --ladder duel --matches matches.parquet --journal changes.parquet --corrections log.jsonl
    """
    from evenmatch.service.exports import Files, export
    from evenmatch.tables.files import check_writable

    named = [path for path in (matches, ratings, journal, corrections) if path is not None]
    if not named:
        raise UsageError("nothing to export was named; accepted are --matches, --ratings, --journal, --corrections")
    if only_counted and matches is None:
        raise UsageError("--counted is about --matches; accepted is to give --matches FILE too")
    for path in named:
        check_writable(path)
    check_unlike(*named)
    with opened(db) as service:
        name = ladder_of(service, ladder)
        with working(f"exporting {name}"):
            files = Files(matches, ratings, journal, corrections, only_counted)
            rows = export(service.database, name, files, service.clock())
    if json:
        print_json({"ladder": name, "files": [{"file": str(path), "rows": rows[path]} for path in named]})
        return
    for path in named:
        print(printable(f"{path}: {counted(rows[path], 'row')}"))
