"""The command line: one file per command."""

from __future__ import annotations

import sys
import warnings
from typing import TextIO

from evenmatch.cli.app import app
from evenmatch.cli.output import fail, warn
from evenmatch.errors import EvenmatchError, EvenmatchWarning, UsageError

__all__ = ["app", "main"]


def main() -> None:
    """Run a command. Exit code 0: done; 1: the contents of a file; 2: a wrong command, option, name or value."""
    warnings.showwarning = _show
    warnings.simplefilter("always", EvenmatchWarning)
    try:
        app()
    except UsageError as error:
        fail(error)
        sys.exit(2)
    except EvenmatchError as error:
        fail(error)
        sys.exit(1)
    except BrokenPipeError:  # the reader, for instance `head`, has seen enough
        sys.stderr.close()
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
