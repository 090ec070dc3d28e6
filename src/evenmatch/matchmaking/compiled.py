"""How the kernels of the matchmaker are compiled: cached between processes, without fast maths."""

from __future__ import annotations

import hashlib
import pkgutil
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])

PARTS = (
    "balance",
    "blocks",
    "collect",
    "conflict",
    "deal",
    "find",
    "mixed",
    "named",
    "overdue",
    "pack",
    "records",
    "roles",
    "schedule",
)
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_LEAN: dict[str, Any] = {"_nrt": False}  # nothing is allocated, so no references are counted: several times as fast


def _sources() -> str:
    """A hash of all files with kernels: numba's cache does not notice that a kernel in another file was changed."""
    digest = hashlib.sha256()
    for part in PARTS:
        digest.update(pkgutil.get_data(__package__, f"{part}.py") or b"")
    return digest.hexdigest()[:12]


SOURCES = _sources()


def compiled(function: F) -> F:
    """Compile a kernel that allocates, under a name that changes whenever any of the kernels does."""
    return cast("F", njit(**_OPTIONS)(_renamed(function)))


def lean(function: F) -> F:
    """The same for a kernel that allocates nothing."""
    return cast("F", njit(**_OPTIONS, **_LEAN)(_renamed(function)))


def merged(function: F) -> F:
    """The same for a kernel that is merged into those that call it, where a call would cost more than its work."""
    return cast("F", njit(error_model="numpy", inline="always", **_LEAN)(_renamed(function)))


def _renamed(function: F) -> F:
    python = cast("types.FunctionType", function)
    name = f"{python.__name__}_{SOURCES}"
    copy = types.FunctionType(python.__code__, python.__globals__, name, python.__defaults__)
    copy.__qualname__, copy.__module__, copy.__doc__ = name, python.__module__, python.__doc__
    return cast("F", copy)
