"""evenmatch import: add recorded matches or starting ratings to a ladder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.audit import acting
from evenmatch.cli.corrections import ONLY_SEEN, as_document, carry_out, print_effect
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, counted, ladder_of, opened
from evenmatch.cli.shared.input_files import FILES, FromLadder, adding, ladder_within, matches_in, one_ladder, received
from evenmatch.cli.shared.output import note, note_skipped, print_json, printable, problems_document, warn, working
from evenmatch.errors import BadRowsError, InputError, RowProblem, UsageError, matches_of

if TYPE_CHECKING:
    import pyarrow as pa

    from evenmatch.corrections.effect import Effect
    from evenmatch.operations.service import Service
    from evenmatch.recording.imports import ImportResult, LateMatches
    from evenmatch.systems.system import Rules
    from evenmatch.tables import MatchTable
    from evenmatch.tables.source import Source


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
    at_their_time: Annotated[
        bool,
        typer.Option(
            "--at-their-time",
            help="Rate matches that ended before the ladder's newest match at the time they were played, by a replay.",
        ),
    ] = False,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="With --at-their-time: only show how ratings would change."),
    ] = False,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="With --at-their-time: stored in the ledger.")
    ] = None,
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

    A match that ended before the ladder's newest match counts as the newest. With --at-their-time it counts where it
    belongs: all later matches are rated again, which is a correction like `evenmatch void` and can be previewed.

    With --ratings, FILE contains starting ratings for players who have not played on this ladder, for example their
    ratings from another system. `evenmatch export --ratings` and `evenmatch rate --out` write such files.

    [bold]Examples[/bold]

    evenmatch import season.parquet --ladder duel

    evenmatch import season.csv --ladder duel --from ranked-1v1

    evenmatch import friendly.csv --ladder duel --unrated

    evenmatch import forgotten.csv --ladder duel --at-their-time --preview

    evenmatch import start.csv --ladder duel --ratings
    """
    if ratings and (unrated or pool_ladders or time_format != "seconds"):
        raise UsageError("--ratings imports no matches; leave out --unrated, --pool-ladders and --time-format")
    if event_id is not None and not ratings and not at_their_time:
        raise UsageError("--id is only for --ratings and --at-their-time; matches have their own ids")
    if (preview or reason is not None) and not at_their_time:
        raise UsageError(f"{'--preview' if preview else '--reason'} is only for --at-their-time")
    if ratings and at_their_time:
        raise UsageError("--ratings imports no matches; leave out --at-their-time")
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
            late = service.late_matches(name, matches)
            effect: Effect | None = None
            problems: Sequence[RowProblem] = ()
            if late.mask.any() and at_their_time:
                inserted, matches = matches.take(late.mask), matches.take(~late.mask)
                correction, problems = service.insertion(
                    name, inserted, rated=not unrated, skip_bad=skip_bad, reason=reason
                )
                effect = carry_out(service, name, correction, preview, event_id)
            elif late.mask.any():
                note(_late_note(name, late))
            done = None if preview or not len(matches) else _import(service, name, matches, not unrated, skip_bad)
            _print(name, matches, done, effect, problems, preview, not unrated, json)


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


def _late_note(ladder: str, late: LateMatches) -> str:
    from evenmatch.times import iso_time

    count = int(late.mask.sum())
    ended = "1 match ended" if count == 1 else f"{count:,} matches ended"
    newest = "" if late.newest is None else f" ({iso_time(late.newest)})"
    return (
        f"{ended} before the newest match of ladder {ladder}{newest} and {'counts' if count == 1 else 'count'} as if "
        f"played after it; --at-their-time rates {'it' if count == 1 else 'them'} at the time played"
    )


