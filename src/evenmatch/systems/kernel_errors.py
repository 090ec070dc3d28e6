"""Say in one line why a kernel does not compile: file, line, and what is wrong there."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

from numba.core import types

from evenmatch.errors import KernelError
from evenmatch.systems.system import Columns, System

LOOP = str(Path(__file__).with_name("loop.py"))
NOISE = re.compile(r"(Failed in .*|During: .*|The compiler failed to analyze the bytecode\.)\s*")
ATTRIBUTE = re.compile(r"Unknown attribute '(\w+)' of type (\w+)")
RAISED = re.compile(r"\.? Raised from (.*) \((\d+)\)")

BOUND = re.compile(r"""due to "TypeError: (.*)\"""")
ARGUMENTS = ("(a, b, home, now, state, params)", "(h, m, state, params, expected, factors, scratch)")
OF_LADDER = (
    "(a, b, home, two, now, state, ladder, params)",
    "(h, m, state, ladder, params, expected, factors, scratch)",
)


def kernel_error(system: System, error: Exception) -> KernelError:
    """The error to raise instead of numba's, whose report is kept in `details`."""
    where, what = _missing_field(system, error) if isinstance(error, KeyError) else _said_by_numba(system, error)
    if not where:
        code = system.pair.py_func.__code__  # type: ignore[attr-defined]
        where = place(code.co_filename, code.co_firstlineno)
    return KernelError(f"{where}: {what}", "".join(traceback.format_exception(error)))


def place(file: str, line: int) -> str:
    """Name a line of a source file for messages; "line 3" if the source was typed into a notebook."""
    path = Path(file)
    if not path.is_file():
        return f"line {line}"
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{line}"


def _said_by_numba(system: System, error: Exception) -> tuple[str, str]:
    text, where = str(error), getattr(error, "loc", None)
    found = "" if where is None or where.filename == LOOP else place(where.filename, where.line)
    if raised := RAISED.search(text):
        return place(raised[1], int(raised[2])), f"kernels cannot use this: {RAISED.sub('', text)}"
    if "failed to unpack" in text or "wrong tuple length" in text:
        return found, "pair does not return two numbers; expected (win, draw), two probabilities"
    if bound := BOUND.search(text):
        pair, update = ARGUMENTS if system.ladder is None else OF_LADDER
        return found, f"{bound[1]}; expected pair{pair} and update{update}"
    if attribute := ATTRIBUTE.search(text):
        return found, _unknown_attribute(system, *attribute.groups())
    if "NRT required" in text or "typeddict_empty" in text:
        return found, "a list, dictionary, text or array is created, which kernels cannot do"
    lines = [NOISE.sub("", line).strip() for line in text.splitlines()]
    said = next(filter(None, lines), type(error).__name__)
    call = next((line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")), "")
    return found, f"{said} {call}".strip()


def _unknown_attribute(system: System, name: str, owner: str) -> str:
    parameters = type(system.compile(system.parameters()))
    for what, kind in (("parameters", parameters), ("columns", Columns)):
        if kind.__name__ == owner:
            return f"the {what} have no {name!r}; they have {', '.join(kind._fields)}"
    return f"{owner} has no {name!r}"


def _missing_field(system: System, error: KeyError) -> tuple[str, str]:
    """numba looks the field of a record up in a dictionary, and has the line of the source in its own frames."""
    names, where = tuple[str, ...](), ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner: Any = frame.f_locals.get("self")
        line: Any = getattr(owner, "loc", None)
        where = place(line.filename, line.line) if hasattr(line, "filename") else where
        names = tuple(owner.fields) if isinstance(owner, types.Record) else names
    records = {"state": system.state, "factors": system.factor_type, "ladder's record": system.ladder_type}
    what = next((kind for kind, record in records.items() if record.names == names), "record")
    has, they_have = ("have", "they have") if what == "factors" else ("has", "it has")
    return where, f"the {what} {has} no field {error.args[0]!r}; {they_have} {', '.join(names) or 'none'}"
