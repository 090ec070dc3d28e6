"""evenmatch import: recorded matches, or ratings to start from, into a ladder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.acting import acting
from evenmatch.cli.database import DATABASE, Db, OnLadder, counted, ladder_of, opened
from evenmatch.cli.incoming import FILES, FromLadder, adding, matches_in, one_ladder, received
from evenmatch.cli.output import note_skipped, print_json, printable, problems_document, working
from evenmatch.errors import UsageError, matches_of

if TYPE_CHECKING:
    from evenmatch.service.importing import Imported
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
        bool, typer.Option("--ratings", help="FILE holds ratings to start from, columns player and rating.")
    ] = False,
    event_id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="With --ratings: an id of your choice; sending the same again changes nothing."
        ),
    ] = None,
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
    with one ladder goes into L whatever it is called there; of several, the one that is called L, or --from.

    With --ratings, FILE says where players begin who have not played on this ladder, for instance as another system
    left them. What `evenmatch export --ratings` and `evenmatch rate --out` write is such a file.

    [bold]Examples[/bold]

    evenmatch import season.parquet --ladder duel

    evenmatch import season.csv --ladder duel --from ranked-1v1

    evenmatch import friendly.csv --ladder duel --unrated

    evenmatch import start.csv --ladder duel --ratings
    """
    if ratings and (unrated or pool_ladders):
        raise UsageError("--ratings is about no matches; accepted is to leave out --unrated and --pool-ladders")
    if event_id is not None and not ratings:
        raise UsageError("--id is about --ratings; matches have ids of their own")
    if pool_ladders and from_ladder is not None:
        raise UsageError("--from takes one ladder of the file, --pool-ladders all of them; accepted is one of these")
    with opened(db) as service, received(file) as (path, called), adding("row" if ratings else "match"):
        name = ladder_of(service, ladder)
        if ratings:
            _start(service, name, path, called, from_ladder, event_id, skip_bad, json)
        else:
            read = matches_in(path, called, skip_bad)
            either = ", or --pool-ladders to take all as one"
            matches = read.pooled() if pool_ladders else one_ladder(read, name, from_ladder, either)
            done = _import(service, name, matches, not unrated, skip_bad)
            _print(name, matches, done, not unrated, json)


def _import(service: Service, ladder: str, matches: MatchTable, rated: bool, skip_bad: bool) -> Imported:
    through = 0
    with working(f"importing into {ladder}", len(matches)) as progress:

        def keep(done: int) -> None:
            nonlocal through
            through = done
            progress(done)

        try:
            return service.import_matches(ladder, matches, rated=rated, skip_bad=skip_bad, progress=keep)
        except KeyboardInterrupt:
            told = f"{counted(through, 'match', 'matches')} are in" if through else "nothing was added"
            raise KeyboardInterrupt(f"{told}, the same command goes on") from None


def _print(ladder: str, matches: MatchTable, done: Imported, rated: bool, json: bool) -> None:
    problems = (*matches.skipped, *done.left_out)
    note_skipped(problems)
    left_out = len(matches_of(done.left_out))
    if json:
        document = {"ladder": ladder, "added": done.added, "there_already": done.known, "left_out": left_out}
        skipped = {"skipped_matches": matches.skipped_matches, **problems_document(problems)}
        print_json({**document, "rated": rated, **skipped, "events": done.position})
        return
    told = [f"{counted(done.added, 'match', 'matches')} added{'' if rated else ', unrated'}"]
    if done.known:
        told.append(f"{done.known:,} there already")
    if left_out:
        told.append(f"{left_out:,} left out that cannot be rated or are there with other content")
    print(printable(f"ladder {ladder}: {'; '.join(told)}"))


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
    from evenmatch.cli.starting import read_ratings

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
    told = f"{counted(count, 'player')} begin{'s' if count == 1 else ''} from this file"
    if not count:
        told = f"nothing was added, id {event_id} is there already with the same ratings"
    left_out = f"; {counted(len(problems), 'bad row')} left out" if problems else ""
    print(printable(f"ladder {ladder}: {told}{left_out}"))
