"""Compiled kernels: find those that are not compiled yet, compile them in child processes, load them into this one.

numba stores compiled kernels in a cache on disk, so each is compiled once per installation. Compiling holds the
interpreter lock for a long time; child processes keep the server responsive and use all processors.
Run as a program, this module is such a child: it reads one part per line, compiles it, and writes the line back.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from evenmatch import rating, systems
from evenmatch.compile_notice import is_cached
from evenmatch.errors import EvenmatchError, InputError, StoreError, UsageError
from evenmatch.match import Appearance, Match, Team
from evenmatch.online import Rater
from evenmatch.service.matchmaker_kernels import MATCHMAKER, compile_matchmaker, load_matchmaker
from evenmatch.systems import forecasts, loop
from evenmatch.systems.system import Rules

PROCESSES = 2  # child processes at most: rarely are more than two parts missing at once
PATIENCE = 5.0  # seconds to wait for a child process or a thread to end
RETRY = 2.0  # seconds between two attempts to read the database
PLAYED = datetime(2026, 1, 1, tzinfo=UTC)
DUEL = Match(
    "warm-up", PLAYED, tuple(Team((Appearance(name, score=1.0),), place) for place, name in ((1, "a"), (2, "b")))
)


def missing(parts: Iterable[str]) -> list[str]:
    """The parts, in order, that are not compiled on this machine.

    parts  names of rating systems, paths of files that define one, and parts of MATCHMAKER
    """
    return [part for part in dict.fromkeys(parts) if not is_compiled(part)]


def is_compiled(part: str) -> bool:
    """Whether the part's machine code is in the cache on disk, or cannot be cached at all."""
    if part in MATCHMAKER:
        return all(is_cached(kernel) for kernel in MATCHMAKER[part])
    return is_cached(loop.engine(systems.find(part)).replay)


def compile_part(part: str) -> None:
    """Compile a part, or load it from the cache. Raises UnknownNameError or UsageError for a missing system."""
    if part in MATCHMAKER:
        compile_matchmaker(part)
    else:
        load_system(rating.rules(part))


def load_system(rules: Rules) -> None:
    """Load the kernels of a rating system: its loop over matches and its prediction of odds."""
    with suppress(InputError):  # a system that cannot rate this match has been loaded by then
        Rater(rules).rate(DUEL)
    forecasts.odds(rules, rules.newcomers(2), [0], [1], True, 0)


