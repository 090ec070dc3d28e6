"""evenmatch import: add recorded matches or starting ratings to a ladder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.audit import acting
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, counted, ladder_of, opened
from evenmatch.cli.shared.input_files import FILES, FromLadder, adding, matches_in, one_ladder, received
from evenmatch.cli.shared.output import note_skipped, print_json, printable, problems_document, warn, working
from evenmatch.errors import UsageError, matches_of

if TYPE_CHECKING:
    from evenmatch.service.recording.imports import ImportResult
    from evenmatch.service.service import Service
    from evenmatch.tables import MatchTable


def command(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help=f"Recorded matches (or, with --ratings, ratings): {FILES}."),
    ],
    ladder: OnLadder = None,
    from_ladder: FromLadder = None,
    ratings: Annotated[
        bool, typer.Option("--ratings", help="FILE contains starting ratings, columns player and rating.")
    ] = False,
    event_id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="With --ratings: an id of your choice; repeating the same id changes nothing."
        ),
    ] = None,
    unrated: Annotated[bool, typer.Option("--unrated", help="Record the matches without changing ratings.")] = (False),
    skip_bad: options.SkipBad = False,
    time_format: options.TimeFormat = "seconds",
    pool_ladders: Annotated[
        bool, typer.Option("--pool-ladders", help="Import the matches of all ladders in the file.")
    ] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Add recorded matches to a ladder: all matches of a file or, if one cannot be rated, none.

    Matches that are already on the ladder are skipped, so an interrupted import continues with the same command. A file
    with one ladder is imported into L whatever its name in the file; of several ladders, --from or else L is imported.

    With --ratings, FILE contains starting ratings for players who have not played on this ladder, for example their
    ratings from another system. `evenmatch export --ratings` and `evenmatch rate --out` write such files.

    [bold]Examples[/bold]

    evenmatch import season.parquet --ladder duel

    evenmatch import season.csv --ladder duel --from ranked-1v1

    evenmatch import friendly.csv --ladder duel --unrated

    evenmatch import start.csv --ladder duel --ratings
    """
    if ratings and (unrated or pool_ladders or time_format != "seconds"):
        raise UsageError("--ratings imports no matches; leave out --unrated, --pool-ladders and --time-format")
    if event_id is not None and not ratings:
        raise UsageError("--id is only for --ratings; matches have their own ids")
    if pool_ladders and from_ladder is not None:
        raise UsageError("--from imports one ladder of the file, --pool-ladders all; use only one of the two")
    with opened(db) as service, received(file) as (path, called), adding("row" if ratings else "match"):
        name = ladder_of(service, ladder)
        if ratings:
            _start(service, name, path, called, from_ladder, event_id, skip_bad, json)
        else:
            read = matches_in(path, called, skip_bad, time_format)
            either = ", or --pool-ladders to import all as one"
            matches = read.pooled() if pool_ladders else one_ladder(read, name, from_ladder, either)
            done = _import(service, name, matches, not unrated, skip_bad)
            _print(name, matches, done, not unrated, json)


def _import(service: Service, ladder: str, matches: MatchTable, rated: bool, skip_bad: bool) -> ImportResult:
    imported = 0
    with working(f"importing into {ladder}", len(matches)) as progress:

        def update(done: int) -> None:
            nonlocal imported
            imported = done
            progress(done)

        try:
            return service.import_matches(ladder, matches, rated=rated, skip_bad=skip_bad, progress=update)
        except KeyboardInterrupt:
            added = counted(imported, "match was", "matches were") if imported else "nothing was"
            raise KeyboardInterrupt(f"{added} added, the same command continues") from None


def _print(ladder: str, matches: MatchTable, done: ImportResult, rated: bool, json: bool) -> None:
    problems = (*matches.skipped, *done.left_out)
    note_skipped(problems)
    for text in done.warnings:
        warn(text)
    left_out = len(matches_of(done.left_out))
    if json:
        document = {"ladder": ladder, "added": done.added, "there_already": done.known, "left_out": left_out}
        skipped = {"skipped_matches": matches.skipped_matches, **problems_document(problems)}
        print_json({**document, "rated": rated, **skipped, "events": done.position, "warnings": list(done.warnings)})
        return
    parts = [f"{counted(done.added, 'match', 'matches')} added{'' if rated else ', unrated'}"]
    if done.known:
        parts.append(f"{done.known:,} there already")
    if left_out:
        parts.append(f"{left_out:,} left out that cannot be rated or have the id of a different match")
    print(printable(f"ladder {ladder}: {'; '.join(parts)}"))


def _start(
    service: Service,
    ladder: str,
    path: Path,
    called: str | None,
    from_ladder: str | None,
    event_id: str | None,
    skip_bad: bool,
    json: bool,
) -> None:
    from evenmatch.cli.shared.starting_ratings import read_ratings

    with working(f"reading {called or path.name}"):
        rules = service.ladder(ladder).rules
        start, problems = read_ratings(path, called, ladder, from_ladder, rules, skip_bad=skip_bad)
    with working(f"starting ratings on {ladder}"):
        noting = acting(service, "ratings.started", ladder, body={"players": len(start), "id": event_id})
        count = noting.start_ratings(ladder, start, event_id)
    if json:
        document = {"ladder": ladder, "players": count, "there_already": len(start) - count}
        print_json({**document, **problems_document(problems)})
        return
    result = f"{counted(count, 'player')} start{'s' if count == 1 else ''} with a rating from this file"
    if not count:
        result = f"nothing was added, id {event_id} is there already with the same ratings"
    left_out = f"; {counted(len(problems), 'bad row')} left out" if problems else ""
    print(printable(f"ladder {ladder}: {result}{left_out}"))
