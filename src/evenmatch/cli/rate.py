"""evenmatch rate: ratings and standings from recorded matches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.options import OnCluster, no_cluster, on_all_nodes, option
from evenmatch.cli.shared.output import (
    note,
    note_skipped,
    print_json,
    print_table,
    problems_document,
    working,
)
from evenmatch.cli.shared.reading import NO_READING, Reading, reads_matches
from evenmatch.times import as_datetime

if TYPE_CHECKING:
    from evenmatch.partitioned.rating import RatedLadder


@reads_matches
def command(
    matches: options.History,
    system: options.System,
    preset: options.Preset = None,
    param: options.Param = None,
    ladder: options.Ladder = None,
    pool_ladders: options.PoolLadders = False,
    context: options.Context = None,
    as_of: options.AsOf = None,
    placement: Annotated[int, option("--placement N", "Matches to complete before a percentile is shown.", low=0)] = 10,
    active_days: Annotated[
        float, option("--active-days N", "Days that players stay active after a match.", low=0)
    ] = 30,
    divisions: Annotated[Path | None, option("--divisions FILE", "A .csv file with columns name and lowest.")] = None,
    out: Annotated[str | None, option("--out, -o FILE", "Write all ratings as .csv, .parquet or .jsonl.")] = None,
    journal: Annotated[str | None, option("--journal FILE", "Write every rating change with its factors.")] = None,
    skip_bad: options.SkipBad = False,
    reading: Reading = NO_READING,
    cluster: OnCluster = None,
    json: options.Json = False,
) -> None:
    """Rate the players of recorded matches.

    Prints the top 20 of each ladder; --out writes all players, --journal every rating change.

    Examples:
    evenmatch rate season.csv --system wager
    evenmatch rate season.csv --system scorefactor --preset xonstat --out ratings.csv
    evenmatch rate season.parquet --system battlepoints --param k=40,32,24,16 --journal changes.parquet
    evenmatch rate s3://games/season --system even --out s3://games/ratings
    evenmatch rate s3://games/season --system elo --out s3://games/ratings --cluster 10.0.0.5:6379
    """
    by = options.rules_of(system, preset, param)
    now, reading = options.moment(as_of), reading.in_context(context)
    from evenmatch.cli.shared.files import check_outputs, read_divisions
    from evenmatch.standings.division import DIVISIONS
    from evenmatch.tables.partitions import is_partitioned

    table = DIVISIONS if divisions is None else read_divisions(divisions)
    if is_partitioned(matches):
        from evenmatch.cli.shared.partitioned_rating import rate_address
        from evenmatch.partitioned import StandingsOptions
        from evenmatch.partitioned.stream import Selection

        selection = Selection(ladder, pool_ladders, now, skip_bad, form=reading.form_of_partitions(matches))
        rated = rate_address(
            matches,
            by,
            out,
            journal,
            selection,
            StandingsOptions(placement, active_days, table),
            as_json=json,
            cluster=None if cluster is None else (cluster, on_all_nodes(system)),
        )
        if not json and out is None:
            print_ladders(rated.ladders, placement)
        return
    no_cluster(cluster, matches)
    from evenmatch.partitioned.rating import summaries
    from evenmatch.rating import rate, rateable
    from evenmatch.tables.files import texts, write_arrow

    ratings_file, journal_file = (None if name is None else Path(name) for name in (out, journal))
    check_outputs(ratings_file, journal_file, others=[Path(matches)])
    read = options.matches_of(Path(matches), ladder, pool_ladders, skip_bad, reading, now)
    recorded = rateable(read, by, skip_bad=skip_bad)
    with working(f"rating with {by.system.name}", len(recorded)) as progress:
        ratings = rate(recorded, by, journal=journal is not None, progress=progress)
    at = None if now is None else as_datetime(now)
    with working("standings"):
        standings = ratings.standings(as_of=at, placement=placement, active_days=active_days, divisions=table)
        if ratings_file is not None:
            write_arrow(standings, ratings_file)
        if journal_file is not None:
            write_arrow(ratings.journal_table(), journal_file)
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
    elif ratings_file is not None:
        for path, rows in ((ratings_file, standings.num_rows), (journal_file, len(recorded.history.columns.player))):
            if path is not None:
                print(f"{path}: {rows:,} rows")
    else:
        played = {name: int((recorded.ladder == code).sum()) for code, name in enumerate(recorded.ladders)}
        print_ladders(summaries(standings, played), placement)
        if journal_file is not None:
            note(f"{journal_file}: {len(recorded.history.columns.player):,} rows")


def print_ladders(ladders: Iterable[RatedLadder], placement: int) -> None:
    """Print the best players of each ladder."""
    for ladder in ladders:
        rows: list[list[object]] = []
        rank = 0
        for position, row in enumerate(ladder.top, 1):
            rank = position if position == 1 or row["rating"] != rows[-1][2] else rank
            rows.append([rank, row["player"], row["rating"], row["matches"], row["percentile"], row["division"]])
        plural = "" if ladder.matches == 1 else "es"
        title = f"{ladder.name}: {ladder.matches:,} match{plural}, {ladder.players:,} players, {ladder.placed:,} placed"
        if not ladder.placed:
            title += f" (no player has completed {placement} matches yet: all are shown)"
        elif ladder.placed < ladder.players:
            title += " (the others are not shown)"
        heads = ("rank", "player", "rating", "matches", "percentile", "division")
        print_table(title, heads, rows, right=("rank", "rating", "matches", "percentile"))
