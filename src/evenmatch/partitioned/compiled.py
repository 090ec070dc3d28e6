"""How the kernels of this part are compiled: cached on disk, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def compiled(function: F) -> F:
    """Compile a kernel."""
    return cast("F", njit(**_OPTIONS)(function))


def inlined(function: F) -> F:
    """Compile a function that becomes a part of the kernels that call it."""
    return cast("F", njit(inline="always", **_OPTIONS)(function))
