"""evenmatch rate: ratings and standings from recorded matches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.output import (
    compile_ahead,
    note,
    note_skipped,
    print_json,
    print_table,
    problems_document,
    working,
)
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from evenmatch.rating import Ratings

TOP = 20


def command(
    matches: options.Matches,
    system: options.System,
    preset: options.Preset = None,
    param: options.Param = None,
    ladder: options.Ladder = None,
    pool_ladders: options.PoolLadders = False,
    as_of: options.AsOf = None,
    placement: Annotated[
        int, typer.Option("--placement", min=0, metavar="N", help="Matches to complete before a percentile is shown.")
    ] = 10,
    active_days: Annotated[
        float,
        typer.Option(
            "--active-days", min=0, metavar="N", help="Players who completed a match in the last N days are active."
        ),
    ] = 30,
    divisions: Annotated[
        Path | None, typer.Option("--divisions", metavar="FILE", help="A .csv with columns name, lowest (percentile).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write all ratings: .csv, .parquet or .jsonl.")
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal", metavar="FILE", help="Write every rating change with its factors, in the same formats."
        ),
    ] = None,
    skip_bad: options.SkipBad = False,
    json: options.Json = False,
) -> None:
    """Rate the players of recorded matches.

    Prints the top 20 of each ladder; --out writes all players, --journal every rating change.

    [bold]Examples[/bold]

    evenmatch rate season.csv --system wager

    evenmatch rate season.csv --system scorefactor --preset xonstat --out ratings.csv

    evenmatch rate season.parquet --system battlepoints --param k=40,32,24,16 --journal changes.parquet
    """
    by = options.rules_of(system, preset, param)
    now = options.moment(as_of)
    from evenmatch.cli.shared.divisions_file import read_divisions
    from evenmatch.rating import rate, rateable
    from evenmatch.standings.division import DIVISIONS
    from evenmatch.tables.files import check_writable, texts, write_arrow

    table = DIVISIONS if divisions is None else read_divisions(divisions)
    for path in (out, journal):
        if path is not None:
            check_writable(path)
    written = [path.resolve() for path in (out, journal, matches) if path is not None]
    if len(set(written)) < len(written):
        raise UsageError("--out, --journal and MATCHES name the same file; expected different ones")
    recorded = rateable(options.matches_of(matches, ladder, pool_ladders, now, skip_bad), by, skip_bad=skip_bad)
    compile_ahead([system], by.system.name)
    with working(f"rating with {by.system.name}", len(recorded)) as progress:
        ratings = rate(recorded, by, journal=journal is not None, progress=progress)
    with working("standings"):
        standings = ratings.standings(as_of=now, placement=placement, active_days=active_days, divisions=table)
        if out is not None:
            write_arrow(standings, out)
        if journal is not None:
            write_arrow(ratings.journal_table(), journal)
    skipped = recorded.skipped_matches
    note_skipped(recorded.skipped, skipped)
    if json:
        document = {
            "system": by.system.name,
            "preset": by.preset,
            "parameters": by.values(),
            "matches": len(recorded),
            "players": len(recorded.player),
            "skipped_matches": skipped,
            **problems_document(recorded.skipped),
            "standings": texts(standings).to_pylist(),
        }
        print_json(document)
    elif out is not None:
        for path, rows in ((out, standings.num_rows), (journal, len(recorded.history.columns.player))):
            if path is not None:
                print(f"{path}: {rows:,} rows")
    else:
        _print_top(ratings, standings, placement)
        if journal is not None:
            note(f"{journal}: {len(recorded.history.columns.player):,} rows")


def _print_top(ratings: Ratings, standings: pa.Table, placement: int) -> None:
    import pyarrow.compute as pc

    table = ratings.matches
    for number, ladder in sorted(enumerate(table.ladders), key=lambda pair: pair[1]):
        here = standings.filter(pc.equal(standings["ladder"], ladder))
        placed = here.filter(here["placed"])
        shown = placed if placed.num_rows else here
        rows: list[list[object]] = []
        rank = 0
        for position, row in enumerate(shown.slice(0, TOP).to_pylist(), 1):
            rank = position if position == 1 or row["rating"] != rows[-1][2] else rank
            rows.append([rank, row["player"], row["rating"], row["matches"], row["percentile"], row["division"]])
        played = int((table.ladder == number).sum())
        plural = "" if played == 1 else "es"
        title = f"{ladder}: {played:,} match{plural}, {here.num_rows:,} players, {placed.num_rows:,} placed"
        if not placed.num_rows:
            title += f" (no player has completed {placement} matches yet: all are shown)"
        elif placed.num_rows < here.num_rows:
            title += " (the others are not shown)"
        heads = ("rank", "player", "rating", "matches", "percentile", "division")
        print_table(title, heads, rows, right=("rank", "rating", "matches", "percentile"))
