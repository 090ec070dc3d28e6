"""evenmatch export: write a ladder's matches, ratings, journal, corrections and learned numbers to files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, counted, ladder_of, opened
from evenmatch.cli.shared.files import check_outputs
from evenmatch.cli.shared.options import option
from evenmatch.cli.shared.output import print_json, printable, working
from evenmatch.errors import UsageError


def command(
    ladder: OnLadder = None,
    matches: Annotated[Path | None, option("--matches FILE", "Every recorded match, a row per player.")] = None,
    only_counted: Annotated[bool, option("--counted", "Only matches that count; column keep marks refunds.")] = False,
    ratings: Annotated[
        Path | None, option("--ratings FILE", "Rating, rank, percentile and division of players.")
    ] = None,
    journal: Annotated[Path | None, option("--journal FILE", "Every rating change, with its factors.")] = None,
    corrections: Annotated[Path | None, option("--corrections FILE", "Voids, bans, rule changes, seasons.")] = None,
    learned: Annotated[Path | None, option("--learned FILE", "What the system has learned about the ladder.")] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Export a ladder as tables from one snapshot. The suffix selects the format: .csv, .parquet or .jsonl.

    Either all of these files are written or none. From matches exported with --counted, `evenmatch rate` calculates the
    same ratings, unless the ladder had seasons, starting ratings or parameters that changed from some time on.

    Examples:
    evenmatch export --ladder duel --ratings ratings.csv
    evenmatch export --ladder duel --matches matches.parquet --journal changes.parquet --corrections log.jsonl
    """
    from evenmatch.ladders.export import Files, export

    named = [path for path in (matches, ratings, journal, corrections, learned) if path is not None]
    if not named:
        raise UsageError("nothing to export; give --matches, --ratings, --journal, --corrections or --learned")
    if only_counted and matches is None:
        raise UsageError("--counted needs --matches FILE")
    check_outputs(*named)
    with opened(db) as service:
        name = ladder_of(service, ladder)
        with working(f"exporting {name}"):
            files = Files(matches, ratings, journal, corrections, learned, only_counted)
            rows = export(service.database, name, files, service.clock())
    if json:
        print_json({"ladder": name, "files": [{"file": str(path), "rows": rows[path]} for path in named]})
        return
    for path in named:
        print(printable(f"{path}: {counted(rows[path], 'row')}"))
