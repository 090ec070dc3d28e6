"""evenmatch backtest: compare how well rating systems predict recorded matches."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.files import check_outputs
from evenmatch.cli.shared.options import OnCluster, connected, on_all_nodes, option, workers_of
from evenmatch.cli.shared.output import compile_ahead, note, note_skipped, print_json, print_table, printable, working
from evenmatch.cli.shared.reading import NO_READING, Reading, reads_matches
from evenmatch.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.lab.backtests.backtest import Backtest
    from evenmatch.partitioned.stream import Selection
    from evenmatch.systems.system import Rules
    from evenmatch.tables import MatchTable

STEPS = 1000  # of the progress bar
CONTEXT_HEADS = ("matches", "log loss", "difference", "95% interval")
HEADS = ("system", "variant", "log loss", "95% interval", "Brier", "accuracy", "calibration", "seconds")


@reads_matches
def command(
    matches: options.History,
    systems: Annotated[str, option("--systems, -s NAMES", "Systems or .py files, separated by commas.")] = "all",
    param: Annotated[
        list[str] | None, option("--param S.K=V", "Also try a variant, such as elo.k=20; repeatable.")
    ] = None,
    warm_up: Annotated[
        float, option("--warmup SHARE", "Share of early matches that are not scored.", low=0, high=0.9)
    ] = 0.5,
    tune: Annotated[float, option("--tune SECONDS", "Time to tune all systems on the warm-up part.", low=0)] = 0,
    report: Annotated[Path | None, option("--report FILE", "Write a report as one .html file.")] = None,
    out: Annotated[Path | None, option("--out, -o FILE", "Write the scores: .csv, .parquet or .jsonl.")] = None,
    segments: Annotated[
        Path | None, option("--segments FILE", "Write scores by ladder, experience and period.")
    ] = None,
    players: Annotated[str, option("--players NAMES", "Players to chart in the report, separated by commas.")] = "",
    trials: Annotated[
        Path | None, option("--trials FOLDER", "Where to store trials. Default: your cache folder.")
    ] = None,
    ladder: options.Ladder = None,
    pool_ladders: options.PoolLadders = False,
    context: options.Context = None,
    skip_bad: options.SkipBad = False,
    reading: Reading = NO_READING,
    cluster: OnCluster = None,
    json: options.Json = False,
) -> None:
    """Show which rating system fits a game.

    Every match is predicted before it is learned from. All systems are scored on the same matches, those after the
    warm-up share. Each system is tried with its defaults, each preset and, with --tune, the best parameters found on
    the warm-up part. With --context, systems that read it are also scored without it, and with a ladder for each value,
    as in a game that cannot use context. To continue an interrupted tuning, run the same command again. With --cluster,
    each variant and each set of parameters is a separate task. With partitions, a task reads all files and may score
    several variants.

    Examples:
    evenmatch backtest season.parquet
    evenmatch backtest season.parquet --systems elo,glicko2,wager --tune 120 --report fit.html
    evenmatch backtest season.parquet --systems elo,wager --param elo.k=16 --out scores.csv
    evenmatch backtest season.parquet --systems even --context map,best_of
    """
    from evenmatch.lab.backtests.backtest import backtest

    by, reading = _systems(systems, param or []), reading.in_context(context)
    if players and report is None:
        raise UsageError("--players needs --report FILE.html, which shows them")
    if trials is not None and not tune:
        raise UsageError("--trials needs --tune SECONDS, whose trials it stores")
    check_outputs(out, segments, report=report, others=[Path(matches)])
    if report is not None:
        import_module("evenmatch.lab.backtests.report")  # raises before the long run if a library is missing
    from evenmatch.partitioned.stream import Selection
    from evenmatch.tables.partitions import is_partitioned

    if is_partitioned(matches):
        if tune or report is not None:
            raise UsageError(
                f"{'--tune' if tune else '--report'} needs all matches in memory; expected one file, "
                "such as a month of them"
            )
        selection = Selection(ladder, pool_ladders, skip_bad=skip_bad, form=reading.form_of_partitions(matches))
        result = _of_partitions(matches, by, warm_up, selection, cluster)
        _show(result, out, segments, None, as_json=json)
        return
    recorded = options.matches_of(Path(matches), ladder, pool_ladders, skip_bad, reading)
    chosen = _check_players(recorded, players)
    trials_folder = (trials if trials is not None else _cache() / "trials") if tune else None
    compile_ahead([name for name in by if isinstance(name, str)], "rating systems")
    try:
        with workers_of(cluster, _names(by)) as workers, working("backtest", STEPS) as progress:
            result = backtest(
                recorded,
                by,
                warm_up=warm_up,
                tune=tune,
                trials=trials_folder,
                progress=lambda what, share: progress(int(share * STEPS), what),
                workers=workers,
            )
    except KeyboardInterrupt:
        if trials_folder is not None:
            note(f"interrupted; finished trials are stored in {trials_folder}, the same command continues from there")
            raise typer.Exit(130) from None
        raise
    if report is not None:
        with working("writing the report"):
            from evenmatch.lab.backtests.report import write_report

            write_report(result, report, players=chosen, command=shlex.join(["evenmatch", *sys.argv[1:]]))
    _show(result, out, segments, report, as_json=json)


def _of_partitions(
    address: str, by: list[str | Rules], warm_up: float, selection: Selection, cluster: str | None
) -> Backtest:
    from evenmatch.cluster.backtests import backtest_on_cluster
    from evenmatch.lab.backtests.streamed import backtest_partitions
    from evenmatch.partitioned.stream import chosen_partitions
    from evenmatch.tables.partitions import find_partitions

    partitions = chosen_partitions(find_partitions(address), selection)
    compile_ahead([name for name in by if isinstance(name, str)], "rating systems")
    with ExitStack() as stack:
        judge = backtest_partitions
        if cluster is not None:
            judge = partial(backtest_on_cluster, stack.enter_context(connected(cluster, _names(by))))
        progress = stack.enter_context(working("backtest", STEPS))
        return judge(
            partitions,
            by,
            name=address,
            warm_up=warm_up,
            selection=selection,
            progress=lambda what, share: progress(int(share * STEPS), what),
        )


def _show(result: Backtest, out: Path | None, segments: Path | None, report: Path | None, *, as_json: bool) -> None:
    """Write the scores to the named files and print them."""
    from evenmatch.tables.files import write_arrow

    note_skipped(result.matches.skipped, result.matches.skipped_matches)
    if out is not None:
        write_arrow(result.scores, out)
    if segments is not None:
        write_arrow(result.segments, segments)
    if as_json:
        print_json(_document(result))
        return
    _print(result)
    for path in (out, segments, report):
        if path is not None:
            note(f"{path}: written")


def _systems(listed: str, params: list[str]) -> list[str | Rules]:
    """Return the systems of --systems, and a variant for each system named in --param."""
    from evenmatch import systems

    names = [name.strip() for name in listed.split(",") if name.strip()]
    names = [system for name in names for system in (systems.names() if name.lower() == "all" else [name])]
    files = {Path(name).stem: name for name in names if name.lower().endswith(".py")}
    by: list[str | Rules] = list(names)
    given: dict[str, list[str]] = {}
    for text in params:
        left, equals, value = text.partition("=")
        system, dot, name = left.rpartition(".")
        if not equals or not dot:
            raise UsageError(f"--param {text}: expected SYSTEM.NAME=VALUE, for example elo.k=20")
        system = files.get(system.strip(), system.strip())
        given.setdefault(system, []).append(f"{name}={value}")
    return by + [options.rules_of(system, None, values) for system, values in given.items()]


def _names(by: list[str | Rules]) -> list[str]:
    """Return the names of the systems; files are named by their whole path, which must be the same on all machines."""
    names = [item for item in by if isinstance(item, str)]
    return [on_all_nodes(name) for name in dict.fromkeys(names)]


def _print(result: Backtest) -> None:
    rows = [
        [
            row["system"],
            row["variant"],
            f"{row['log_loss']:.4f}",
            f"{row['log_loss_low']:.4f}–{row['log_loss_high']:.4f}",
            f"{row['brier']:.4f}",
            None if row["accuracy"] is None else f"{row['accuracy']:.1%}",
            row["calibration_slope"],
            f"{row['seconds']:.2g}",
        ]
        for row in result.scores.to_pylist()
    ]
    judged = len(result.matches) - result.warm_up
    title = f"{Path(_name(result)).name}: judged on {judged:,} matches, after {result.warm_up:,} of warm-up"
    print_table(title, HEADS, rows, right=HEADS[2:])
    from evenmatch.lab.backtests.verdict import verdict

    for sentence in verdict(result):
        print(printable(sentence))
    for system in dict.fromkeys(result.context["system"].to_pylist()):
        forms = [
            [row["matches"], f"{row['log_loss']:.4f}", *_difference(row)]
            for row in result.context.to_pylist()
            if row["system"] == system
        ]
        print()
        print_table(f"{system}: what the context is worth", CONTEXT_HEADS, forms, right=CONTEXT_HEADS[1:])


def _difference(row: Mapping[str, float]) -> tuple[str | None, str | None]:
    """The difference to the log loss with all columns and its interval; nothing for that row itself."""
    if row["difference"] == 0.0:
        return None, None
    return f"{row['difference']:+.4f}", f"{row['low']:+.4f} to {row['high']:+.4f}"


def _name(result: Backtest) -> str:
    from evenmatch.tables import MatchTable

    return result.matches.source.name if isinstance(result.matches, MatchTable) else result.matches.name


def _document(result: Backtest) -> dict[str, object]:
    from evenmatch.lab.backtests.verdict import verdict
    from evenmatch.tables import MatchTable

    recorded = result.matches
    scores = [{**row, "parameters": loads(row["parameters"])} for row in result.scores.to_pylist()]
    return {
        "source": _name(result),
        "matches": len(recorded),
        "warm_up": result.warm_up,
        "players": len(set(recorded.player_names)) if isinstance(recorded, MatchTable) else recorded.players,
        "skipped_matches": recorded.skipped_matches,
        "verdict": verdict(result),
        "scores": scores,
        "against_best": result.against_best.to_pylist(),
        "context": result.context.to_pylist(),
        "left_out": [{"name": name, "reason": reason} for name, reason in result.left_out],
    }


def _check_players(recorded: MatchTable, listed: str) -> list[str]:
    """The names of a comma-separated list. Raises UnknownNameError for a name that is not a player."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    for name in names:
        if name not in recorded.player_names:
            raise UnknownNameError("player", name, recorded.player_names)
    return names


def _cache() -> Path:
    """The cache folder of the user."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evenmatch"
