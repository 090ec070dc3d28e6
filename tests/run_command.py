"""A command of evenmatch run in this process: what one of its own would do, without the second that takes to start."""

import io
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from evenmatch.cli import main


class Ended(NamedTuple):
    """A command's exit code, and what it wrote to standard output and standard error."""

    code: int
    out: str
    err: str


def run_command(*arguments: object) -> Ended:
    """Run a command, its output going to what a pipe is to Python."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["evenmatch", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code is None or isinstance(ended.value.code, int)
    return Ended(ended.value.code or 0, *(stream.buffer.getvalue().decode() for stream in (out, err)))
