"""evenmatch learned: the numbers that a rating system has learned of a ladder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, ladder_of, opened
from evenmatch.cli.shared.output import compile_ahead, note, note_skipped, print_json, print_table, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.lab.ladder.learning import LearnedAt
    from evenmatch.systems.system import Rules
    from evenmatch.tables import MatchTable


def command(
    matches: Annotated[
        Path | None,
        typer.Argument(metavar="MATCHES", help="A file of recorded matches; if omitted, those of a ladder."),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option("--system", "-s", metavar="NAME", help="With MATCHES: a system that learns; if omitted: even."),
    ] = None,
    preset: options.Preset = None,
    param: options.Param = None,
    pool_ladders: options.PoolLadders = False,
    skip_bad: options.SkipBad = False,
    time_format: options.TimeFormat = "seconds",
    ladder: OnLadder = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show what a rating system has learned of a ladder, in points of the rating, over the time of its matches.

    What the first side is worth, one player more, a doubling of matches played, where newcomers come in, how much
    margins say, and which of the system's experts lead. The numbers are shown after each quarter of the matches.

    [bold]Examples[/bold]

    evenmatch learned season.csv

    evenmatch learned --ladder arena
    """
    if matches is None:
        if system or preset or param or pool_ladders or skip_bad or time_format != "seconds":
            raise UsageError(
                "--system, --preset, --param, --pool-ladders, --skip-bad and --time-format apply to a file; "
                "name MATCHES"
            )
        from evenmatch.corrections.ladder_history import read_history

        with opened(db) as service, working("reading the ladder"):
            history = read_history(service.database, ladder_of(service, ladder))
        recorded, by = history.matches, history.rules
        for text in history.notes:
            note(text)
    else:
        by = options.rules_of(system or "even", preset, param)
        recorded = options.matches_of(matches, ladder, pool_ladders, skip_bad, time_format)
        note_skipped(recorded.skipped, recorded.skipped_matches)
    moments = _learn(recorded, by)
    if json:
        print_json([_as_data(moment) for moment in moments])
    else:
        _print(moments, by)


def _learn(recorded: MatchTable, by: Rules) -> list[LearnedAt]:
    from evenmatch.lab.ladder.learning import learned_over_time

    if len(recorded.ladders) > 1:
        listed = ", ".join(sorted(recorded.ladders))
        raise UsageError(f"the file has the ladders {listed}; name one with --ladder, or use all by --pool-ladders")
    compile_ahead([by.system.name], by.system.name)
    with working(f"rating with {by.system.name}", len(recorded)) as progress:
        return learned_over_time(recorded, by, progress)


def _print(moments: list[LearnedAt], by: Rules) -> None:
    from evenmatch.lab.ladder.learning import shown_number

    heads = ["", *(f"after {moment.matches:,}" for moment in moments)]
    rows = [
        [numbers[-1].meaning, *(shown_number(number) for number in numbers)]
        for numbers in zip(*(moment.numbers for moment in moments), strict=True)
    ]
    print_table(f"Learned by {by.system.name}, in points and shares (95 % interval)", heads, rows, right=heads[1:])


def _as_data(moment: LearnedAt) -> dict[str, object]:
    from math import isnan

    from evenmatch.times import iso_time

    numbers = [
        number._asdict() | {bound: None for bound in ("low", "high") if isnan(getattr(number, bound))}
        for number in moment.numbers
    ]
    return {"matches": moment.matches, "time": iso_time(moment.time), "learned": numbers}
