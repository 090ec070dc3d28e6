"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenmatch.errors import UsageError

_DRAFT = re.compile(r"\..+\.[a-z0-9_]{8}")  # as mkstemp names them below


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield the path of a draft beside `path`, which replaces `path` when the block ends.

    If the block raises, the draft is deleted and `path` stays as it was. The permissions are those of a new file.
    private  only the owner can read the file, and it is on disk when the block has ended
    Raises UsageError where the file cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o600 if private else 0o666 & ~_umask())
        if private:
            flush(draft)
        draft.replace(path)
        if private:
            flush(path.parent)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk, so that they survive a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_drafts(folder: Path) -> None:
    """Remove drafts that killed processes left below a folder. No other process may be writing there."""
    for draft in folder.rglob(".*.*"):
        if draft.is_file() and _DRAFT.fullmatch(draft.name):
            draft.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
