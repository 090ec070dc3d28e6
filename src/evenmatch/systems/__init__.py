"""Find rating systems by name: modules in this folder, systems of installed packages, and a user's own file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.systems.duel import DuelSystem, is_duel_system, system_of
from evenmatch.systems.system import System

GROUP = "evenmatch.systems"
_NO_SYSTEMS = {
    "compiled",
    "duel",
    "experts",
    "fingerprint",
    "finish_order",
    "forecasts",
    "growing_deviation",
    "kernel_errors",
    "ladder_records",
    "loop",
    "maths",
    "mean_and_deviation",
    "message_passing",
    "system",
    "wording",
}

__all__ = ["GROUP", "find", "is_file", "load_file", "names"]


def names() -> list[str]:
    """The names of all systems, from this package and from installed packages."""
    return sorted(_own() | {point.name for point in _offered()})


def find(name: str | type[DuelSystem]) -> System:
    """The system with this name, of this class, or of a Python file (a path ending in .py).

    The file defines SYSTEM or a single DuelSystem.
    Raises UnknownNameError for an unknown name, UsageError for a file or package without a system.
    """
    if not isinstance(name, str):
        return system_of(name)  # type: ignore[arg-type] # mypy takes a class for unhashable
    if is_file(name):
        return _system_of(load_file(name, "system"), name)
    if name in _own():
        return _system_of(importlib.import_module(f"{__name__}.{name}"), name)
    point = next((point for point in _offered() if point.name == name), None)
    if point is None:
        raise UnknownNameError("system", name, names())
    try:
        module = importlib.import_module(point.module)
    except Exception as error:  # an installed package may raise anything
        failure = f"the system {name!r} of {point.module} cannot be loaded"
        raise UsageError(f"{failure}: {type(error).__name__}: {error}") from error
    return _system_of(module, point.value)


def is_file(name: str) -> bool:
    """Whether the name is the path of a Python file, which may be edited while a process runs."""
    return name.lower().endswith(".py")


@cache
def _own() -> frozenset[str]:
    """The names of the systems in this folder, cached because systems are looked up with every read."""
    return frozenset(module.name for module in pkgutil.iter_modules(__path__)) - _NO_SYSTEMS


def _offered() -> Iterator[EntryPoint]:
    """The systems of installed packages, except names that this package uses itself."""
    return (point for point in entry_points(group=GROUP) if point.name not in _own())


def _system_of(module: ModuleType, origin: str) -> System:
    system = getattr(module, "SYSTEM", None)
    kinds = [kind for kind in vars(module).values() if is_duel_system(kind) and kind.__module__ == module.__name__]
    if system is None and len(kinds) == 1:
        return system_of(kinds[0])  # type: ignore[arg-type]
    if not isinstance(system, System):
        expected = "expected a module with SYSTEM = System(…) or one class of DuelSystem"
        raise UsageError(f"{origin} defines no SYSTEM; {expected}")
    return system


def load_file(name: str, kind: str) -> ModuleType:
    """Import a user's Python file. kind: what it should define, for messages: "system".

    The module's name is derived from its contents, so every process finds the same cached kernels. Raises UsageError.
    """
    path = Path(name)
    try:
        contents = path.read_bytes()
    except OSError as error:
        expected = f"expected the name of a {kind} or a Python file that defines one"
        raise UsageError(f"{path}: {error.strerror}; {expected}") from error
    module_name = f"evenmatch_user_{hashlib.sha256(contents).hexdigest()[:16]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may raise anything
        del sys.modules[module_name]
        raise UsageError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module
