"""Compilation of kernels, without fast maths, so that a replay is equal bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from evenmatch.history import Columns
from evenmatch.kernel_cache import use_installed

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile a kernel that is inlined into the loop over matches, which is three times as fast as a call."""
    return cast("F", njit(error_model="numpy", inline="always")(function))


def cached(function: F) -> F:
    """Compile a function that Python calls; its machine code is cached on disk."""
    return cast("F", use_installed(njit(cache=True, nogil=True, error_model="numpy")(function)))


def rarely(function: F) -> F:
    """Compile a function that kernels call rarely. It is not inlined, which would only bloat the loop.

    It allocates nothing: counting the references to the arrays of its arguments would take most of its time.
    """
    options: dict[str, Any] = {"_nrt": False}
    return cast("F", njit(error_model="numpy", **options)(function))


def allocating(function: F) -> F:
    """Compile a function that kernels call rarely and that allocates arrays, which they may not."""
    options: dict[str, Any] = {"_nrt": True}  # numba would inherit the option of the loop that calls it
    return cast("F", njit(error_model="numpy", **options)(function))


LINE = 64  # bytes of a cache line


def _prefetch(*, whole: bool) -> Callable[[object, int], None]:
    """A function whose machine code is one instruction per cache line: of the whole record, or of its first line."""

    def of_types(typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
        size = array.dtype.size

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> object:
            wide, narrow, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [byte, narrow, narrow, narrow])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            begin = builder.bitcast(context.make_array(signature.args[0])(context, builder, arguments[0]).data, byte)
            record = builder.gep(begin, [builder.mul(builder.zext(arguments[1], wide), wide(size))])
            places = [*range(0, size if whole else 1, LINE)]  # in an array that begins at a cache line
            if whole and size % LINE and LINE % size:  # a record may end in a further line
                places.append(size - 1)
            for place in places:
                read, second_level, data = narrow(0), narrow(2), narrow(1)
                builder.call(fetch, [builder.gep(record, [wide(place)]), read, second_level, data])
            return context.get_dummy_value()

        return types.void(array, index), generate

    return cast("Callable[[object, int], None]", intrinsic(of_types))


prefetch = _prefetch(whole=True)
"""prefetch(array, index): have the processor fetch all cache lines of a record before they are needed.

The array should begin at a cache line; `index` is unsigned. Results do not change; if the players' records exceed the
caches, rating takes half the time. The lines are fetched for reading and into the second-level cache: for writing, or
into the first, 5v5 with two context columns takes a tenth to a fifth longer.
"""

prefetch_first_line = _prefetch(whole=False)
"""Like `prefetch`, for the first cache line of a record only: most matches do not need the rest."""


def unsigned(h: Columns) -> Columns:
    """The same columns with unsigned indices: an index that may be negative costs a test at every access."""
    return Columns(
        h.time,
        h.team_start.view(np.uint32),
        h.place,
        h.team_score,
        h.slot_start.view(np.uint32),
        h.player.view(np.uint32),
        h.score,
        h.seconds,
        h.performance,
        h.quit,
        h.duration,
        h.keep,
        h.pool.view(np.uint32),
        h.ladder.view(np.uint32),
        h.context.view(np.uint32),
        h.offset.view(np.uint32),
        h.entry,
        h.lengths,
    )
