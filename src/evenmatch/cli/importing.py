"""evenmatch import: recorded matches, or ratings to start from, into a ladder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.database import DATABASE, Db, OnLadder, counted, ladder_of, of_ladder, opened
from evenmatch.cli.output import note_skipped, print_json, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.service.service import Service


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Recorded matches (or, with --ratings, ratings): .csv, .parquet or .jsonl."
        ),
    ],
    ladder: OnLadder = None,
    ratings: Annotated[
        bool, typer.Option("--ratings", help="FILE holds ratings to start from, columns player and rating.")
    ] = False,
    unrated: Annotated[bool, typer.Option("--unrated", help="Record the matches, but let them change no rating.")] = (
        False
    ),
    skip_bad: options.SkipBad = False,
    pool_ladders: Annotated[
        bool, typer.Option("--pool-ladders", help="Take the matches of all ladders of the file.")
    ] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Add recorded matches to a ladder: all of a file or, if one cannot be rated, none.

    Matches that are on the ladder already change nothing, so after an interruption the same command goes on. A file
    with one ladder goes into L whatever it is called there; of several, the one that is called L.

    With --ratings, FILE says where players begin who have not played on this ladder, for instance as another system
    left them. What `evenmatch export --ratings` and `evenmatch rate --out` write is such a file.

    [bold]Examples[/bold]

    evenmatch import season.parquet --ladder duel

    evenmatch import friendly.csv --ladder duel --unrated

    evenmatch import start.csv --ladder duel --ratings
    """
    if ratings and (unrated or pool_ladders):
        raise UsageError("--ratings is about no matches; accepted is to leave out --unrated and --pool-ladders")
    with opened(db) as service:
        name = ladder_of(service, ladder)
        if ratings:
            _start(service, name, file, skip_bad, json)
        else:
            _import(service, name, file, not unrated, skip_bad, pool_ladders, json)


def _import(
    service: Service, ladder: str, file: Path, rated: bool, skip_bad: bool, pool_ladders: bool, json: bool
) -> None:
    read = options.matches_of(file, None, False, None, skip_bad)
    matches = of_ladder(read, ladder, pool_ladders)
    with working(f"importing into {ladder}", len(matches)) as progress:
        done = service.import_matches(ladder, matches, rated=rated, skip_bad=skip_bad, progress=progress)
    note_skipped(read.skipped_matches, len(read.skipped))
    left_out = len(matches) - done.added - done.known
    if json:
        document = {"ladder": ladder, "added": done.added, "there_already": done.known, "left_out": left_out}
        problems = [str(problem) for problem in read.skipped]
        print_json(
            {**document, "rated": rated, "skipped_matches": read.skipped_matches, "problems": problems}
            | {"events": done.position}
        )
        return
    told = [f"{counted(done.added, 'match', 'matches')} added{'' if rated else ', unrated'}"]
    if done.known:
        told.append(f"{done.known:,} there already")
    if left_out:
        told.append(f"{left_out:,} left out that cannot be rated or are there with other content")
    print(printable(f"ladder {ladder}: {'; '.join(told)}"))


def _start(service: Service, ladder: str, file: Path, skip_bad: bool, json: bool) -> None:
    from evenmatch.cli.starting import read_ratings

    with working(f"reading {file.name}"):
        start, problems = read_ratings(file, ladder, skip_bad=skip_bad)
    with working(f"starting ratings on {ladder}"):
        count = service.start_ratings(ladder, start)
    if json:
        print_json({"ladder": ladder, "players": count, "problems": [str(problem) for problem in problems]})
        return
    left_out = f"; {counted(len(problems), 'bad row')} left out" if problems else ""
    print(
        printable(
            f"ladder {ladder}: {counted(count, 'player')} begin{'s' if count == 1 else ''} from this file{left_out}"
        )
    )