def _print(
    ladder: str,
    matches: MatchTable,
    done: ImportResult | None,
    effect: Effect | None,
    refused: Sequence[RowProblem],
    preview: bool,
    rated: bool,
    json: bool,
) -> None:
    """Print what was imported at the end of the ladder, and what was inserted (None: nothing)."""
    left = (*refused, *(() if done is None else done.left_out))
    problems = (*matches.skipped, *left)
    note_skipped(problems)
    warnings = () if done is None else done.warnings
    for text in warnings:
        warn(text)
    left_out = len(matches_of(left))
    added, known = (0, 0) if done is None else (done.added, done.known)
    if json:
        document = {"ladder": ladder, "added": added, "there_already": known, "left_out": left_out}
        skipped = {"skipped_matches": matches.skipped_matches, **problems_document(problems)}
        inserted = {"preview": preview, "inserted": None if effect is None else as_document(effect)}
        print_json({**document, "rated": rated, **skipped, **inserted, "warnings": list(warnings)})
        return
    if effect is not None:
        print_effect(effect, preview)
    if preview:
        if len(matches):
            print(printable(f"{counted(len(matches), 'match', 'matches')} would be added after the newest match"))
        note(ONLY_SEEN)
        return
    parts = [f"{counted(added, 'match', 'matches')} added{'' if rated else ', unrated'}"] if done is not None else []
    if effect is not None and not effect.done:
        parts.append(effect.told)
    if known:
        parts.append(f"{known:,} there already")
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
    pass

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


def read_ratings(
    path: Path,
    called: str | None,
    ladder: str,
    from_ladder: str | None,
    rules: Rules,
    *,
    skip_bad: bool = False,
) -> tuple[dict[str, float], list[RowProblem]]:
    """The rating of each player, and the bad rows that `skip_bad` left out.

    called  the name of the file in messages, if not its path
    rules   the rules of the ladder; a rating that its system does not allow is a bad row
    Of several ladders in the file, one is chosen by input_files.ladder_within. Raises InputError for a file without the
    columns or rows, BadRowsError with all bad rows.
    """
    from evenmatch.tables.files import read_rows

    rows, source = read_rows(path, called)
    if source.broken and not rows.column_names:
        raise BadRowsError(source.name, source.broken, all_bad=True)
    if not {"player", "rating"} <= set(rows.column_names):
        columns = ", ".join(rows.column_names[:20])
        raise InputError(f"{source.name} has the columns {columns}; expected player and rating")
    numbers = _of_ladder(rows, source, ladder, from_ladder)
    chosen, problems = _read(rows, source, numbers, rules)
    problems = sorted([*source.broken, *problems], key=lambda problem: problem.line or 0)
    if problems and (not skip_bad or not chosen):
        raise BadRowsError(source.name, problems, all_bad=not chosen)
    if not chosen:
        raise InputError(f"{source.name} has no rows; expected one row per player")
    return chosen, problems


def _of_ladder(rows: pa.Table, source: Source, ladder: str, from_ladder: str | None) -> list[int]:
    """The numbers of the rows of the chosen ladder; all if the file has no column ladder."""
    names = [str(name) for name in rows["ladder"].to_pylist()] if "ladder" in rows.column_names else []
    if not names:
        return list(range(rows.num_rows))
    chosen = ladder_within(list(dict.fromkeys(names)), ladder, from_ladder, source.name)
    return [number for number, name in enumerate(names) if name == chosen]


def _read(
    rows: pa.Table, source: Source, numbers: list[int], rules: Rules
) -> tuple[dict[str, float], list[RowProblem]]:
    players, ratings = rows["player"].to_pylist(), rows["rating"].to_pylist()
    chosen: dict[str, float] = {}
    wrong: list[tuple[int, str]] = []
    for number in numbers:
        player, rating = players[number], _number(ratings[number])
        if player is None or str(player) == "":
            wrong.append((number, "player is empty; expected a name"))
        elif rating is None:
            wrong.append((number, f"rating of {player!r} is {ratings[number]!r}; expected a finite number"))
        elif str(player) in chosen:
            wrong.append((number, f"player {player!r} is listed twice; expected one row per player"))
        elif (reason := _refusal(rating, rules)) is not None:
            wrong.append((number, f"player {player!r}, {reason}"))
        else:
            chosen[str(player)] = rating
    lines = source.lines([number for number, _ in wrong]) if wrong else {}
    return chosen, [RowProblem(lines[number], None, reason, source.unit) for number, reason in wrong]


def _refusal(rating: float, rules: Rules) -> str | None:
    """The reason why the system does not allow a rating; None if it does."""
    try:
        rules.system.start_at(rating, rules.parameters)
    except InputError as error:
        return str(error)
    return None


def _number(value: object) -> float | None:
    """The value as a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
