"""The same rating in plain C (loops.c): the limit that the package's speed is held against."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from evenmatch.history import Floats, History
from evenmatch.systems.system import Records

SOURCE = Path(__file__).with_name("loops.c")
OUT = SOURCE.parent / "out"
FLAGS = ("-O3", "-march=native", "-fPIC", "-shared")
READ = (
    *("time", "team_start", "place", "team_score", "slot_start", "player", "score", "seconds", "performance"),
    *("quit", "duration"),
)


class Arrays(ctypes.Structure):
    """The `History` of loops.c."""

    _fields_ = (("matches", ctypes.c_int64), *((name, ctypes.c_void_p) for name in (*READ, "expected")))


@cache
def compiled() -> ctypes.CDLL | None:
    """The C loops, compiled now; None where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    OUT.mkdir(exist_ok=True)
    library = OUT / "loops.so"
    subprocess.run([gcc, *FLAGS, str(SOURCE), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


class Limit:
    """A history laid out for a C loop, with room for what it writes."""

    def __init__(self, library: ctypes.CDLL, system: str, history: History) -> None:
        columns = history.columns._asdict()
        self.expected: Floats = np.empty(len(history.columns.place))
        self._columns = history.columns
        self._arrays = Arrays(len(history), *(columns[name].ctypes.data for name in READ), self.expected.ctypes.data)
        self._run = library[system]
        self._run.restype = None

    @staticmethod
    def built() -> str:
        """How the loops are compiled, for people."""
        return " ".join(("gcc", *FLAGS[:2]))

    def replay(self, state: Records) -> Records:
        """The state after all matches; the one given stays as it was, as in evenmatch.systems.loop.replay."""
        state = state.copy()
        self._run(ctypes.byref(self._arrays), ctypes.c_void_p(state.ctypes.data))
        return state
