"""What simulate-queue and replay-queue share: their table, their report, and how a run is said to be repeated."""

from __future__ import annotations

import math
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from evenmatch import __version__
from evenmatch.cli.output import note, print_json, print_table, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.lab.queue_run import Run

HEADS = (
    *("name", "wait p50", "p95", "max", "spread p50", "p95", "45–55%", "true", "violations", "unmatched"),
    "players per CPU s",
)
GAP = 3  # cells between the columns of a drawn table
COMPILING = "loading the matchmaker; the first time, it is compiled"

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
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
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
    runs: Sequence[Run],
    title: str,
    *,
    report: Path | None,
    json: bool,
    command: str,
    notes: Sequence[str],
    more: Mapping[str, object],
) -> None:
    """The runs as the options ask: one JSON list, the first run's figures with `more`, or table and verdict; report."""
    from evenmatch.lab.queue_verdict import verdict

    if report is not None:
        from evenmatch.lab.queue_report import write_queue_report

        with working("writing the report"):
            write_queue_report(runs, report, title=title, command=command, notes=notes)
    if json:
        first, *others = (run.summary() for run in runs)
        print_json([first | dict(more), *others])
        return
    _print(runs, title)
    for sentence in (*notes, *verdict(runs)):
        print(printable(sentence))
    if report is not None:
        note(f"{report}: written")
    note(f"to repeat it with evenmatch {__version__}: {command}")


def _print(runs: Sequence[Run], title: str) -> None:
    from evenmatch.lab.queue_facts import compared, habits
    from evenmatch.lab.queue_verdict import meanings, percent

    rows: list[list[object]] = []
    for run in runs:
        found: dict[str, object] = run.summary()
        waits = [_rounded(found[f"wait_{name}"], 1) for name in ("p50", "p95", "max")]
        spreads = [_rounded(found[f"spread_{name}"], 1) for name in ("p50", "p95")]
        shares = [percent(_known(found[name])) for name in ("share_45_55", "realised_45_55")]
        counts = [f"{found[name]:,}" for name in ("violations", "unmatched")]
        speed = _rounded(found["players_per_cpu_second"], 0)
        rows.append([found["name"], *waits, *spreads, *shares, *counts, speed])
    title = f"{title} (waits in seconds, spreads in percentiles)"
    for part in _parts(rows, get_terminal_size().columns if sys.stdout.isatty() else None):
        print_table(title, [HEADS[at] for at in part], [[row[at] for at in part] for row in rows], right=HEADS[1:])
        title = "The same"
    if runs[0].scenario is not None and (told := habits(runs[0].scenario)):
        print(printable("; ".join(f"{what}: {value}" for what, value in told) + "."))
    print(meanings(runs[0].policy.teams))
    for name, what in compared(runs):
        print(f"{name}: {what}")
    print()


def _parts(rows: Sequence[Sequence[object]], width: int | None) -> list[list[int]]:
    """The columns of each table: of one, or of several with the name in each where a terminal would break words."""
    sizes = [max(len(str(row[at])) for row in [HEADS, *rows]) + GAP for at in range(len(HEADS))]
    parts: list[list[int]] = [[0]]
    for at in range(1, len(HEADS)):
        if width is not None and len(parts[-1]) > 1 and sum(sizes[one] for one in [*parts[-1], at]) > width:
            parts.append([0])
        parts[-1].append(at)
    return parts


def _rounded(value: object, digits: int) -> str | None:
    return None if value is None else f"{value:,.{digits}f}"


def _known(value: object) -> float | None:
    assert value is None or isinstance(value, float)
    return value
