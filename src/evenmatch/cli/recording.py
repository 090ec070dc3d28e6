"""evenmatch record and import: add matches and starting ratings to a ladder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.corrections import ONLY_SEEN, as_document, carry_out, print_effect
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, acting, counted, ladder_of, opened, typed
from evenmatch.cli.shared.files import FILES, FromLadder, adding, ladder_within, matches_in, one_ladder, received
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import (
    note,
    note_skipped,
    print_json,
    print_table,
    printable,
    problems_document,
    warn,
    working,
)
from evenmatch.cli.shared.reading import NO_READING, READING_FLAGS, Reading, reads_matches
from evenmatch.durations import DAY
from evenmatch.errors import BadRowsError, EvenmatchError, InputError, RowProblem, UsageError, matches_of

if TYPE_CHECKING:
    import pyarrow as pa

    from evenmatch.corrections.effect import Effect
    from evenmatch.errors import RowProblem
    from evenmatch.operations.service import Service
    from evenmatch.recording.imports import ImportResult, LateMatches
    from evenmatch.recording.receipts import MatchReceipt
    from evenmatch.systems.system import Rules
    from evenmatch.tables import MatchTable
    from evenmatch.tables.source import Source

Context = Annotated[
    str | None,
    option("--context NAMES", "Columns that say what a match was played on, or none; default: those of the ladder."),
]
AT_ONCE = 500  # matches in one call of record_many
SHOWN = 200  # rows of the table of receipts
LISTED = 50  # refused matches shown


@reads_matches
def record(
    file: Annotated[str, argument("FILE", f"Finished matches: {FILES}.")],
    ladder: OnLadder = None,
    from_ladder: FromLadder = None,
    unrated: Annotated[bool, option("--unrated", "Record the matches without changing ratings.")] = (False),
    context: Context = None,
    reading: Reading = NO_READING,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Record finished matches and print the rating changes of each.

    Each match is recorded separately. If some are refused, they are listed and the exit code is 1. (To add all matches
    of a file or none, use `import`.) A match that is already recorded changes nothing and returns its receipt again.

    If the file contains one ladder, its matches go to L whatever the file calls it. If it contains several, --from
    chooses one; the default is L.

    Examples:
    evenmatch record tonight.csv --ladder duel
    cat tonight.jsonl | evenmatch record - --ladder duel --json
    evenmatch record tonight.csv --ladder duel --from ranked-1v1
    """
    from evenmatch.recording.receipts import summary

    with opened(db) as service, received(file) as (path, called), adding():
        name = ladder_of(service, ladder)
        read = one_ladder(_matches(service, name, path, called, True, reading, context), name, from_ladder)
        before = service.ladder(name).position
        receipts: list[MatchReceipt] = []
        refused = [(problem.match_id, str(problem)) for problem in read.skipped]
        with working(f"recording on {name}", len(read)) as progress:
            for first in range(0, len(read), AT_ONCE):
                listed = list(read.take(slice(first, first + AT_ONCE)).to_matches(name))
                outcomes = service.record_many(name, listed, rated=not unrated)
                for match, outcome in zip(listed, outcomes, strict=True):
                    if isinstance(outcome, EvenmatchError):
                        refused.append((match.id, _reason(outcome)))
                    else:
                        receipts.append(outcome)
                progress(first + len(listed))
    known = sum(receipt.position <= before for receipt in receipts)
    odd = [receipt.other_sizes for receipt in receipts if receipt.position > before and receipt.other_sizes is not None]
    for text in summary(odd):
        warn(text)
    late = sum(receipt.position > before and receipt.counted_at is not None for receipt in receipts)
    if late:
        warn(
            f"{counted(late, 'match', 'matches')} ended before the newest match of the ladder and "
            f"{'counts' if late == 1 else 'count'} as if played after it; "
            "`evenmatch import --at-their-time` rates such matches at the time played"
        )
    if json:
        problems = [{"match_id": match_id, "reason": reason} for match_id, reason in refused]
        documents = [{"there_already": receipt.position <= before, **plain_receipt(receipt)} for receipt in receipts]
        print_json({"ladder": name, "receipts": documents, "refused": problems})
    else:
        _print_receipts(name, receipts, known)
    for _, reason in refused[:LISTED]:
        note(f"refused: {reason}")
    if len(refused) > LISTED:
        note(f"… and {len(refused) - LISTED:,} more refused (--json lists all)")
    if refused:
        raise typer.Exit(1)


