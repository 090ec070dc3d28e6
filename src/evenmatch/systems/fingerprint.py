"""The fingerprint of a system: a hash of the code that determines its machine code, and so its ratings."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
from dataclasses import dataclass
from functools import cache
from types import FunctionType, ModuleType

import numpy as np
from numba.core.registry import CPUDispatcher

from evenmatch.systems.duel import code_of_methods
from evenmatch.systems.system import System

LOOP = ("evenmatch.systems.loop", "evenmatch.systems.compiled")  # in the machine code of every system


def fingerprint(system: System) -> str:
    """Hash of the modules that the kernels reach and of the constants that they read.

    Comments, docstrings, formatting and the path of the system's file do not count. For a DuelSystem, its own code
    counts, as this version of Python runs it.
    """
    if system.methods is not None:
        return hashlib.sha256(code_of_methods(system.methods).encode()).hexdigest()
    reached = Reached(set(LOOP), {})
    reached.follow(system.pair)
    reached.follow(system.update)
    code = {name: code_of(importlib.import_module(name)) for name in reached.modules}
    text = repr((sorted(code.items()), sorted(reached.constants.items())))
    own = _python(system.update).__module__  # of a user's file: a hash of the whole file, comments included
    return hashlib.sha256(text.replace(own, "system").encode()).hexdigest()


@cache
def code_of(module: ModuleType) -> str:
    """The syntax tree of a module as text, without docstrings; the same text in every version of Python."""
    return _dump(ast.parse(inspect.getsource(module)))


def _dump(node: object) -> str:
    # The output of ast.dump and ast.unparse differs between versions of Python.
    if isinstance(node, list):
        return f"[{', '.join(_dump(item) for item in node if not _is_docstring(item))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [f"{name}={_dump(value)}" for name, value in ast.iter_fields(node) if value is not None and value != []]
    return f"{type(node).__name__}({', '.join(fields)})"


def _is_docstring(node: object) -> bool:
    """Whether this is a string statement: the docstring of a module, class, function or attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@dataclass(frozen=True)
class Reached:
    """The modules of the functions that kernels call, and the globals they read, by name."""

    modules: set[str]
    constants: dict[str, str]

    def follow(self, function: object) -> None:
        """Visit a compiled function and everything it calls by name or as `module.name`."""
        python = _python(function)
        place = f"{python.__module__}.{python.__qualname__}"
        if place in self.constants:
            return
        self.constants[place] = ""
        self.modules.add(python.__module__)
        names = python.__code__.co_names
        for name in names:
            value = python.__globals__.get(name)
            if isinstance(value, ModuleType) and not _is_library(value):
                self.modules.add(value.__name__)
                for attribute in names:
                    self._note(f"{value.__name__}.{attribute}", getattr(value, attribute, None))
            else:
                self._note(f"{place}.{name}", value)

    def _note(self, name: str, value: object) -> None:
        if isinstance(value, CPUDispatcher):
            self.follow(value)
        elif isinstance(value, np.ndarray):
            self.constants[name] = f"{value.dtype} {value.shape} {value.tobytes().hex()}"
        elif isinstance(value, int | float | complex | str | tuple):
            self.constants[name] = repr(value)


def _python(function: object) -> FunctionType:
    """The Python function behind a compiled one."""
    python = function.py_func if isinstance(function, CPUDispatcher) else function
    assert isinstance(python, FunctionType)
    return python


def _is_library(module: ModuleType) -> bool:
    root = module.__name__.split(".")[0]
    return root in sys.stdlib_module_names or root in ("numpy", "numba")
