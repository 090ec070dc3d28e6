"""The command line: one file per command."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from io import TextIOWrapper
from typing import TextIO

from typer.main import get_command

from evenmatch.cli.app import app
from evenmatch.cli.output import fail, note, print_json, problems_document, warn
from evenmatch.errors import (
    NAMED,
    BadRowsError,
    EvenmatchError,
    EvenmatchWarning,
    InputError,
    StoreError,
    UsageError,
    matches_of,
    problem_lines,
)

__all__ = ["app", "main"]

CODES = {UsageError: 2, StoreError: 3}  # of other errors of ours: 1
INTERRUPTED = 130


def main() -> None:
    """Run a command.

    Exit code 0: done; 1: the contents of a file or of the ledger; 2: a wrong command, option, name or value; 3: the
    database cannot be opened, read or written; 130: interrupted, as by Ctrl-C.
    """
    warnings.showwarning = _show
    warnings.simplefilter("always", EvenmatchWarning)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a letter that the terminal lacks is no reason to stop
    try:
        try:
            _command()()
        finally:
            sys.stdout.flush()
    except EvenmatchError as error:
        _fail(error)
        sys.exit(next((code for kind, code in CODES.items() if isinstance(error, kind)), 1))
    except BrokenPipeError:
        _hang_up()
    except OSError as error:  # the disk that standard output goes to is full
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer makes it an exit with 1
            _hang_up()
        cause = end.__context__ and end.__context__.__cause__
        if isinstance(cause, KeyboardInterrupt):  # typer makes it an exit with 130
            _tell_interrupted(cause)
        raise
    except KeyboardInterrupt as interrupt:  # before a command or after it
        _tell_interrupted(interrupt)
        sys.exit(INTERRUPTED)


@cache
def _command() -> Callable[[], object]:
    """All commands, put together once however often `main` is called, as tests do."""
    return get_command(app)


def _hang_up() -> None:
    """The reader, for instance `head`, has seen enough: end well, and leave nothing to flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def _fail(error: EvenmatchError) -> None:
    """Print an error, and the bad rows that it knows of; with --json all of these as a document, too."""
    if not isinstance(error, BadRowsError):
        fail(error)
        return
    if "--json" in sys.argv:
        print_json({"source": error.source, "outcome": error.outcome, **problems_document(error.problems)})
    fail(InputError(f"{error.source}: {error.count}; {error.outcome}"))
    for line in problem_lines(error.problems):
        note(line)
    if len(matches_of(error.problems)) > NAMED and "--json" not in sys.argv:
        note("  (--json names all of them)")
    plural = "matches" if error.of == "match" else f"{error.of}s"
    note(f"  (without them no {error.of} is left)" if error.all_bad else f"  (--skip-bad leaves such {plural} out)")


def _tell_interrupted(interrupt: KeyboardInterrupt) -> None:
    """That the command was interrupted, and what a command that caught it had to say."""
    note("; ".join(("interrupted", *map(str, interrupt.args))))


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, EvenmatchWarning):
        warn(str(message))
    else:
        print(f"{category.__name__}: {message}", file=sys.stderr)
