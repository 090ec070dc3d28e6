"""Places for jobs that the processes of a machine share, so that together they run no more than one process would."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class JobSlots:
    """Some files in a private folder; a job runs while its process has locked one, which the end of it releases.

    sort     of jobs: each has files of its own
    at_once  number of files
    """

    def __init__(self, folder: Path, sort: str, at_once: int) -> None:
        self._paths = [folder / f"{sort}-{number}" for number in range(at_once)]

    def take(self) -> int | None:
        """Lock a free one and return its descriptor, which the caller closes; None: there is none now."""
        for path in self._paths:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            os.close(handle)
        return None
