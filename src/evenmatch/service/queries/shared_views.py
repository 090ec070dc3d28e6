"""Views of standings that one process of a machine computes, and the others map into their memory read-only.

A view is a file in a private folder: its arrays as they are in memory, and the rest of it pickled (protocol 5, which
leaves arrays out). A newer view replaces the file by a rename; who has mapped the older one keeps it until its last
array is dropped, and then nothing is left of it. Only processes that may enter the folder can write there what is
unpickled here.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path

import numpy as np

from evenmatch.ledger.store import Head
from evenmatch.service.queries.standings_view import View
from evenmatch.service.settings import Settings
from evenmatch.standings.board import Board, Snapshot
from evenmatch.standings.rules import StandingsRules

FEWEST = 1000  # players: smaller views are computed as fast as they are read
SIGN = 1.0  # seconds between two signs of life of a process that computes a view
PATIENCE = 5.0  # seconds without one after which it counts as frozen, and stops the others no longer
FIRST_PATIENCE = 30.0  # the same where all players are read: some steps of that hold the interpreter's lock for seconds
LOOK = 0.005  # seconds between two looks whether it has
ALIGNED = 64  # bytes: an array begins at a multiple of it
HEAD = struct.Struct("<16sddQQ")  # layout, begun, taken, bytes of the pickle, number of arrays
SPAN = struct.Struct("<QQ")  # begin and length of an array


def _layout() -> bytes:
    """A digest of what a file contains: during a reload, processes of two versions share the folder."""
    classes = (View, Snapshot, Board, Settings, StandingsRules)
    names = [[field.name for field in fields(each)] for each in classes]
    return blake2b(repr((names, Head._fields, np.__version__)).encode(), digest_size=16).digest()


LAYOUT = _layout()


class SharedViews:
    """The folder of views that the processes of a machine share. Safe to share between threads.

    fewest  players of a view that is shared
    """

    def __init__(self, folder: Path, fewest: int = FEWEST) -> None:
        self._folder, self._fewest = folder, fewest

    def find(self, ladder: str, after: float) -> View | None:
        """The latest view of a ladder; None if there is none that began after a time of the monotonic clock."""
        with suppress(OSError), self._path(ladder).open("rb") as file:
            layout, begun, _, size, count = HEAD.unpack(file.read(HEAD.size))
            if layout != LAYOUT or begun < after:
                return None
            memory = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
            begin = HEAD.size + count * SPAN.size
            spans = SPAN.iter_unpack(memory[HEAD.size : begin])
            arrays = [memory[first : first + length] for first, length in spans]
            view = pickle.loads(memory[begin : begin + size], buffers=arrays)
            assert isinstance(view, View)
            return view
        return None

    def publish(self, view: View) -> View:
        """Let other processes have a view; return it with its arrays in the shared memory.

        A small view, and one for which the file system has no room, is returned as it is.
        """
        if len(view.snapshot.board) < self._fewest:
            return view
        if view.settings.show != "rating":
            _ = view.shown  # the others need it, too
        path = self._path(view.head.name)
        draft = path.with_name(f"{path.name}.draft-{os.getpid()}")
        try:
            self._write(draft, view)
            draft.rename(path)
        except OSError:
            draft.unlink(missing_ok=True)
            self.withdraw(view.head.name)  # an older one would be taken for the latest
            return view
        return self.find(view.head.name, view.begun) or view

    def _write(self, path: Path, view: View) -> None:
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(view, protocol=5, buffer_callback=buffers.append)
        arrays = [buffer.raw() for buffer in buffers]
        end = HEAD.size + len(arrays) * SPAN.size + len(pickled)
        spans = []
        for array in arrays:
            begin = -(-end // ALIGNED) * ALIGNED
            spans.append((begin, array.nbytes))
            end = begin + array.nbytes
        with path.open("wb") as file:  # written, not mapped: a full file system is an error, and not a signal
            file.write(HEAD.pack(LAYOUT, view.begun, view.taken, len(pickled), len(arrays)))
            file.writelines(SPAN.pack(*span) for span in spans)
            file.write(pickled)
            for (begin, _), array in zip(spans, arrays, strict=True):
                file.seek(begin)
                file.write(array)

    def withdraw(self, ladder: str) -> None:
        """Remove the view of a ladder that was changed, so that no process takes it for the latest."""
        self._path(ladder).unlink(missing_ok=True)

    @contextmanager
    def turn(self, ladder: str, *, is_first: bool = False) -> Iterator[None]:
        """Wait while another process computes the view of a ladder, and let the others wait.

        The process that computes gives a sign of life each second, whatever the view takes; after PATIENCE without one
        it counts as frozen, and this process goes on. is_first: this process has no view of the ladder.
        """
        with ExitStack() as locked:
            with suppress(OSError):  # without room for a lock each process computes its views itself
                path = self._path(ladder).with_suffix(".lock")
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                locked.callback(os.close, handle)  # releases the lock, as the end of the process does
                if _lock(handle, FIRST_PATIENCE if is_first else PATIENCE):
                    locked.enter_context(_signs_of_life(handle))
            yield

    def _path(self, ladder: str) -> Path:
        return self._folder / f"{blake2b(ladder.encode(), digest_size=16).hexdigest()}.view"


def _lock(handle: int, patience: float) -> bool:
    """Lock an open file once no other process has it locked; False: it is, and has given no sign of life for long."""
    last, changed = -1, time.monotonic()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            present, now = os.fstat(handle).st_mtime_ns, time.monotonic()
            if present != last:
                last, changed = present, now
            elif now - changed > patience:
                return False
            time.sleep(LOOK)
        else:
            return True


@contextmanager
def _signs_of_life(handle: int) -> Iterator[None]:
    """Set the time of a file now and each second, until the block ends."""
    ended = threading.Event()

    def give() -> None:
        while True:
            os.utime(handle)
            if ended.wait(SIGN):
                return

    thread = threading.Thread(target=give, name="evenmatch-view", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
