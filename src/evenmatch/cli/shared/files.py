"""Input files: matches from a file or a pipe, one of several ladders in a file, divisions."""

from __future__ import annotations

import csv
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared.options import option
from evenmatch.cli.shared.output import working
from evenmatch.errors import LISTED_SINGLY, BadRowsError, InputError, MissingColumnsError, UnknownNameError, UsageError
from evenmatch.standings.division import Division, checked

if TYPE_CHECKING:
    from evenmatch.cli.shared.reading import Reading
    from evenmatch.tables import MatchTable

FILES = ".csv, .parquet, .jsonl or .ndjson; - reads CSV or JSON Lines from standard input"
FromLadder = Annotated[str | None, option("--from LADDER", "The ladder to take from a FILE with several.")]


@contextmanager
def received(file: str) -> Iterator[tuple[Path, str | None]]:
    """The path of a file, and its name for messages if that is not the path.

    For `-`: a temporary copy of standard input, removed at the end of the block.
    """
    if file != "-":
        yield Path(file), None
        return
    if sys.stdin is None:
        raise UsageError("standard input is closed; expected a pipe or the name of a file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "received"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield path, "standard input"


def matches_in(path: Path, name: str | None, skip_bad: bool, reading: Reading) -> MatchTable:
    """Read the matches of a file, with a progress bar. Errors about a file in another form suggest `evenmatch look`."""
    from evenmatch.tables.reading import read_matches

    advice = f"to see what the file means and how to read it: evenmatch look {shlex.quote(str(path))}"
    with working(f"reading {name or path.name}"), advising("" if name or reading.is_given else advice):
        return read_matches(
            path,
            name,
            skip_bad=skip_bad,
            time_format=reading.time_format,
            zone=reading.zone,
            columns=reading.names,
            mapping=reading.saved,
            context=reading.context,
        )


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """Add advice to an error about missing columns, or about many bad rows and no good ones."""
    try:
        yield
    except MissingColumnsError as error:
        raise InputError(f"{error}; {advice}" if advice else str(error)) from None
    except BadRowsError as error:
        if error.all_bad and len(error.problems) > LISTED_SINGLY:
            error.advice = advice
        raise


def check_outputs(
    *tables: Path | None,
    report: Path | None = None,
    written: Iterable[Path | None] = (),
    others: Iterable[Path | None] = (),
) -> None:
    """Raise UsageError before a long run if a file cannot be written, or if two files are the same.

    tables   .csv, .parquet or .jsonl;  report: a web page;  written: files in any other form
    others   files that are read, or written elsewhere
    """
    from evenmatch.tables.files import check_folder, check_writable

    for path in tables:
        if path is not None:
            check_writable(path)
    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"{report}: the report is a web page; expected a name ending in .html")
        check_folder(report)
    for path in written:
        if path is not None:
            check_folder(path)
    outputs = [path.resolve() for path in (*tables, report, *written) if path is not None]
    taken = [path.resolve() for path in others if path is not None]
    twice = next((path for place, path in enumerate(outputs) if path in (*outputs[:place], *taken)), None)
    if twice is not None:
        raise UsageError(f"{twice.name} is named twice; expected different files")


@contextmanager
def adding(of: str = "match") -> Iterator[None]:
    """Make errors about bad rows say that nothing was added, unless they already say what was.

    of  what the rows describe, `match` or `row`
    """
    try:
        yield
    except BadRowsError as error:
        error.of = of
        if error.outcome == BadRowsError.outcome:
            error.outcome = "nothing was added"
        raise


def one_ladder(matches: MatchTable, ladder: str, named: str | None, otherwise: str = "") -> MatchTable:
    """The matches of one ladder of a file, chosen by `ladder_within`."""
    return matches.on_ladder(ladder_within(matches.ladders, ladder, named, matches.source.name, otherwise))


def ladder_within(names: Sequence[str], ladder: str, named: str | None, file: str, otherwise: str = "") -> str:
    """The ladder of a file to use: the one named by --from, else the only one, else the one called `ladder`.

    otherwise  an alternative to suggest in the UsageError if there is no such ladder
    """
    if named is not None:
        if named not in names:
            raise UnknownNameError(f"ladder of {file}", named, sorted(names))
        return named
    if len(names) == 1:
        return names[0]
    if ladder in names:
        return ladder
    listed = ", ".join(sorted(names)[:20]) + (", …" if len(names) > 20 else "")
    raise UsageError(f"{file} has the ladders {listed}, but not {ladder!r}; choose one with --from LADDER{otherwise}")


def read_divisions(path: Path) -> tuple[Division, ...]:
    """Divisions from a CSV file with the columns name and lowest (percentile), in rising order.

    Raises UsageError if the file cannot be read, InputError if its contents are invalid.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; expected CSV with the columns name and lowest") from error
    try:
        divisions = _divisions(text, path)
    except csv.Error as error:
        raise InputError(f"{path} is not readable as CSV: {error}; expected the columns name and lowest") from error
    try:
        return checked(divisions)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _divisions(text: str, path: Path) -> list[Division]:
    from evenmatch.tables.source import long_cells

    with long_cells():
        reader = csv.DictReader(text.splitlines())
        columns = list(reader.fieldnames or ())
        if not {"name", "lowest"} <= set(columns):
            raise InputError(f"{path} has the columns {', '.join(columns)}; expected name and lowest")
        divisions = []
        for row in reader:
            name, lowest = row["name"], row["lowest"]
            if name is None or lowest is None or not lowest.strip().isdecimal():
                expected = "a whole percentile, 1 to 100"
                raise InputError(f"{path}, line {reader.line_num}: lowest is {lowest!r}; expected {expected}")
            divisions.append(Division(name.strip(), int(lowest)))
    return divisions
