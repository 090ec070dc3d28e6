"""Names of the matchmaker's kernels hold a hash of all that their machine code depends on."""

import collections
import importlib
import pkgutil
import types

import pytest
from numba.core.dispatcher import Dispatcher

from evenmatch import matchmaking
from evenmatch.matchmaking import tickets
from evenmatch.matchmaking.records import fingerprint, lean

SOURCE = '''
@lean
def inner(value: int) -> int:
    return value + STEP


@lean
def outer(value: int) -> int:
    """{docstring}"""
    return inner(value) * 2
'''


def outer(step=1, docstring="Text."):
    """A kernel that reads a constant through another kernel."""
    scope = {"lean": lean, "STEP": step, "__name__": "made_up"}
    exec(compile(SOURCE.format(docstring=docstring), __file__, "exec"), scope)
    return scope["outer"].py_func.__name__


def test_a_changed_constant_of_a_called_kernel_changes_the_name():
    assert outer(step=1) == outer(step=1)
    assert outer(step=2) != outer(step=1)


def test_a_renamed_type_of_an_argument_changes_the_name():
    def named(name):
        scope = {name: collections.namedtuple(name, ["size"])}
        exec(f"def kernel(view: '{name}') -> int:\n    return view.size", scope)
        return fingerprint(scope["kernel"])

    assert named("QueueView") == named("QueueView")
    assert named("QueueView") != named("View")


def test_a_changed_docstring_changes_nothing():
    assert outer(docstring="Other text.") == outer(docstring="Text.")


def test_a_changed_constant_of_tickets_reaches_the_kernels_that_read_it(monkeypatch):
    def names():
        conflict = importlib.reload(importlib.import_module("evenmatch.matchmaking.conflict"))
        return {name: value.py_func.__name__ for name, value in vars(conflict).items() if isinstance(value, Dispatcher)}

    before = names()
    monkeypatch.setattr(tickets, "FOREVER", tickets.FOREVER - 1)
    after = names()
    monkeypatch.undo()
    assert {name for name in before if before[name] != after[name]} >= {"worth"}
    assert names() == before


def test_a_kernel_that_uses_what_is_defined_below_it_is_refused():
    def early(value):
        return later(value)  # noqa: F821

    with pytest.raises(NameError, match="early uses later; define later above the kernel"):
        fingerprint(early)


def test_a_global_whose_value_cannot_be_hashed_is_refused():
    reader = types.FunctionType((lambda: TABLE).__code__, {"TABLE": {"a": 1}}, "reader")  # noqa: F821
    with pytest.raises(TypeError, match="reader uses TABLE, a dict"):
        fingerprint(reader)


def test_every_kernel_of_the_matchmaker_has_a_fingerprint_in_its_name():
    kernels = [
        value
        for module in pkgutil.iter_modules(matchmaking.__path__, "evenmatch.matchmaking.")
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, Dispatcher)
    ]
    assert len(kernels) > 40
    for kernel in kernels:
        function = kernel.py_func
        base, _, mark = function.__name__.rpartition("_")
        assert base
        assert fingerprint(function) == mark
