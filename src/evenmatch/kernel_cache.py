"""Load the compiled kernels of a wheel or a container image, which run on every processor of their architecture.

numba looks for machine code of exactly this processor, in one folder that it can write to. The portable machine code is
in the folders `__pycache__` beside the sources; `evenmatch compile` puts it there with NUMBA_CPU_NAME=generic. It is
used if numba finds nothing of its own. If it does not fit either, the kernel is compiled.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

D = TypeVar("D")
ANY_PROCESSOR = ("generic", "")  # its name and features in numba's index
_IGNORED = "EVENMATCH_OWN_KERNELS"  # set for this process and its children, see `ignore_installed`


class KernelCache(FunctionCache):
    """numba's cache of one function, then the machine code that was installed with the package."""

    def __init__(self, function: Any) -> None:  # noqa: ANN401 - numba has no public types for its caches
        super().__init__(function)  # type: ignore[no-untyped-call]
        folder = Path(function.__code__.co_filename).parent / "__pycache__"
        name, stamp = self._impl.filename_base, self._cache_file._source_stamp
        self._installed = IndexDataCacheFile(str(folder), name, stamp)  # type: ignore[no-untyped-call]

    def is_filled(self, codegen: Any) -> bool:  # noqa: ANN401
        """Whether there is machine code for this processor, version of numba and source, of any signature."""
        machine = codegen.magic_tuple()
        own = self._cache_file._load_index()  # type: ignore[no-untyped-call]
        installed = {} if _IGNORED in os.environ else self._installed._load_index()  # type: ignore[no-untyped-call]
        return any(key[1] == machine for key in own) or any(key[1] == _portable(machine) for key in installed)

    def other_numba(self) -> str | None:
        """The version of numba that compiled what was installed, if it is not the one that runs."""
        try:
            with open(self._installed._index_path, "rb") as index:
                version: str = pickle.load(index)
        except FileNotFoundError:
            return None
        return None if version == numba.__version__ else version

    def _load_overload(self, signature: Any, context: Any) -> Any:  # noqa: ANN401
        found = super()._load_overload(signature, context)  # type: ignore[no-untyped-call]
        if found is not None or _IGNORED in os.environ:
            return found
        kind, machine, code = self._index_key(signature, context.codegen())  # type: ignore[no-untyped-call]
        data = self._installed.load((kind, _portable(machine), code))  # type: ignore[no-untyped-call]
        return None if data is None else self._impl.rebuild(context, data)


def _portable(machine: tuple[str, str, str]) -> tuple[str, str, str]:
    return (machine[0], *ANY_PROCESSOR)


def use_installed(compiled: D) -> D:
    """Let a function compiled with `cache=True` load the machine code that was installed with the package."""
    dispatcher: Any = compiled
    dispatcher._cache = KernelCache(dispatcher.py_func)
    return compiled


def ignore_installed() -> None:
    """Have this process and its children compile for their own processor what was installed for any."""
    os.environ[_IGNORED] = "1"
