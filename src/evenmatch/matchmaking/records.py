"""The record types of a queue and of its view, and how the kernels that read them are compiled."""

from __future__ import annotations

import builtins
import dis
import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from evenmatch.kernel_cache import use_installed

Records = NDArray[np.void]

_PARTY = [
    ("low", "f8"),  # the members' lowest and highest percentile
    ("high", "f8"),
    ("rating_low", "f8"),
    ("rating_high", "f8"),
    ("size", "i4"),
    ("newcomers", "i4"),  # members who are not placed
    ("rating_sum", "f8"),
    ("able", "u8"),  # bit r: all members can play in region r
    ("players", "u8"),  # one bit per member (queue.bit_of); a fast test for possible conflicts
    ("names", "u8"),  # the same for players that a member avoids or has met
    ("id", "i8"),
    ("chosen_lo", "f8"),  # the union of the members' chosen filters
    ("chosen_hi", "f8"),
    ("first", "i8"),  # index of the first member in the pool
    ("named_first", "i8"),
    ("named_count", "i4"),
    ("loose", "?"),
]
TICKET = np.dtype([("queued", "i8"), *_PARTY, ("alive", "?")], align=True)
WAITING = np.dtype(  # fields read in every step of the search come first, in one cache line
    [
        ("waited", "f8"),  # seconds
        ("spread", "f8"),  # how many percentiles its match may span if it skips other tickets
        *_PARTY,
        ("slot", "i8"),
        ("lo", "f8"),  # the present window, and the widest one
        ("hi", "f8"),
        ("last_lo", "f8"),
        ("last_hi", "f8"),
    ],
    align=True,
)
MEMBER = np.dtype(
    [
        ("player", "i8"),
        ("percentile", "f8"),
        ("rating", "f8"),
        ("within", "f8"),
        ("roles", "u8"),
        ("loose", "?"),
        ("newcomer", "?"),
    ],
    align=True,
)
NAMED = np.dtype([("player", "i8"), ("met", "i8")])


class QueueView(NamedTuple):
    """N waiting tickets, ascending by lowest percentile, then time, then id, with the pools of the queue.

    t        WAITING (N,);  members  MEMBER (P,);  named  NAMED
    role     int64 (P,)  bit r: the member offers role r of the policy; of length 1 without roles
    apart_start  int64 (N+1,);  apart  int64: places of the tickets that each ticket must not meet now
    accepts  uint64 (N,)  the values of attributes and maps that each ticket accepts now; see attributes.fields_of
    """

    t: Any
    members: Any
    named: Any
    role: NDArray[np.int64]
    apart_start: NDArray[np.int64]
    apart: NDArray[np.int64]
    accepts: NDArray[np.uint64]


class KernelRules(NamedTuple):
    """The policy values that kernels read, for one team size.

    size    players in each team
    roles   whether teams need roles; their counts are passed separately as `room`
    """

    now: int
    teams: int
    size: int
    roles: bool
    rating_cap: float
    party_wait: float
    newcomer_wait: float
    rematch_wait: float
    rematch_fade: float
    spread_cost: float


F = TypeVar("F", bound=Callable[..., object])

# The type of whole numbers passed to a kernel. For a literal, numba would compile the kernel a second time.
INT64 = cast("type[int]", np.int64)

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_LEAN: dict[str, Any] = {"_nrt": False}  # no allocation and no reference counting, which is several times faster
_INNER: dict[str, Any] = {"no_cpython_wrapper": True}  # saves compiling an entry point for Python, which takes long


def compiled(function: F) -> F:
    """Compile a kernel that allocates memory. Its name changes whenever its code or a dependency changes."""
    return cast("F", use_installed(njit(**_OPTIONS)(_renamed(function))))


def lean(function: F) -> F:
    """Like `compiled`, for a kernel that allocates nothing."""
    return cast("F", use_installed(njit(**_OPTIONS, **_LEAN)(_renamed(function))))


def inner(function: F) -> F:
    """Like `compiled`, for a kernel that only other kernels call. Python cannot call it."""
    return cast("F", use_installed(njit(**_OPTIONS, **_INNER)(_renamed(function))))


def lean_inner(function: F) -> F:
    """Like `inner`, for a kernel that allocates nothing."""
    return cast("F", use_installed(njit(**_OPTIONS, **_INNER, **_LEAN)(_renamed(function))))


def merged(function: F) -> F:
    """Like `compiled`, for a small kernel that is inlined into its callers."""
    return cast("F", njit(error_model="numpy", inline="always", **_LEAN)(_renamed(function)))


def _renamed(function: F) -> F:
    """Add the fingerprint to the function's name, because numba's cache identifies kernels by name."""
    python = cast("types.FunctionType", function)
    name = f"{python.__name__}_{fingerprint(python)}"
    copy = types.FunctionType(python.__code__, python.__globals__, name, python.__defaults__)
    copy.__qualname__, copy.__module__, copy.__doc__ = name, python.__module__, python.__doc__
    copy.__annotations__ = python.__annotations__
    return cast("F", copy)


def fingerprint(function: types.FunctionType) -> str:
    """Hash everything that a kernel's machine code depends on: its code, types and constants, and the kernels it calls.

    Raises NameError for a global that is not defined yet. A kernel must follow everything that it uses.
    """
    digest = hashlib.sha256()
    for annotation in function.__annotations__.values():  # numba's cache identifies argument types by name only
        value = function.__globals__.get(annotation)
        digest.update(f"{annotation} {_described(function, annotation) if isinstance(value, type) else ''}".encode())
    for code in _codes(function.__code__):
        consts = [item for item in code.co_consts if not isinstance(item, types.CodeType) and item != function.__doc__]
        digest.update(code.co_code + repr((consts, code.co_names, code.co_varnames)).encode())
        for instruction in dis.get_instructions(code):
            if instruction.opname == "LOAD_GLOBAL" and not hasattr(builtins, instruction.argval):
                digest.update(f"{instruction.argval} {_described(function, instruction.argval)}".encode())
    return digest.hexdigest()[:12]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):  # a comprehension
            yield from _codes(constant)


def _described(function: types.FunctionType, name: str) -> str:
    """Describe a global of a kernel in a text that changes whenever the machine code would."""
    if name not in function.__globals__:
        raise NameError(f"kernel {function.__name__} uses {name}; define {name} above the kernel")
    value = function.__globals__[name]
    if isinstance(value, Dispatcher):
        return str(value.py_func.__name__)  # contains its fingerprint
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, int | float | str | tuple | np.generic | np.dtype):
        return repr(value)
    raise TypeError(f"kernel {function.__name__} uses {name}, a {type(value).__name__}, which cannot be hashed")
