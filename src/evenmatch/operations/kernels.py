"""Compiled kernels: find missing ones, compile them in child processes, and load them into this process.

numba stores compiled kernels in a cache on disk, so each is compiled once per installation. Compiling holds the
interpreter lock for a long time. Child processes keep the server responsive and use all processors. Run as a program,
this module is such a child.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from evenmatch import rating, systems
from evenmatch.compile_notice import is_cached, load_kernels
from evenmatch.durations import SECOND
from evenmatch.errors import EvenmatchError, InputError, StoreError, UsageError
from evenmatch.match import Appearance, Match, Team
from evenmatch.matchmaking import Member, Met, Opening, Policy, Queue, Ticket, backfill, propose, why
from evenmatch.matchmaking.balance import divide
from evenmatch.matchmaking.conflict import keep_apart, worth
from evenmatch.matchmaking.match_details import assigned_roles, by_team, line_ups, measure, proposals_of, rematch_costs
from evenmatch.matchmaking.overdue import oldest_with
from evenmatch.matchmaking.passes import MatchRegions, TicketWindows, make_matches
from evenmatch.matchmaking.queue import count_arrivals, fill_waiting, join, merge
from evenmatch.matchmaking.records import MEMBER, NAMED, WAITING, QueueView
from evenmatch.matchmaking.roles import add_party
from evenmatch.matchmaking.tick import TickState
from evenmatch.matchmaking.view import role_room, rules_of, view_of
from evenmatch.online import Rater
from evenmatch.systems import forecasts, loop
from evenmatch.systems.system import Rules

if TYPE_CHECKING:
    from evenmatch.ladders.ladders import Ladder

# The first two take about equally long to compile; the small last one goes to whichever process finishes first.
SEARCH, TEAMS, LATER = "matchmaker: search", "matchmaker: teams", "matchmaker: overdue tickets"
MATCHMAKER: Mapping[str, tuple[object, ...]] = {  # by part: the kernels that are called from Python
    SEARCH: (make_matches,),
    TEAMS: (
        *(join, count_arrivals, merge, fill_waiting, keep_apart, divide, line_ups, by_team, measure),
        *(assigned_roles, rematch_costs),
    ),
    LATER: (oldest_with, worth, add_party),
}
NOW = 1000 * SECOND


def compile_matchmaker(part: str) -> None:
    """Compile a part of MATCHMAKER, or load it from the cache."""
    if part == SEARCH:
        _compile_search()
    elif part == TEAMS:
        _compile_teams()
    else:
        _compile_later()


def load_matchmaker() -> None:
    """Load all kernels of the matchmaker: match invented parties with every option, and fill an open slot."""
    policy = Policy(team_size=3, min_team_size=2, smaller_after=0.0, roles={"guard": 1}, max_odds=None)
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


def _parties() -> list[Ticket]:
    """Parties of one and two players, some of whom have waited long."""
    parties = []
    for number in range(24):
        members = tuple(_member(2 * number + place) for place in range(1 + number % 2))
        parties.append(Ticket(id=number, queued=0 if number % 3 else NOW - SECOND, members=members))
    return parties


def _member(player: int) -> Member:
    return Member(
        player=player,
        percentile=50.0 + player % 5,
        rating=1500.0 + player,
        within=20.0,
        newcomer=player % 2 == 0,
        roles=("guard",) if player % 3 == 0 else (),
        ping={"here": 20.0},
        avoid=(player + 10,),
        met=(Met(player + 3, NOW - SECOND),),
    )


def _compile_search() -> None:
    """Compile the search for matches. The queue is empty and made by hand, so kernels of other parts are not needed."""
    policy, none, floats = Policy(team_size=1), np.empty(0, np.int64), np.empty(0)
    windows, taken = TicketWindows(floats, floats, floats, floats), np.empty(0, np.bool_)
    rules, room = rules_of(policy, SECOND, policy.team_size), role_room(policy, policy.team_size)
    view = _blank_view(0)
    make_matches(view, windows, MatchRegions(none, none), view.accepts, taken, rules, room)


def _compile_teams() -> None:
    """Compile joining, the division into teams, and the description of a match."""
    policy, queue = Policy(team_size=1), Queue()
    for number in range(2):
        member = Member(player=number, percentile=50.0, rating=1500.0, within=20.0, ping={"here": 20.0})
        queue.join(Ticket(id=number, queued=0, members=(member,)))
    view, expired = view_of(queue, SECOND, policy)
    tick = TickState(queue, view, SECOND, policy)
    tick.make(np.array([0, 2]), np.array([0, 1]), rules_of(policy, SECOND, policy.team_size))
    proposals_of(queue, tick.view, policy, SECOND, tick.matches(), expired)


def _compile_later() -> None:
    """Compile the kernels for overdue tickets, open seats and explanations, with a blank ticket made by hand."""
    policy, view, windows = Policy(team_size=1), _blank_view(1), np.zeros(1)
    rules, room = rules_of(policy, SECOND, policy.team_size), role_room(policy, policy.team_size)
    order, free = np.zeros(1, np.int64), np.ones(1, np.bool_)
    oldest_with(view, windows, windows, order, 0, 0, np.uint64(0), free, rules, room, np.zeros(1, np.int64), 1)
    worth(view, rules, 0, 0)
    add_party(np.zeros(len(room), np.int64), room, 1, view, 0)


def _blank_view(count: int) -> QueueView:
    """A view of `count` tickets without members."""
    records = (np.zeros(count, WAITING), np.zeros(0, MEMBER), np.zeros(0, NAMED))
    start, none = np.zeros(count + 1, np.int64), np.empty(0, np.int64)
    return QueueView(*records, none, start, none, np.zeros(count, np.uint64))


PROCESSES = 2  # child processes at most; more than two parts are rarely missing at once
POLL = 0.2  # seconds between checks of the cache
PATIENCE = 5.0  # seconds to wait for a child process or a thread to end
RETRY = 2.0  # seconds between attempts to read the database
PLAYED = datetime(2026, 1, 1, tzinfo=UTC)
DUEL = Match(
    "warm-up", PLAYED, tuple(Team((Appearance(name, score=1.0),), place) for place, name in ((1, "a"), (2, "b")))
)


def missing(parts: Iterable[str]) -> list[str]:
    """The parts, in order, that are not compiled on this machine.

    parts  names of rating systems, paths of files that define one, `in_context` of these, and parts of MATCHMAKER
    """
    return [part for part in dict.fromkeys(parts) if not is_compiled(part)]


IN_CONTEXT = " in context"


def in_context(system: str) -> str:
    """The part of a rating system that rates matches with context columns."""
    return system + IN_CONTEXT


def parts_of(ladders: Sequence[Ladder]) -> dict[str, Rules]:
    """The parts that these ladders are rated with, and the rules to load each with."""
    parts = {ladder.system: ladder.rules for ladder in ladders}
    return parts | {in_context(ladder.system): ladder.rules for ladder in ladders if ladder.settings.context}


def is_compiled(part: str) -> bool:
    """True if the part's machine code is in the disk cache, or cannot be cached."""
    if part in MATCHMAKER:
        return all(is_cached(kernel) for kernel in MATCHMAKER[part])
    system = systems.find(part.removesuffix(IN_CONTEXT))
    engine = loop.engine(system)
    if part.endswith(IN_CONTEXT):
        return system.methods is not None or is_cached(engine.replay_in_context)
    return system.methods is not None or (is_cached(engine.replay) and is_cached(engine.forecast))


