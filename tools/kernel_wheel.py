"""A build hook that packs compiled kernels into the wheel, for one version of Python and one platform.

Off unless `tools/dist.py` turns it on and names, in KERNELS, the installation whose kernels were compiled.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "EVENMATCH_WHEEL_KERNELS"  # the variable that names the folder of the installed package


class KernelHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(os.environ[KERNELS])
        for file in package.rglob("__pycache__/*.nb?"):  # numba's index and its machine code
            build_data["force_include"][str(file)] = str(Path("evenmatch") / file.relative_to(package))
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        # Machine code names no version of the C library, so the oldest platform that pip knows is right on Linux.
        platform = sysconfig.get_platform().replace("linux", "manylinux_2_17").replace("-", "_").replace(".", "_")
        build_data["tag"] = f"{python}-{python}-{platform}"
        build_data["pure_python"] = False
