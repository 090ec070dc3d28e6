"""The machine that a benchmark runs on."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa


def versions() -> str:
    """The versions of what decides about speed."""
    compiler = "no gcc"
    if gcc := shutil.which("gcc"):
        shown = subprocess.run([gcc, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout
        compiler = f"gcc {shown.strip()}"
    return (
        f"{platform.system()}, Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}, "
        f"pyarrow {pa.__version__}, {compiler}"
    )


def processor() -> str:
    """The processor's name, with its family and model where the name says little."""
    told = Path("/proc/cpuinfo")
    if not told.exists():
        return platform.processor() or platform.machine()
    facts = dict(
        line.split(":", 1) for line in told.read_text().split("\n\n", maxsplit=1)[0].splitlines() if ":" in line
    )
    known = {name.strip(): value.strip() for name, value in facts.items()}
    name = known.get("model name", platform.machine())
    return f"{name} (family {known['cpu family']}, model {known['model']})" if "cpu family" in known else name