def _matches(
    service: Service,
    ladder: str,
    path: Path,
    called: str | None,
    skip_bad: bool,
    reading: Reading,
    context: str | None,
) -> MatchTable:
    """Read the matches of a file with these context columns, or with those that the ladder declares."""
    declared = service.ladder(ladder).settings.context
    if context is None and declared:
        context = ",".join(declared)
        note(f"also reading the context columns of ladder {ladder}, {context}; --context none leaves them out")
    return matches_in(path, called, skip_bad, reading.in_context(None if context == "none" else context))


def _reason(error: EvenmatchError) -> str:
    return str(error.problems[0]) if isinstance(error, BadRowsError) else str(error)


def plain_receipt(receipt: MatchReceipt) -> dict[str, object]:
    """A receipt as JSON data."""
    return {
        "match_id": receipt.match_id,
        "position": receipt.position,
        "rated": receipt.rated,
        "warnings": receipt.warnings,
        "teams": [
            [{**line.change._asdict(), "percentile": line.percentile, "division": line.division} for line in team]
            for team in receipt.teams
        ],
    }


def _print_receipts(ladder: str, receipts: list[MatchReceipt], known: int) -> None:
    rows: list[list[object]] = []
    for receipt in receipts:
        if not receipt.rated:
            rows.append([receipt.match_id, "(not rated)", None, None, None, None, None])
        for line in (line for team in receipt.teams for line in team):
            change = line.change
            moved = f"{change.after - change.before:+.2f}"
            rows.append(
                [receipt.match_id, change.player, change.before, change.after, moved, line.percentile, line.division]
            )
    new = len(receipts) - known
    title = f"{ladder}: {counted(new, 'match', 'matches')} recorded" + (f", {known:,} there already" if known else "")
    if not rows:
        print(printable(title))
        return
    more = f" (the first {SHOWN} rows; --json prints all)" if len(rows) > SHOWN else ""
    heads = ("match", "player", "before", "after", "change", "percentile", "division")
    print_table(title + more, heads, rows[:SHOWN], right=heads[2:6])


