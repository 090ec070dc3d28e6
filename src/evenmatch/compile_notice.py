"""Load rating kernels, with a notice on standard error if they must be compiled first, which takes seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenmatch.systems import loop
from evenmatch.systems.system import Rules


def load_kernels(by: Rules) -> None:
    """Load the kernels of a system into this process; compile them, with a notice, if they are not cached."""
    replay: Any = loop.engine(by.system).replay
    if replay.signatures:
        return
    if is_cached(replay):
        loop.load(by)
        return
    with compile_notice(by.system.name):
        loop.load(by)


def is_cached(compiled: Any) -> bool:  # noqa: ANN401 - numba has no public type for this
    """Whether numba's disk cache has this function; True if the function cannot be cached.

    Entries for another Python, numba, source version or processor do not count.
    """
    if compiled.stats.cache_path is None:
        return True
    machine = compiled.targetctx.codegen().magic_tuple()
    return any(key[1] == machine for key in compiled._cache._cache_file._load_index())


@contextmanager
def compile_notice(what: str) -> Iterator[None]:
    """Say on standard error that the block compiles `what`; terminals and notebooks also show how long it took."""
    message, begin = f"evenmatch: compiling {what}, once per installation", time.monotonic()
    is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules  # the standard error of a notebook is not a terminal
    print(f"{message} …" if is_watched else message, file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if is_watched:
            print(f"evenmatch: compiled {what} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
