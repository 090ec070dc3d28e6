"""Files that go into a ladder: `-` is a pipe, and of several ladders in a file one is chosen."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.output import working
from evenmatch.errors import BadRowsError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.tables import MatchTable

FILES = ".csv, .parquet, .jsonl or .ndjson; - reads a pipe to its end, CSV or JSON Lines"
FromLadder = Annotated[
    str | None,
    typer.Option("--from", metavar="LADDER", help="Which ladder of FILE, where it holds several and none is called L."),
]


@contextmanager
def received(file: str) -> Iterator[tuple[Path, str | None]]:
    """The path of a file and what messages call it where that is not its path.

    For `-`: a copy of standard input up to its end, which is there as long as the block runs.
    """
    if file != "-":
        yield Path(file), None
        return
    if sys.stdin is None:
        raise UsageError("standard input is closed; accepted is a pipe or the name of a file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "received"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield path, "standard input"


def matches_in(path: Path, name: str | None, skip_bad: bool) -> MatchTable:
    """The matches of what was received, read under a progress bar."""
    from evenmatch.tables.reading import read_matches

    with working(f"reading {name or path.name}"):
        return read_matches(path, name, skip_bad=skip_bad)


@contextmanager
def adding(of: str = "match") -> Iterator[None]:
    """Lets bad rows be told by a command that adds to a ledger, and rates nothing; `of` is what they belong to."""
    try:
        yield
    except BadRowsError as error:
        error.outcome, error.of = "nothing was added", of
        raise


def one_ladder(matches: MatchTable, ladder: str, told: str | None, otherwise: str = "") -> MatchTable:
    """The matches of a file that go onto a ladder: those of one of the file's ladders; see `ladder_within`."""
    return matches.on_ladder(ladder_within(matches.ladders, ladder, told, matches.source.name, otherwise))


def ladder_within(names: Sequence[str], ladder: str, told: str | None, file: str, otherwise: str = "") -> str:
    """Which of a file's ladders is meant: the one that --from tells, else the only one, else the one of this name.

    otherwise  what else is accepted where none of these is there
    """
    if told is not None:
        if told not in names:
            raise UnknownNameError(f"ladder of {file}", told, sorted(names))
        return told
    if len(names) == 1:
        return names[0]
    if ladder in names:
        return ladder
    listed = ", ".join(sorted(names)[:20]) + (", …" if len(names) > 20 else "")
    raise UsageError(
        f"{file} has the ladders {listed}, and none is {ladder!r}; accepted is one of them as --from LADDER{otherwise}"
    )