def compile_part(part: str) -> None:
    """Compile a part, or load it from the cache. Raises UnknownNameError or UsageError for a missing system."""
    if part in MATCHMAKER:
        compile_matchmaker(part)
    else:
        load_system(rating.rules(part.removesuffix(IN_CONTEXT)), part)


def load_system(rules: Rules, part: str = "") -> None:
    """Load the kernels of a rating system: its loop over matches and its prediction of odds.

    part  `in_context` of the system: only the loop over matches with context columns
    """
    if part.endswith(IN_CONTEXT):
        load_kernels(rules, in_context=True)
        return
    with suppress(InputError):  # a system that cannot rate this match is loaded anyway
        Rater(rules).rate(DUEL)
    forecasts.odds(rules, rules.newcomers(2), [0], [1], True, 0)


class Compilation:
    """A context manager whose child processes compile parts while its block runs, and are killed at the end.

    parts  as accepted by `missing`, the most urgent first
    """

    def __init__(self, parts: Iterable[str]) -> None:
        self._parts = list(dict.fromkeys(parts))
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        lacking = missing(self._parts)
        count = min(PROCESSES, os.cpu_count() or 1, len(lacking))
        for number in range(count):
            command = [sys.executable, "-m", __name__, *lacking[number::count]]
            self._children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait(PATIENCE)

    @property
    def left(self) -> int:
        """The number of parts that are not compiled yet; 0 if no child process is alive to compile them."""
        alive = [child for child in self._children if child.poll() is None]
        return len(missing(self._parts)) if alive else 0

    def wait(
        self,
        parts: Iterable[str] | None = None,
        stop: threading.Event | None = None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Block until these parts (None: all) are compiled, all child processes have ended, or `stop` is set.

        progress  called from time to time with the number of parts that are compiled
        """
        wanted = None if parts is None else list(parts)
        while (left := self.left) and not (stop is not None and stop.is_set()):
            if wanted is not None and not missing(wanted):
                break
            progress(len(self._parts) - left)
            time.sleep(POLL)
        progress(len(self._parts) - left)
        if not left:
            for child in self._children:  # it ends once its last part is compiled
                with suppress(subprocess.TimeoutExpired):
                    child.wait(PATIENCE)


class Kernels:
    """The kernels of one process, compiled and loaded in a background thread. Safe to share between threads.

    named        returns the rules to load by the name of their system, as accepted by `systems.find`
    compilation  one that the caller has started, to wait for; parts missing afterwards are compiled here
    compiling    called with the missing parts before they are compiled
    failed       called with each error that prevents a system from loading
    ready        set once all systems that existed at the start are loaded; never cleared
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
        """Load the kernels of newly created ladders; does nothing unless `begin` was called."""
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
        """Compile missing parts, then load everything; systems that fail to load are reported to `failed`."""
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
            load_system(rules, name)
        except EvenmatchError:
            pass  # reported by `_is_there`
        except Exception as error:
            self._failed(UsageError(f"rating system {name!r} does not work: {type(error).__name__}: {error}"))

    def _is_there(self, part: str) -> bool:
        try:
            systems.find(part.removesuffix(IN_CONTEXT))
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
    """Compile the parts named by the arguments. Ignores Ctrl-C; the parent ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # most objects that compiling creates live until the process ends
    for part in sys.argv[1:]:
        with suppress(EvenmatchError):
            compile_part(part)


if __name__ == "__main__":
    main()
