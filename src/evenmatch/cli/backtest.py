"""evenmatch backtest: which rating system predicts a game's recorded matches best."""

from __future__ import annotations

import os
import shlex
import sys
from importlib import import_module
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.output import compile_ahead, note, note_skipped, print_json, print_table, printable, working
from evenmatch.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.lab.backtest import Backtest
    from evenmatch.systems.system import Rules
    from evenmatch.tables import MatchTable

STEPS = 1000  # of the progress bar
HEADS = ("system", "variant", "log loss", "95% interval", "Brier", "accuracy", "calibration", "seconds")


def command(
    matches: options.Matches,
    systems: Annotated[
        str, typer.Option("--systems", "-s", metavar="NAMES", help="Systems or .py files, separated by commas; or all.")
    ] = "all",
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="S.K=V", help="A parameter of a system to try too, as elo.k=20; repeatable."),
    ] = None,
    warm_up: Annotated[
        float, typer.Option("--warmup", min=0, max=0.9, metavar="SHARE", help="Matches learned from but not judged.")
    ] = 0.5,
    tune: Annotated[
        float,
        typer.Option("--tune", min=0, metavar="SECONDS", help="Tune all systems, on the warm-up part, so long in all."),
    ] = 0,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the findings as one .html file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the scores: .csv, .parquet or .jsonl.")
    ] = None,
    segments: Annotated[
        Path | None,
        typer.Option("--segments", metavar="FILE", help="Write them by ladder, experience and period, likewise."),
    ] = None,
    players: Annotated[
        str, typer.Option("--players", metavar="NAMES", help="Whose rating paths the report shows, by commas.")
    ] = "",
    trials: Annotated[
        Path | None,
        typer.Option("--trials", metavar="FOLDER", help="Where tuning keeps its trials; by default the user's cache."),
    ] = None,
    ladder: options.Ladder = None,
    pool_ladders: options.PoolLadders = False,
    skip_bad: options.SkipBad = False,
    json: options.Json = False,
) -> None:
    """Show which rating system fits a game.

    Every match is predicted before it is learned from; all systems are judged on the same matches, those after the
    warm-up share. Each is tried with its defaults, each preset and, with --tune, the best parameters found on the
    warm-up part. A tuning run that was interrupted goes on where it was when it is started again.

    [bold]Examples[/bold]

    evenmatch backtest season.parquet

    evenmatch backtest season.parquet --systems elo,glicko2,wager --tune 120 --report fit.html

    evenmatch backtest season.parquet --systems elo,wager --param elo.k=16 --out scores.csv
    """
    from evenmatch.lab.backtest import backtest
    from evenmatch.tables.files import write_arrow

    by = _systems(systems, param or [])
    if players and report is None:
        raise UsageError("--players are shown in the report; accepted is to give --report FILE.html too")
    if trials is not None and not tune:
        raise UsageError("--trials is where tuning keeps what it tries; accepted is to give --tune SECONDS too")
    _check_files(matches, out, segments, report)
    recorded = options.matches_of(matches, ladder, pool_ladders, None, skip_bad)
    chosen = _check_players(recorded, players)
    kept = (trials if trials is not None else _cache() / "trials") if tune else None
    compile_ahead([name for name in by if isinstance(name, str)], "rating systems")
    try:
        with working("backtest", STEPS) as progress:
            found = backtest(
                recorded,
                by,
                warm_up=warm_up,
                tune=tune,
                trials=kept,
                progress=lambda what, share: progress(int(share * STEPS), what),
            )
    except KeyboardInterrupt:
        if kept is not None:
            note(f"interrupted; the trials that ended are kept in {kept}, and the same command goes on from there")
            raise typer.Exit(130) from None
        raise
    note_skipped(recorded.skipped, recorded.skipped_matches)
    for text in found.notes:
        note(text)
    if out is not None:
        write_arrow(found.scores, out)
    if segments is not None:
        write_arrow(found.segments, segments)
    if report is not None:
        with working("writing the report"):
            found.report(report, players=chosen, command=shlex.join(["evenmatch", *sys.argv[1:]]))
    if json:
        print_json(_document(found, recorded))
        return
    _print(found)
    for path in (out, segments, report):
        if path is not None:
            note(f"{path}: written")


def _systems(told: str, params: list[str]) -> list[str | Rules]:
    """The systems of --systems, and those of --param with their parameters."""
    from evenmatch import systems

    names = [name.strip() for name in told.split(",") if name.strip()]
    names = [one for name in names for one in (systems.names() if name.lower() == "all" else [name])]
    files = {Path(name).stem: name for name in names if name.lower().endswith(".py")}
    by: list[str | Rules] = list(names)
    given: dict[str, list[str]] = {}
    for text in params:
        left, equals, value = text.partition("=")
        system, dot, name = left.rpartition(".")
        if not equals or not dot:
            raise UsageError(f"--param {text}: accepted is SYSTEM.NAME=VALUE, for instance elo.k=20")
        system = files.get(system.strip(), system.strip())
        given.setdefault(system, []).append(f"{name}={value}")
    return by + [options.rules_of(system, None, values) for system, values in given.items()]


def _print(found: Backtest) -> None:
    """The scores and the verdict."""
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
        for row in found.scores.to_pylist()
    ]
    judged = len(found.matches) - found.warm_up
    title = f"{Path(found.matches.source.name).name}: judged on {judged:,} matches, after {found.warm_up:,} of warm-up"
    print_table(title, HEADS, rows, right=HEADS[2:])
    for sentence in found.verdict:
        print(printable(sentence))


def _document(found: Backtest, recorded: MatchTable) -> dict[str, object]:
    """What --json prints."""
    scores = [{**row, "parameters": loads(row["parameters"])} for row in found.scores.to_pylist()]
    return {
        "source": recorded.source.name,
        "matches": len(recorded),
        "warm_up": found.warm_up,
        "players": len(set(recorded.player_names)),
        "skipped_matches": recorded.skipped_matches,
        "verdict": found.verdict,
        "scores": scores,
        "against_best": found.against_best.to_pylist(),
        "left_out": [{"name": name, "reason": reason} for name, reason in found.left_out],
        "notes": list(found.notes),
    }


def _check_files(matches: Path, out: Path | None, segments: Path | None, report: Path | None) -> None:
    """Raise UsageError now, and not after a long run, where a file could not be written."""
    from evenmatch.tables.files import check_folder, check_writable

    for path in (out, segments):
        if path is not None:
            check_writable(path)
    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"{report}: the report is a page; accepted is a name ending in .html")
        check_folder(report)
        import_module("evenmatch.lab.report")  # says now, and not after a long run, what is not installed
    written = [path.resolve() for path in (out, segments, report, matches) if path is not None]
    if len(set(written)) < len(written):
        raise UsageError("--out, --segments, --report and MATCHES name the same file; accepted are different ones")


def _check_players(recorded: MatchTable, told: str) -> list[str]:
    """The names in a list by commas, which must be players. Raises UnknownNameError."""
    names = [name.strip() for name in told.split(",") if name.strip()]
    for name in names:
        if name not in recorded.player_names:
            raise UnknownNameError("player", name, recorded.player_names)
    return names


def _cache() -> Path:
    """The user's folder for what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evenmatch"
