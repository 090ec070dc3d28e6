"""Load rating kernels, and say on standard error when they must be compiled first: it takes seconds, once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenmatch.systems import loop
from evenmatch.systems.system import Rules

SECOND = 1.0  # between two updates of the elapsed time


def load_kernels(by: Rules) -> None:
    """Load the kernels of a system into this process; where this machine lacks them, compile them and say so."""
    replay: Any = loop.engine(by.system).replay
    if replay.signatures:
        return
    if is_cached(replay):
        loop.load(by)
        return
    with compile_notice(by.system.name):
        loop.load(by)


def is_cached(compiled: Any) -> bool:  # noqa: ANN401 - numba names no type for what it compiles
    """Whether numba's cache on disk has this function; True where it cannot be cached at all.

    What another version of Python, numba or the source, or another processor, left in the cache does not count.
    """
    if compiled.stats.cache_path is None:
        return True
    here = compiled.targetctx.codegen().magic_tuple()
    return any(key[1] == here for key in compiled._cache._cache_file._load_index())


@contextmanager
def compile_notice(what: str) -> Iterator[None]:
    """Say on standard error that something is compiled while the block does so; count seconds where a person looks."""
    words, over, begin = f"evenmatch: compiling {what}, once per installation", threading.Event(), time.monotonic()
    is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules  # a notebook's standard error is no terminal

    def count() -> None:
        while not over.wait(SECOND):
            sys.stderr.write(f"\r{words}: {time.monotonic() - begin:.0f} s")
            sys.stderr.flush()

    sys.stderr.write(f"{words} …" if is_watched else f"{words}\n")
    sys.stderr.flush()
    counting = threading.Thread(target=count, name="evenmatch-compile-notice", daemon=True)
    if is_watched:
        counting.start()
    try:
        yield
    finally:
        over.set()
        if is_watched:
            counting.join()
            sys.stderr.write(f"\r{words}: done in {time.monotonic() - begin:.0f} s\n")
