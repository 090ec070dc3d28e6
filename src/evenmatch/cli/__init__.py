"""The command line: a module per subject, and what all commands share."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from io import TextIOWrapper
from typing import TextIO

from typer.main import get_command

from evenmatch.cli.app import COMMANDS, application
from evenmatch.cli.shared.output import fail, note, print_json, problems_document, warn
from evenmatch.errors import (
    MATCH_IDS_SHOWN,
    BadRowsError,
    ClusterError,
    EvenmatchError,
    EvenmatchWarning,
    InputError,
    StoreError,
    UsageError,
    matches_of,
    problem_lines,
)
from evenmatch.progress import silence

__all__ = ["exit_with_errors", "main"]

CODES = {UsageError: 2, StoreError: 3, ClusterError: 4}  # other EvenmatchErrors: 1
INTERRUPTED = 130


def main() -> None:
    """Run the command line.

    Exit codes: 0 success; 1 invalid contents of a file or of the ledger; 2 wrong command, option, name or value; 3 the
    database cannot be opened, read or written; 4 a cluster cannot be reached, does not fit, or lost a task too often;
    130 interrupted, for example by Ctrl-C.
    """
    silence()
    exit_with_errors(_run)


def _run() -> object:
    only = next((word for word in sys.argv[1:2] if word in COMMANDS), None)
    return _command(only)()


def exit_with_errors(run: Callable[[], object]) -> None:
    """Call a function; print the error that it raises, and exit with its code, see `main`."""
    warnings.showwarning = _show
    warnings.simplefilter("always", EvenmatchWarning)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # print a replacement for characters that the terminal cannot encode
    try:
        try:
            run()
        finally:
            sys.stdout.flush()
    except EvenmatchError as error:
        _fail(error)
        sys.exit(next((code for kind, code in CODES.items() if isinstance(error, kind)), 1))
    except BrokenPipeError:
        _hang_up()
    except OSError as error:  # for example: standard output is a file on a full disk
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer turns it into exit code 1
            _hang_up()
        cause = end.__context__ and end.__context__.__cause__
        if isinstance(cause, KeyboardInterrupt):  # typer turns it into exit code 130
            _note_interruption(cause)
        raise
    except KeyboardInterrupt as interrupt:  # before or after the command itself
        _note_interruption(interrupt)
        sys.exit(INTERRUPTED)


@cache
def _command(only: str | None) -> Callable[[], object]:
    """The click command of the application, built once even if `main` is called repeatedly, as in tests."""
    return get_command(application(only))


def _hang_up() -> None:
    """Exit with 0 after the reader of standard output (such as `head`) closed it; nothing is left to flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def _fail(error: EvenmatchError) -> None:
    """Print an error and its bad rows; with --json also all bad rows as a JSON document."""
    if not isinstance(error, BadRowsError):
        fail(error)
        return
    if "--json" in sys.argv:
        print_json({"source": error.source, "outcome": error.outcome, **problems_document(error.problems)})
    fail(InputError(f"{error.source}: {error.count}; {error.outcome}"))
    for line in problem_lines(error.problems):
        note(line)
    if len(matches_of(error.problems)) > MATCH_IDS_SHOWN and "--json" not in sys.argv:
        note("  (--json lists all of them)")
    plural = "matches" if error.of == "match" else f"{error.of}s"
    note(
        f"  (no {error.of} would be left without them)" if error.all_bad else f"  (--skip-bad leaves such {plural} out)"
    )
    if error.advice:
        note(f"  {error.advice}")


def _note_interruption(interrupt: KeyboardInterrupt) -> None:
    """Print that the command was interrupted, and the message that the command attached to the interrupt."""
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
