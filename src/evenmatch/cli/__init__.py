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
from evenmatch.cli.output import fail, warn
from evenmatch.errors import EvenmatchError, EvenmatchWarning, StoreError, UsageError

__all__ = ["app", "main"]


def main() -> None:
    """Run a command.

    Exit code 0: done; 1: the contents of a file or of the ledger; 2: a wrong command, option, name or value; 3: the
    database cannot be opened, read or written.
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
    except UsageError as error:
        fail(error)
        sys.exit(2)
    except StoreError as error:
        fail(error)
        sys.exit(3)
    except EvenmatchError as error:
        fail(error)
        sys.exit(1)
    except BrokenPipeError:
        _hang_up()
    except OSError as error:  # the disk that standard output goes to is full
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer makes it an exit with 1
            _hang_up()
        raise


@cache
def _command() -> Callable[[], object]:
    """All commands, put together once however often `main` is called, as tests do."""
    return get_command(app)


def _hang_up() -> None:
    """The reader, for instance `head`, has seen enough: end well, and leave nothing to flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


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
