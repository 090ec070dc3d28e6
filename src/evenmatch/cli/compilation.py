"""evenmatch compile: compile all kernels ahead, so that no later process does."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from evenmatch.cli.shared.output import compile_ahead, working
from evenmatch.errors import UsageError


def command(
    systems: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SYSTEM]...", help="Systems, or your own .py files; if omitted: everything."),
    ] = None,
) -> None:
    """Compile the rating systems, the matchmaker and the measures of the lab, about two minutes of one processor.

    They are kept where numba keeps them: in the folder that NUMBA_CACHE_DIR names, else beside the sources. Later
    processes load them, if they have the same folder, versions, and kind of processor; NUMBA_CPU_NAME=generic makes
    them fit every processor of an architecture. Parts that are compiled already take no time.

    [bold]Examples[/bold]

    evenmatch compile

    evenmatch compile wager my_system.py
    """
    from evenmatch.operations.kernels import MATCHMAKER, missing
    from evenmatch.systems import names

    parts = [*names(), *MATCHMAKER] if systems is None else systems
    folder = _checked_folder()
    compile_ahead(parts, "everything" if systems is None else ", ".join(parts))
    if systems is None:
        from evenmatch.lab.backtests.evaluation import compile_measures

        with working("compiling the measures of the lab"):
            compile_measures()
    if lacking := missing(parts):
        raise UsageError(f"could not compile {lacking[0]}; `evenmatch rate … --system {lacking[0]}` shows its error")
    print(f"compiled {len(parts)} parts into {folder}")


def _checked_folder() -> str:
    """The folder of the cache. Raises UsageError if numba cannot write to any."""
    from evenmatch.matchmaking.passes import make_matches

    folder: str | None = make_matches.stats.cache_path  # type: ignore[attr-defined]
    if folder is None:
        named = os.environ.get("NUMBA_CACHE_DIR", "a folder")
        raise UsageError(f"compiled kernels cannot be kept; expected NUMBA_CACHE_DIR={named} to be writable")
    return folder
