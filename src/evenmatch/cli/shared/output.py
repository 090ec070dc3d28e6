"""Output of the commands: results to standard output; notes, errors and progress to standard error."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from math import isnan
from typing import Any, get_args, get_type_hints

from evenmatch.errors import EXAMPLES_PER_GROUP, EvenmatchError, RowProblem, group_problems, matches_of, problem_lines
from evenmatch.times import MICROSECONDS, iso_time

PATIENCE = 1.0  # seconds before a progress bar appears
FIRST_LINE, NEXT_LINE = 10.0, 30.0  # seconds between lines of progress if there is no terminal


def fail(error: EvenmatchError) -> None:
    """Print an error. The caller prints the bad rows of a BadRowsError."""
    _say("error", str(error), "bold red")


def warn(text: str) -> None:
    """Print a warning."""
    _say("warning", text, "bold yellow")


def note(text: str) -> None:
    """Print a note."""
    print(printable(text.rstrip()), file=sys.stderr)


def beyond(page: int, rows: int, size: int) -> str:
    """The reason why a page is empty."""
    if not rows:
        return "there are no players to show"
    pages = -(-rows // size)
    return f"page {page:,} is beyond the end: there {'is 1 page' if pages == 1 else f'are {pages:,} pages'} of {size:,}"


def note_skipped(problems: Sequence[RowProblem], matches: int | None = None) -> None:
    """Print which matches --skip-bad left out, and why. matches: their number, needed if some have no id."""
    if problems:
        count = len(matches_of(problems)) if matches is None else matches
        listed = f"{len(problems):,} problem{'s' if len(problems) > 1 else ''}"
        note(f"{count:,} bad match{'es' if count != 1 else ''} skipped ({listed})")
        for line in problem_lines(problems):
            note(line)


def problems_document(problems: Sequence[RowProblem]) -> dict[str, object]:
    """Problems as JSON data: the ids of all bad matches, and the problems grouped by column and reason."""
    groups = [
        {
            "reason": group.reason,
            "count": len(group.problems),
            "matches": group.matches,
            "examples": list(map(str, group.problems[:EXAMPLES_PER_GROUP])),
        }
        for group in group_problems(problems)
    ]
    return {"bad_matches": matches_of(problems), "problems": groups}


def as_data(value: object) -> Any:  # noqa: ANN401 - what JSON can hold
    """A value as JSON data: records become objects, their times ISO 8601, and NaN becomes null."""
    if isinstance(value, float):
        return None if isnan(value) else value
    if isinstance(value, Mapping):
        return {name: as_data(inner) for name, inner in value.items()}
    if hasattr(value, "to_data"):  # a policy, the rules of a queue, the design of an experiment
        return as_data(value.to_data())
    if is_dataclass(value) or hasattr(value, "_fields"):
        record: Any = type(value)
        data = {name: as_data(getattr(value, name)) for name in _fields_of(record)}
        return data | {name: iso_time(data[name]) for name in _times_of(record) if data[name] is not None}
    return [as_data(inner) for inner in value] if isinstance(value, list | tuple) else value


@cache
def _fields_of(record: Any) -> list[str]:  # noqa: ANN401 - the type of a dataclass or a named tuple
    return [field.name for field in fields(record)] if is_dataclass(record) else list(record._fields)


@cache
def _times_of(record: Any) -> list[str]:  # noqa: ANN401
    """Return the names of the fields that are declared as times."""
    hints = get_type_hints(record, include_extras=True)
    return [
        name
        for name, hint in hints.items()
        if any(MICROSECONDS in getattr(part, "__metadata__", ()) for part in (hint, *get_args(hint)))
    ]


def print_json(document: object) -> None:
    """Print the JSON document of a command; see `as_data`."""
    is_ascii = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    json.dump(as_data(document), sys.stdout, ensure_ascii=is_ascii, indent=2, allow_nan=False)
    print()


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[str] = ()) -> None:
    """Print a table: styled on a terminal, aligned plain text in a pipe. right: the columns aligned to the right."""
    title = printable(title)
    cells = [[_cell(value) for value in row] for row in rows]
    if sys.stdout.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for head in heads:
            table.add_column(head, justify="right" if head in right else "left", overflow="fold")
        for row in cells:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    print(title)
    widths = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)]
    for row in [list(heads), *cells]:
        padded = []
        for head, text, width in zip(heads, row, widths, strict=True):
            blank = " " * (width - _width(text))
            padded.append(blank + text if head in right else text + blank)
        print("  ".join(padded).rstrip())
    print()


def _width(text: str) -> int:
    """The width of a text in terminal cells: wide characters and emoji take two, combining ones none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2f}"
    return printable(str(value))


def printable(text: str) -> str:
    """Untrusted text with control characters replaced, which could move the cursor or change the screen."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _say(word: str, text: str, style: str) -> None:
    text = printable(text)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        Console(stderr=True, soft_wrap=True).print(Text.assemble((f"{word}: ", style), text))
    else:
        print(f"{word}: {text}", file=sys.stderr)


@contextmanager
def working(what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show progress on standard error while the block runs, if it takes long enough.

    On a terminal: a bar, after 1 s. Elsewhere: a line after 10 s, and then every 30 s.
    Yields a function to call with the completed part of `total` and, optionally, a new description.
    """
    with _bar(what, total) if sys.stderr.isatty() else _lines(what, total) as progress:
        yield progress


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Callable[..., None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    counted = [MofNCompleteColumn()] if total else []
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *counted,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(what, total=total)
    begin = threading.Timer(PATIENCE, progress.start)
    begin.daemon = True
    begin.start()
    try:
        yield lambda done, now=None: progress.update(task, completed=done, description=now)
    finally:
        begin.cancel()
        progress.stop()


@contextmanager
def _lines(what: str, total: int | None) -> Iterator[Callable[..., None]]:
    state, finished, begin = {"what": what, "done": 0}, threading.Event(), time.monotonic()

    def report() -> None:
        wait = FIRST_LINE
        while not finished.wait(wait):
            share = f", {state['done']:,} of {total:,}" if total else ""
            note(f"{state['what']} ({time.monotonic() - begin:.0f} s{share})")
            wait = NEXT_LINE

    def progress(done: int, now: str | None = None) -> None:
        state.update(done=done, what=state["what"] if now is None else now)

    threading.Thread(target=report, name="evenmatch-progress", daemon=True).start()
    try:
        yield progress
    finally:
        finished.set()


def compile_ahead(parts: Sequence[str], what: str) -> None:
    """Compile those kernels of `parts` that this machine lacks, so that later requests need not wait for them."""
    from evenmatch.operations.kernels import Compilation, missing

    lacking = missing(parts)
    if not lacking:
        return
    words = f"compiling {what}, once per installation"
    with working(words, len(lacking)) as progress, Compilation(lacking) as compilation:
        compilation.wait(progress=progress)
