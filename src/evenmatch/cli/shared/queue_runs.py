"""Shared output of simulate-queue and replay-queue: table, report, and the command that repeats a run."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from evenmatch import __version__
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working
from evenmatch.errors import UsageError
from evenmatch.whole_file import whole_file

if TYPE_CHECKING:
    from evenmatch.lab.queue.runs import Run

HEADS = (
    *("name", "wait p50", "p95", "max", "spread p50", "p95", "45–55%", "true", "law", "violations", "unmatched"),
    "players per CPU s",
)
GAP = 3  # terminal cells between the columns of a table
COMPILING = "loading the matchmaker; the first time, it is compiled"

Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write table, charts and verdict as one .html file.")
]


def repeat_command(*more: str) -> str:
    """The command as it was typed, followed by `more` arguments."""
    return shlex.join(["evenmatch", *sys.argv[1:], *more])


def check_files(report: Path | None, *others: Path | None) -> None:
    """Raise UsageError before the long run if the report cannot be written, or is one of `others`."""
    from evenmatch.tables.files import check_folder

    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"{report}: the report is a web page; expected a name ending in .html")
        check_folder(report)
        import_module("evenmatch.lab.queue.report")  # raises now if a library is missing
        if report.resolve() in {path.resolve() for path in others if path is not None}:
            raise UsageError(f"{report}: is named twice; expected different files")


@contextmanager
def whole(path: Path | None) -> Iterator[TextIO | None]:
    """A text file that replaces `path` when the block ends without error. Raises UsageError if it cannot be written."""
    if path is None:
        yield None
        return
    with whole_file(path) as draft, draft.open("w", encoding="utf-8") as file:
        yield file


@contextmanager
def watching(runs: int, ticks_each: float) -> Iterator[Callable[[int], Callable[[str, float], None]]]:
    """A progress bar over several runs of equal length; yields a function from a run's index to its callback."""
    each = max(1, math.ceil(ticks_each))
    with working(COMPILING, runs * each) as progress:

        def callback(index: int) -> Callable[[str, float], None]:
            return lambda name, share: progress(int((index + share) * each), printable(name))

        yield callback


def tell(
    runs: Sequence[Run],
    title: str,
    *,
    report: Path | None,
    json: bool,
    command: str,
    notes: Sequence[str],
    more: Mapping[str, object],
) -> None:
    """Print the runs as one JSON list (the first one with `more`) or as table and verdict; write the report."""
    from evenmatch.lab.queue.verdict import verdict

    if report is not None:
        from evenmatch.lab.queue.report import write_queue_report

        with working("writing the report"):
            write_queue_report(runs, report, title=title, command=command, notes=notes)
    if json:
        from evenmatch.lab.queue.run_metrics import summary_of

        first, *others = (summary_of(run) for run in runs)
        print_json([first | dict(more), *others])
        return
    _print(runs, title)
    for sentence in (*notes, *verdict(runs)):
        print(printable(sentence))
    if report is not None:
        note(f"{report}: written")
    note(f"to repeat it with evenmatch {__version__}: {command}")


def _print(runs: Sequence[Run], title: str) -> None:
    from evenmatch.lab.queue.run_metrics import summary_of
    from evenmatch.lab.queue.verdict import habits, meanings, percent

    rows: list[list[object]] = []
    for run in runs:
        summary: dict[str, object] = summary_of(run)
        waits = [_rounded(summary[f"wait_{name}"], 1) for name in ("p50", "p95", "max")]
        spreads = [_rounded(summary[f"spread_{name}"], 1) for name in ("p50", "p95")]
        shares = [percent(_known(summary[name])) for name in ("share_45_55", "realised_45_55")]
        law = _rounded(summary["law"], 1)
        counts = [f"{summary[name]:,}" for name in ("violations", "unmatched")]
        speed = _rounded(summary["players_per_cpu_second"], 0)
        rows.append([summary["name"], *waits, *spreads, *shares, law, *counts, speed])
    title = f"{title} (waits in seconds, spreads in percentiles)"
    for part in _parts(rows, get_terminal_size().columns if sys.stdout.isatty() else None):
        print_table(
            title,
            [HEADS[column] for column in part],
            [[row[column] for column in part] for row in rows],
            right=HEADS[1:],
        )
        title = "The same, continued"
    if runs[0].scenario is not None and (scenario_facts := habits(runs[0].scenario)):
        print(printable("; ".join(f"{what}: {value}" for what, value in scenario_facts) + "."))
    print(meanings(runs[0].policy.teams))
    print()


def _parts(rows: Sequence[Sequence[object]], width: int | None) -> list[list[int]]:
    """The columns of each table: one table, or several with the name column if one would exceed `width`."""
    sizes = [max(len(str(row[column])) for row in [HEADS, *rows]) + GAP for column in range(len(HEADS))]
    parts: list[list[int]] = [[0]]
    for column in range(1, len(HEADS)):
        if width is not None and len(parts[-1]) > 1 and sum(sizes[index] for index in [*parts[-1], column]) > width:
            parts.append([0])
        parts[-1].append(column)
    return parts


def _rounded(value: object, digits: int) -> str | None:
    return None if value is None else f"{value:,.{digits}f}"


def _known(value: object) -> float | None:
    assert value is None or isinstance(value, float)
    return value
