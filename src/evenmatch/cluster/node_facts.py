"""The facts that the results of a node depend on, compared with this machine before any work is given to it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite
import numba
import numpy as np

from evenmatch import __version__, systems
from evenmatch.errors import EvenmatchError
from evenmatch.systems.fingerprint import fingerprint


def node_facts(names: Sequence[str]) -> dict[str, str]:
    """Versions, kind of processor, and the fingerprint of each of these systems; names as `systems.find` takes them."""
    return {
        "evenmatch": __version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "processor": f"{platform.system()} {platform.machine()}",
        **{f"kernels of {name}": _kernels(name) for name in names},
    }


@cache
def _kernels(name: str) -> str:
    try:
        return fingerprint(systems.find(name))[:16]
    except EvenmatchError as error:  # for example a file that is not there on this node
        return str(error)


def differences(facts: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """The facts that are not as expected, in words."""
    if facts.get("evenmatch") != expected["evenmatch"]:
        wrong = ["evenmatch"]
    else:
        wrong = [name for name in expected if facts.get(name) != expected[name]]
    return [f"{name} {facts.get(name, 'is missing')}, here {expected[name]}" for name in wrong]