class Compilation:
    """A context manager whose child processes compile parts while its block runs, and are killed at its end.

    parts  as `missing` takes them; those that are already compiled count as done
    """

    def __init__(self, parts: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(parts))
        self._done = {part: threading.Event() for part in wanted}
        self._left = deque(missing(wanted))
        for part in set(wanted).difference(self._left):
            self._done[part].set()
        self._children: list[subprocess.Popen[str]] = []
        self._feeding = 0  # child processes that still take parts
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._feeding = min(PROCESSES, os.cpu_count() or 1, len(self._left))
        for _ in range(self._feeding):
            command = [sys.executable, "-m", __name__]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._children.append(child)
            threading.Thread(target=self._feed, args=(child,), name="evenmatch-compilation", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait(PATIENCE)

    @property
    def left(self) -> int:
        """How many parts are not compiled yet."""
        return sum(not done.is_set() for done in self._done.values())

    def wait(
        self,
        parts: Iterable[str] | None = None,
        stop: threading.Event | None = None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Block until these parts (None: all) are compiled or have failed to compile, or until `stop` is set.

        progress  called from time to time with the number of parts that are compiled
        """
        waiting = [self._done[part] for part in (self._done if parts is None else parts)]
        for done in waiting:
            while not done.wait(0.2) and not (stop is not None and stop.is_set()):
                progress(len(self._done) - self.left)
        progress(len(self._done) - self.left)

    def _feed(self, child: subprocess.Popen[str]) -> None:
        """Give a child one part after the other, and wait for its end.

        Parts that are left when all children have died are compiled on first use.
        """
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with suppress(OSError), child:
                while (part := self._next()) is not None:
                    try:
                        child.stdin.write(f"{part}\n")
                        child.stdin.flush()
                        if not child.stdout.readline():
                            break
                    finally:
                        self._done[part].set()
        finally:
            with self._lock:
                self._feeding -= 1
            while not self._feeding and (part := self._next()) is not None:
                self._done[part].set()

    def _next(self) -> str | None:
        with self._lock:
            return self._left.popleft() if self._left else None


class Kernels:
    """The kernels of one process, compiled and loaded in a background thread. Safe to share between threads.

    named        returns the rules to load by the name of their system, as `systems.find` takes it
    compilation  to wait for, if the caller has started one; parts that are missing after it are compiled here
    compiling    called with the missing parts before they are compiled
    failed       called with each error that prevents a system from being loaded
    ready        set once everything that existed at the start is loaded; never cleared
    """

    def __init__(
        self,
        named: Callable[[], dict[str, Rules]],
        compilation: Compilation | None = None,
        compiling: Callable[[Sequence[str]], None] = lambda parts: None,
        failed: Callable[[EvenmatchError], None] = lambda error: None,
    ) -> None:
        self._named, self._compilation = named, compilation
        self._compiling, self._failed = compiling, failed
        self._loaded: set[str] = set()
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._begun = False
        self.matchmaker_loaded = threading.Event()
        self.ready = threading.Event()

    def begin(self) -> None:
        """Load the kernels in a thread."""
        self._begun = True
        self.follow()

    def follow(self) -> None:
        """Load the kernels of ladders created since; does nothing unless `begin` was called."""
        if self._begun:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(threading.Thread(target=self.load, name="evenmatch-kernels", daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """Abort the compilation, and wait for its threads to end."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def load(self) -> None:
        """Compile missing parts, then load everything; what cannot be loaded is reported to `failed` and skipped."""
        with self._guard:
            rules = self._read()
            if rules is None:
                return
            wanted = [name for name in sorted(rules) if name not in self._loaded]
            parts = [*([] if self.matchmaker_loaded.is_set() else MATCHMAKER), *wanted]
            self._compile([part for part in parts if part in MATCHMAKER or self._is_there(part)])
            for name in wanted:
                if self._stop.is_set():
                    return
                self._loaded.add(name)
                self._load(name, rules[name])
            if not self.matchmaker_loaded.is_set() and not self._stop.is_set():
                load_matchmaker()
                self.matchmaker_loaded.set()
            self.ready.set()

    def _read(self) -> dict[str, Rules] | None:
        """The rules by name, retried until the database answers; None once `stop` was called."""
        while True:
            try:
                return self._named()
            except StoreError as error:
                self._failed(error)
                if self._stop.wait(RETRY):
                    return None
            except EvenmatchError as error:
                self._failed(error)
                return {}

    def _load(self, name: str, rules: Rules) -> None:
        try:
            load_system(rules)
        except EvenmatchError:
            pass  # reported by `_is_there`
        except Exception as error:
            self._failed(UsageError(f"rating system {name!r} does not work: {type(error).__name__}: {error}"))

    def _is_there(self, part: str) -> bool:
        try:
            systems.find(part)
        except EvenmatchError as error:
            self._failed(error)
            return False
        return True

    def _compile(self, parts: Sequence[str]) -> None:
        if self._compilation is not None:
            self._compilation.wait(stop=self._stop)
        lacking = missing(parts)
        if lacking:
            self._compiling(lacking)
            with Compilation(lacking) as compilation:
                compilation.wait(stop=self._stop)


def main() -> None:
    """Compile each part named on standard input. Ctrl-C is left to the parent, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # most objects that compiling creates live until the process ends
    for line in sys.stdin:
        with suppress(EvenmatchError):
            compile_part(line.rstrip("\n"))
        try:
            print(line, end="", flush=True)
        except BrokenPipeError:  # the parent was killed
            os._exit(1)


if __name__ == "__main__":
    main()
