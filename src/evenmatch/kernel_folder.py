"""Copy the compiled kernels of an installation to numba's cache folder.

numba ignores a cache folder that it cannot write to, and containers often run on a read-only file system.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

INSTALLED = "EVENMATCH_KERNELS"  # the variable that names the folder of `evenmatch compile`
CACHE = "NUMBA_CACHE_DIR"


def copy_installed_kernels() -> int:
    """Copy files that the cache lacks or has from an older installation, and return how many were copied.

    Does nothing unless both variables name folders. Raises OSError if the cache cannot be written.
    """
    installed, cache = os.environ.get(INSTALLED), os.environ.get(CACHE)
    if not installed or not cache or not Path(installed).is_dir():
        return 0
    copied = 0
    for source in sorted(Path(installed).rglob("*.nb?"), reverse=True):  # machine code (.nbc) before its index (.nbi)
        target = Path(cache) / source.relative_to(installed)
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy_whole(source, target)
        copied += 1
    return copied


def _copy_whole(source: Path, target: Path) -> None:
    """Copy a file and its time atomically: other processes see all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        shutil.copy2(source, Path(folder) / target.name)
        (Path(folder) / target.name).replace(target)
