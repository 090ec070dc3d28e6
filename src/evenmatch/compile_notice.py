"""Load rating kernels, with a notice on standard error if they must be compiled first, which takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numba

from evenmatch.progress import is_watched, say
from evenmatch.systems import loop
from evenmatch.systems.kernel_errors import kernel_error
from evenmatch.systems.system import Rules

# Measured on one core of 2026 with Python 3.11 over all systems, from planeswalker (2 s) to even (28 s).
LEAST = 1.3  # seconds
BYTES_PER_SECOND = 1400  # of Python's code


def load_kernels(by: Rules, *, in_context: bool = False) -> None:
    """Load the kernels of a system into this process; compile them, with a notice, if they are not cached.

    in_context  those for matches with context columns
    Raises KernelError, which names file and line, if they cannot be compiled.
    """
    engine = loop.engine(by.system)
    replay: Any = engine.replay_in_context if in_context else engine.replay
    if by.system.methods is not None or replay.signatures:
        return
    kernels = (by.system.pair, by.system.update)
    with nullcontext() if is_cached(replay) else compile_notice(by.system.name, replay, *kernels):
        try:
            loop.load(by, in_context=in_context)
        except Exception as error:  # numba raises KeyError and others beside its own errors
            raise kernel_error(by.system, error) from None


def is_cached(compiled: Any) -> bool:  # noqa: ANN401 - numba has no public type for this
    """Whether machine code of this function is on disk; True if the function cannot be cached.

    Machine code for another Python, numba, source version or processor does not count.
    """
    if compiled.stats.cache_path is None:
        return True
    return bool(compiled._cache.is_filled(compiled.targetctx.codegen()))


@contextmanager
def compile_notice(what: str, compiled: Any, *kernels: Any) -> Iterator[None]:  # noqa: ANN401
    """Say on standard error that the block compiles `what`; terminals and notebooks also show how long it will take.

    compiled  the function that is compiled. If its machine code was installed for another numba, the notice says so
    kernels   from whose code the time is estimated
    """
    seconds = LEAST + sum(_size(kernel, set()) for kernel in kernels) / BYTES_PER_SECOND
    rounded = round(seconds) if seconds < 10 else 5 * round(seconds / 5)
    other = compiled._cache.other_numba()
    reason = "" if other is None else f": its installed kernels are for numba {other}, not {numba.__version__}"
    time = f" (about {rounded} s)" if is_watched() else ""
    say(f"evenmatch: compiling {what}, once per installation{reason}{time}")
    yield


def _size(kernel: Any, seen: set[int]) -> int:  # noqa: ANN401
    """Bytes of the code of a kernel and of those that it calls; those that are not inlined count once."""
    python = kernel.py_func
    total = len(python.__code__.co_code)
    for name in python.__code__.co_names:
        called = python.__globals__.get(name)
        if hasattr(called, "py_func") and (called.targetoptions.get("inline") == "always" or id(called) not in seen):
            seen.add(id(called))
            total += _size(called, seen)
    return total