@reads_matches
def import_(
    file: Annotated[str, argument("FILE", f"Recorded matches (or, with --ratings, ratings): {FILES}.")],
    ladder: OnLadder = None,
    from_ladder: FromLadder = None,
    ratings: Annotated[bool, option("--ratings", "FILE contains starting ratings, columns player and rating.")] = False,
    event_id: Annotated[str | None, option("--id ID", "Your id for this import; repeating it changes nothing.")] = None,
    unrated: Annotated[bool, option("--unrated", "Record the matches without changing ratings.")] = (False),
    skip_bad: options.SkipBad = False,
    at_their_time: Annotated[
        bool, option("--at-their-time", "Replay the ladder with late matches at their time.")
    ] = False,
    preview: Annotated[bool, option("--preview", "With --at-their-time: only show how ratings would change.")] = False,
    reason: Annotated[str | None, option("--reason TEXT", "With --at-their-time: stored in the ledger.")] = None,
    context: Context = None,
    reading: Reading = NO_READING,
    pool_ladders: Annotated[bool, option("--pool-ladders", "Import the matches of all ladders in the file.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Add recorded matches to a ladder: all matches of a file or, if one cannot be rated, none.

    Matches that are already on the ladder are skipped, so you can repeat an interrupted import. If the file contains
    one ladder, its matches go to L whatever the file calls it. If it contains several, --from chooses one; the default
    is L.

    A match that ended before the ladder's newest match counts as the newest. With --at-their-time, it counts at the
    time it was played and all later matches are rated again. This is a correction like `evenmatch void`, and --preview
    shows its effect.

    With --ratings, FILE contains starting ratings for players who have not played on this ladder, for example their
    ratings from another system. `evenmatch export --ratings` and `evenmatch rate --out` write such files.

    Examples:
    evenmatch import season.parquet --ladder duel
    evenmatch import season.csv --ladder duel --from ranked-1v1
    evenmatch import friendly.csv --ladder duel --unrated
    evenmatch import forgotten.csv --ladder duel --at-their-time --preview
    evenmatch import start.csv --ladder duel --ratings
    """
    if ratings and (unrated or pool_ladders or reading.is_given or context is not None):
        others = f"--unrated, --context, --pool-ladders and {READING_FLAGS}"
        raise UsageError(f"--ratings imports no matches; leave out {others}")
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
            read = _matches(service, name, path, called, skip_bad, reading, context)
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
            done = (
                None if preview or not len(matches) else _import_matches(service, name, matches, not unrated, skip_bad)
            )
            _print_import(name, matches, done, effect, problems, preview, not unrated, json)
            if not preview:
                _note_if_all_are_inactive(service, name, db)


def _import_matches(service: Service, ladder: str, matches: MatchTable, rated: bool, skip_bad: bool) -> ImportResult:
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


def _note_if_all_are_inactive(service: Service, ladder: str, db: str) -> None:
    """Say that the standings are empty because the last match is too old, and which setting lists the players."""
    from evenmatch.players.placement import why_nobody
    from evenmatch.standings.rules import CENTURY

    view = service.view(ladder)
    if view.snapshot.population or not view.snapshot.placed.any() or view.head.time is None:
        return
    days = 365 * (1 + (view.snapshot.as_of - view.head.time) // (365 * DAY))
    change = typed(db, "ladder change", "--active-days", days, names=[ladder])
    note(f"{why_nobody(view)}" + (f" To list them: {change}" if days <= CENTURY else ""))


def _print_import(
    ladder: str,
    matches: MatchTable,
    done: ImportResult | None,
    effect: Effect | None,
    refused: Sequence[RowProblem],
    preview: bool,
    rated: bool,
    json: bool,
) -> None:
    """Print the matches added after the newest one, and the effect of those inserted earlier."""
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
        if effect is None:
            note(ONLY_SEEN)
        return
    parts = [f"{counted(added, 'match', 'matches')} added{'' if rated else ', unrated'}"] if done is not None else []
    if effect is not None and not effect.done:
        parts.append(effect.told)
    if known:
        parts.append(f"{known:,} there already")
    if left_out:
        parts.append(f"{left_out:,} left out because they cannot be rated or have the id of a different match")
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
        result = f"nothing was added: id {event_id} already exists with the same ratings"
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
    If the file has several ladders, files.ladder_within chooses one. Raises InputError for missing columns or rows,
    BadRowsError with all bad rows.
    """
    from evenmatch.tables.files import read_rows

    rows, source = read_rows(path, called)
    if source.broken and not rows.column_names:
        raise BadRowsError(source.name, source.broken, all_bad=True)
    if not {"player", "rating"} <= set(rows.column_names):
        columns = ", ".join(rows.column_names[:20])
        raise InputError(f"{source.name} has the columns {columns}; expected player and rating")
    numbers = _of_ladder(rows, source, ladder, from_ladder)
    chosen, problems = _checked_ratings(rows, source, numbers, rules)
    problems = sorted([*source.broken, *problems], key=lambda problem: problem.line or 0)
    if problems and (not skip_bad or not chosen):
        raise BadRowsError(source.name, problems, all_bad=not chosen)
    if not chosen:
        raise InputError(f"{source.name} has no rows; expected one row per player")
    return chosen, problems


def _of_ladder(rows: pa.Table, source: Source, ladder: str, from_ladder: str | None) -> list[int]:
    """Return the row numbers of the chosen ladder, or all rows if the file has no column ladder."""
    names = [str(name) for name in rows["ladder"].to_pylist()] if "ladder" in rows.column_names else []
    if not names:
        return list(range(rows.num_rows))
    chosen = ladder_within(list(dict.fromkeys(names)), ladder, from_ladder, source.name)
    return [number for number, name in enumerate(names) if name == chosen]


def _checked_ratings(
    rows: pa.Table, source: Source, numbers: list[int], rules: Rules
) -> tuple[dict[str, float], list[RowProblem]]:
    players, ratings = rows["player"].to_pylist(), rows["rating"].to_pylist()
    chosen: dict[str, float] = {}
    wrong: list[tuple[int, str]] = []
    for number in numbers:
        player, rating = players[number], _finite(ratings[number])
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
    """Return why the system refuses a rating, or None if it accepts it."""
    try:
        rules.system.start_at(rating, rules.parameters)
    except InputError as error:
        return str(error)
    return None


def _finite(value: object) -> float | None:
    """The value as a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
