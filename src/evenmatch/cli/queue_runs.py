"""What simulate-queue and replay-queue share: their table, their report, and how a run is said to be repeated."""

from __future__ import annotations

import math
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from evenmatch.cli.output import note, print_json, print_table, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.lab.queue_run import Run

HEADS = (
    *("name", "wait p50", "p95", "max", "spread p50", "p95", "45–55%", "true", "violations", "unmatched"),
    "players per CPU s",
)
COMPILING = "compiling the matchmaker, once"

Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write table, pictures and verdict as one .html file.")
]


def told_command(*more: str) -> str:
    """The command as it was typed, with what it did not say."""
    return shlex.join(["evenmatch", *sys.argv[1:], *more])


def check_files(report: Path | None, *others: Path | None) -> None:
    """Raise UsageError now, and not after a long run, where a file could not be written; `others` may not be it."""
    from evenmatch.tables.files import check_folder

    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"{report}: the report is a page; accepted is a name ending in .html")
        check_folder(report)
        import_module("evenmatch.lab.queue_report")  # says now what is not installed
        if report.resolve() in {path.resolve() for path in others if path is not None}:
            raise UsageError(f"{report}: is named twice; accepted are different files")


@contextmanager
def whole(path: Path | None) -> Iterator[TextIO | None]:
    """A text file that takes its place when all is written. Raises UsageError where it cannot be."""
    if path is None:
        yield None
        return
    draft: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        draft = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


@contextmanager
def watching(runs: int, ticks_each: float) -> Iterator[Callable[[int], Callable[[str, float], None]]]:
    """A progress bar over several runs, each so long; gives a function from a run's place to what it calls."""
    each = max(1, math.ceil(ticks_each))
    with working(COMPILING, runs * each) as progress:

        def of(at: int) -> Callable[[str, float], None]:
            return lambda name, share: progress(int((at + share) * each), printable(name))

        yield of


def tell(
    runs: Sequence[Run], title: str, *, report: Path | None, json: bool, command: str, notes: Sequence[str]
) -> None:
    """The runs as the options ask: one JSON list, or a table and a verdict; and a report."""
    from evenmatch.lab.queue_verdict import verdict

    if report is not None:
        from evenmatch.lab.queue_report import write_queue_report

        with working("writing the report"):
            write_queue_report(runs, report, title=title, command=command, notes=notes)
    if json:
        print_json([run.summary() for run in runs])
        return
    _print(runs, title)
    for sentence in (*notes, *verdict(runs)):
        print(printable(sentence))
    if report is not None:
        note(f"{report}: written")
    note(f"to repeat it: {command}")


def _print(runs: Sequence[Run], title: str) -> None:
    from evenmatch.lab.queue_verdict import percent

    rows = []
    for run in runs:
        found: dict[str, object] = run.summary()
        waits = [_rounded(found[f"wait_{name}"], 1) for name in ("p50", "p95", "max")]
        spreads = [_rounded(found[f"spread_{name}"], 1) for name in ("p50", "p95")]
        shares = [percent(_known(found[name])) for name in ("share_45_55", "realised_45_55")]
        counts = [f"{found[name]:,}" for name in ("violations", "unmatched")]
        speed = _rounded(found["players_per_cpu_second"], 0)
        rows.append([found["name"], *waits, *spreads, *shares, *counts, speed])
    print_table(f"{title} (waits in seconds, spreads in percentiles)", HEADS, rows, right=HEADS[1:])


def _rounded(value: object, digits: int) -> str | None:
    return None if value is None else f"{value:,.{digits}f}"


def _known(value: object) -> float | None:
    assert value is None or isinstance(value, float)
    return value
