"""A folder that a supervisor shares with its serving processes alone, in memory where the system has room for that."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX, LOCK = "evenmatch-serve-", "lock"
IN_MEMORY = Path("/dev/shm")
ROOM = 2**30  # free bytes that a file system in memory must have; containers often have 64 MB of it


@contextmanager
def private_folder() -> Iterator[Path]:
    """Create the folder, which is removed at the end. Folders of supervisors that were killed are removed, too."""
    base = _base()
    _remove_abandoned(base)
    folder = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=base))  # mode 0700
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        folder = folder.rename(base / folder.name.removeprefix("."))  # locked: it cannot be taken for an abandoned one
        for name in ("jobs", "sockets", "views", "next-views"):
            (folder / name).mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _base() -> Path:
    with suppress(OSError):
        if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM:
            return IN_MEMORY
    return Path(tempfile.gettempdir())


def _remove_abandoned(base: Path) -> None:
    """Remove the folders of this user whose supervisor lives no more: their lock is free."""
    for folder in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
