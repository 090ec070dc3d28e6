"""evenmatch rate: ratings and standings from a file of recorded matches or from partitioned Parquet."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.cluster_option import OnCluster, connected, no_cluster, on_all_nodes
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
    from evenmatch.partitioned import RatedLadders, StandingsOptions
    from evenmatch.partitioned.rating import RatedLadder
    from evenmatch.partitioned.stream import Selection
    from evenmatch.systems.system import Rules


def command(
    matches: options.History,
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
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write all ratings: .csv, .parquet or .jsonl; a folder or URL where MATCHES is one.",
        ),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(
            "--journal", metavar="FILE", help="Write every rating change with its factors, in the same formats."
        ),
    ] = None,
    skip_bad: options.SkipBad = False,
    time_format: options.TimeFormat = "seconds",
    cluster: OnCluster = None,
    json: options.Json = False,
) -> None:
    """Rate the players of recorded matches.

    Prints the top 20 of each ladder; --out writes all players, --journal every rating change.

    [bold]Examples[/bold]

    evenmatch rate season.csv --system wager

    evenmatch rate season.csv --system scorefactor --preset xonstat --out ratings.csv

    evenmatch rate season.parquet --system battlepoints --param k=40,32,24,16 --journal changes.parquet

    evenmatch rate s3://games/season --system even --out s3://games/ratings

    evenmatch rate s3://games/season --system elo --out s3://games/ratings --cluster 10.0.0.5:6379
    """
    by = options.rules_of(system, preset, param)
    now = options.moment(as_of)
    from evenmatch.cli.shared.divisions_file import read_divisions
    from evenmatch.standings.division import DIVISIONS
    from evenmatch.tables.partitions import is_partitioned

    table = DIVISIONS if divisions is None else read_divisions(divisions)
    if is_partitioned(matches):
        pass
        from evenmatch.partitioned import StandingsOptions
        from evenmatch.partitioned.stream import Selection

        selection = Selection(ladder, pool_ladders, now, skip_bad, time_format=time_format)
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
    _check_files(Path(matches), ratings_file, journal_file)
    read = options.matches_of(Path(matches), ladder, pool_ladders, skip_bad, time_format, now)
    recorded = rateable(read, by, skip_bad=skip_bad)
    compile_ahead([system], by.system.name)
    with working(f"rating with {by.system.name}", len(recorded)) as progress:
        ratings = rate(recorded, by, journal=journal is not None, progress=progress)
    with working("standings"):
        standings = ratings.standings(as_of=now, placement=placement, active_days=active_days, divisions=table)
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


def _check_files(matches: Path, out: Path | None, journal: Path | None) -> None:
    """Raise UsageError before the long run if a file cannot be written."""
    from evenmatch.tables.files import check_writable

    for path in (out, journal):
        if path is not None:
            check_writable(path)
    written = [path.resolve() for path in (out, journal, matches) if path is not None]
    if len(set(written)) < len(written):
        raise UsageError("--out, --journal and MATCHES name the same file; expected different ones")


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


def rate_address(
    address: str,
    by: Rules,
    out: str | None,
    journal: str | None,
    selection: Selection,
    standings: StandingsOptions,
    *,
    as_json: bool,
    cluster: tuple[str, str] | None = None,
) -> RatedLadders:
    """Rate the partitions at an address, write and note what `evenmatch rate` does; prints the document of --json.

    cluster  its address and the system of the rules, as `systems.find` takes it; None: in this process
    """
    from evenmatch.cluster.ladders import rate_ladders
    from evenmatch.partitioned import rate_partitions
    from evenmatch.tables.partitions import find_partitions

    check_places(address, {"--out": out, "--journal": journal})
    partitions = find_partitions(address)
    ladders = len({partition.ladder for partition in partitions})
    if by.system.ladder is not None and ladders > 1 and selection.ladder is None:
        note(f"{by.system.name}: ladders in folders of their own are rated each alone and learn nothing from others")
    compile_ahead([by.system.name], by.system.name)
    begin, total = time.monotonic(), sum(partition.size for partition in partitions)
    with ExitStack() as stack:
        rate = rate_partitions
        if cluster is not None:
            address_of, system = cluster
            rate = partial(rate_ladders, stack.enter_context(connected(address_of, [system])))
        progress = stack.enter_context(working(f"rating with {by.system.name}", 100))

        def report(read: int, matches: int) -> None:
            speed = matches / max(1e-9, time.monotonic() - begin)
            progress(
                100 * read // max(1, total),
                f"rating with {by.system.name}: {matches:,} matches, {speed:,.0f} a second, percent",
            )

        rated = rate(
            partitions, by, out=out, journal=journal, progress=report, selection=selection, standings=standings
        )
    if rated.later:
        note("matches later than --as-of are left out")
    note_skipped(rated.skipped, rated.skipped_matches)
    if as_json:
        print_json(_document(rated, by))
    for place, files in ((out, rated.ratings), (journal, rated.journal)):
        if place is not None:
            rows = sum(int(str(entry["rows"])) for entry in files)
            counted = f"{len(files):,} file{'' if len(files) == 1 else 's'}"
            (print if out is not None and not as_json else note)(f"{place}: {counted}, {rows:,} rows")
    return rated


def check_places(address: str, places: dict[str, str | None]) -> None:
    """Raise UsageError before the long run if results cannot be written to these folders."""
    from evenmatch.partitioned import Results
    from evenmatch.tables.files import FORMS

    given = {option: place.rstrip("/") for option, place in places.items() if place is not None}
    for option, place in given.items():
        if Path(place).suffix.lower() in FORMS:
            raise UsageError(f"{option} {place}: is a file; expected a folder or URL, as MATCHES is one")
        Results(place).check_new()
    named = [*given.values(), address.rstrip("/")]
    if len(set(named)) < len(named):
        raise UsageError(f"{', '.join(given)} and MATCHES name the same folder; expected different ones")


def _document(rated: RatedLadders, by: Rules) -> dict[str, object]:
    """The document of --json: the best of each ladder, since all are in the files of --out."""
    ladders = [
        {
            "ladder": ladder.name,
            "matches": ladder.matches,
            "players": ladder.players,
            "placed": ladder.placed,
            "top": [{**row, "last_played": str(row["last_played"])} for row in ladder.top],
        }
        for ladder in rated.ladders
    ]
    return {
        "system": by.system.name,
        "preset": by.preset,
        "parameters": by.values(),
        "matches": rated.matches,
        "players": rated.players,
        "skipped_matches": rated.skipped_matches,
        **problems_document(rated.skipped),
        "ladders": ladders,
        "ratings": list(rated.ratings),
        "journal": list(rated.journal),
    }
