"""Compiled kernels: which this machine lacks, compiling them in processes of their own, loading them into this one.

numba keeps compiled kernels in a cache on disk, so each is compiled once per installation. Compiling holds the
interpreter's lock for long; in child processes it does not slow down the process that serves, and uses all processors.
Run as a program, this module is such a child: it reads a part per line, compiles it, and writes the same line back.
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
from evenmatch.matchmaking import Member, Met, Opening, Policy, Queue, Ticket, backfill, propose, why
from evenmatch.matchmaking.overdue import oldest_with
from evenmatch.matchmaking.passes import make_matches
from evenmatch.matchmaking.serving import serve_overdue
from evenmatch.matchmaking.tick import Tick
from evenmatch.matchmaking.view import role_room, rules_of, view_of
from evenmatch.online import Rater
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

SEARCH, TEAMS = "matchmaker: search", "matchmaker: teams"  # its two halves, which take about as long
MATCHMAKER = (SEARCH, TEAMS)
PROCESSES = 2  # children at most: more parts than that rarely lack at once
SECOND = 1_000_000
NOW = 1000 * SECOND
PATIENCE = 5.0  # seconds that a child has to end
RETRY = 2.0  # seconds until a database that did not answer is asked again
PLAYED = datetime(2026, 1, 1, tzinfo=UTC)
DUEL = Match(
    "warm-up", PLAYED, tuple(Team((Appearance(name, score=1.0),), place) for place, name in ((1, "a"), (2, "b")))
)


def missing(parts: Iterable[str]) -> list[str]:
    """Those of these parts that are not compiled on this machine, in order.

    parts  names of rating systems, paths of files that define one, and parts of MATCHMAKER
    """
    return [part for part in dict.fromkeys(parts) if not is_compiled(part)]


def is_compiled(part: str) -> bool:
    """Whether the part's machine code is in the cache on disk, or cannot be kept there anyway."""
    if part in MATCHMAKER:
        return is_cached(make_matches if part == SEARCH else oldest_with)
    return is_cached(loop.engine(systems.find(part)).replay)


def compile_part(part: str) -> None:
    """Compile a part, or load it from the cache. Raises UnknownNameError or UsageError for a system that is not there.

    A half of the matchmaker is only the larger part of its kernels; `load_matchmaker` completes them.
    """
    if part in MATCHMAKER:
        _compile_half(part)
    else:
        load_system(rating.rules(part))


def load_system(rules: Rules) -> None:
    """Load a rating system: its loop over matches, and the odds that it predicts."""
    with suppress(InputError):  # a system that cannot rate this match is loaded by then
        Rater(rules).rate(DUEL)
    loop.odds(rules, rules.newcomers(2), [0], [1], True, 0)


def load_matchmaker() -> None:
    """Load all kernels of the matchmaker: make matches of made-up parties with every wish, and fill an open slot."""
    policy = Policy(team_size=3, min_team_size=2, smaller_after=0.0, roles={"guard": 1}, max_odds=None, uncertainty=1.0)
    queue = Queue()
    for ticket in _parties():
        queue.join(ticket)
    propose(queue, NOW, policy)
    why(0, queue, NOW, policy)
    inside = Ticket(id=100, queued=0, members=(_member(200),))
    backfill([Opening(match=0, formed=NOW, teams=((inside,), ()), seats=(2, 3))], queue, NOW, policy)
    for plain in (Policy(team_size=1), Policy(team_size=5), Policy(team_size=1, teams=4)):
        solos = Queue()
        for ticket in _parties():
            if len(ticket.members) <= plain.team_size:
                solos.join(ticket)
        propose(solos, NOW, plain)


class Compilation:
    """Child processes that compile parts while the block runs, and end with it.

    parts  as `missing` takes them; those that are compiled already are done at once
    """

    def __init__(self, parts: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(parts))
        self._done = {part: threading.Event() for part in wanted}
        self._left = deque(missing(wanted))
        for part in set(wanted).difference(self._left):
            self._done[part].set()
        self._children: list[subprocess.Popen[str]] = []
        self._feeding = 0  # children that still take parts
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
        """Until these parts are compiled (None: all), or `stop`. A part that a child could not compile counts, too.

        progress  called now and then with the number of parts that are compiled
        """
        waiting = [self._done[part] for part in (self._done if parts is None else parts)]
        for done in waiting:
            while not done.wait(0.2) and not (stop is not None and stop.is_set()):
                progress(len(self._done) - self.left)
        progress(len(self._done) - self.left)

    def _feed(self, child: subprocess.Popen[str]) -> None:
        """Give a child one part after the other; parts left when every child has died are compiled on first use."""
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with suppress(OSError), child.stdin as parts, child.stdout as answers:
                while (part := self._next()) is not None:
                    try:
                        parts.write(f"{part}\n")
                        parts.flush()
                        if not answers.readline():
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
    """The kernels that one process uses, compiled and loaded beside its requests. Safe to share between threads.

    named        gives the rules to load by the name of their system, as `systems.find` takes it
    compilation  of these parts, if it has begun elsewhere; None: what is missing is compiled here
    compiling    called with the parts that this machine lacks before they are compiled
    failed       called with an error that keeps a system from being loaded
    ready        set for good once everything was loaded that was there at the start
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
        """Load those of ladders made since; nothing where `begin` was never called."""
        if self._begun:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(threading.Thread(target=self.load, name="evenmatch-kernels", daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """Give up what is being compiled, and wait until that has ended."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def load(self) -> None:
        """Compile what this machine lacks, then load everything; what cannot be loaded is told, and left out."""
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
        """The rules by name; tried again until the database answers, None once this is to stop."""
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


def _parties() -> list[Ticket]:
    """Parties of one and two; each third has waited for long."""
    made = []
    for number in range(24):
        members = tuple(_member(2 * number + place) for place in range(1 + number % 2))
        made.append(Ticket(id=number, queued=0 if number % 3 else NOW - SECOND, members=members))
    return made


def _member(player: int) -> Member:
    return Member(
        player=player,
        percentile=50.0 + player % 5,
        rating=1500.0 + player,
        within=20.0,
        deviation=1.0,
        newcomer=player % 2 == 0,
        roles=("guard",) if player % 3 == 0 else (),
        ping={"here": 20.0},
        avoid=(player + 10,),
        met=(Met(player + 3, NOW - SECOND),),
    )


def _compile_half(part: str) -> None:
    """Compile what searches for matches, or what serves overdue tickets and divides matches into teams."""
    policy, queue = Policy(team_size=1, overdue_after=0.0), Queue()
    for number in range(4):
        member = Member(player=number, percentile=50.0, rating=1500.0, within=20.0, ping={"here": 20.0})
        queue.join(Ticket(id=number, queued=0, members=(member,)))
    tick = Tick(queue, view_of(queue, SECOND, policy)[0], SECOND, policy)
    if part == TEAMS:
        serve_overdue(tick)
    else:
        rules, room = rules_of(policy, SECOND, policy.team_size), role_room(policy, policy.team_size)
        make_matches(tick.view, tick.windows, tick.places, ~tick.free, rules, room)


def main() -> None:
    """Compile each part that standard input names. Ctrl-C is for the parent, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # compiling makes much that lasts until the end
    for line in sys.stdin:
        with suppress(EvenmatchError):
            compile_part(line.rstrip("\n"))
        print(line, end="", flush=True)


if __name__ == "__main__":
    main()
