"""What the processes do that are killed, or that write all at once. Each is a function to be run in a child process.

A child tells its parent by a pipe what was acknowledged, as soon as it was; what is written outlives the child.
"""

import contextlib
import ctypes
import os
import signal
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import NamedTuple

import psycopg  # noqa: F401 - imported before the fork, so that no child has to
import sqlalchemy
import sqlalchemy.dialects.postgresql.psycopg

from crash.numbered_matches import LADDER, PLAYERS, numbered_match, numbered_matches
from evenmatch import rules, tables
from evenmatch.corrections import repair
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.errors import ConflictError, StoreError, UnknownNameError
from evenmatch.ledger import event_rows
from evenmatch.ledger.events import Kind
from evenmatch.operations.service import Service
from evenmatch.recording import imports, recorder
from evenmatch.recording.receipts import MatchReceipt

SYSTEM = "glicko2"
CHEATER = "player 7"
CAPABILITY_VERSION_3 = 0x20080522


Plain = tuple[object, ...]  # what a receipt tells


class Kept(NamedTuple):
    """These matches were acknowledged; receipts by number, None where an import gave none."""

    receipts: dict[int, Plain | None]


class TaskBegun(NamedTuple):
    """The task was begun in which this process is to be killed."""

    task: str


class Corrected(NamedTuple):
    """A correction was acknowledged: a word of the ledger's."""

    kind: str


def soon_after() -> int:
    """A clock by which everybody played a few days ago."""
    return numbered_match(0).time + 5 * 86_400_000_000


@contextlib.contextmanager
def in_small_steps() -> Iterator[None]:
    """Transactions and checkpoints so small that a short ladder needs many, as a long one does."""
    sizes = {
        (event_rows, "BATCH"): 300,
        (imports, "AT_ONCE"): 40,
        (imports, "APART"): 400,
        (repair, "AT_ONCE"): 60,
        (repair, "APART"): 500,
        (recorder, "CHECKPOINT"): 200,
    }
    before = {key: getattr(*key) for key in sizes}
    for (module, name), size in sizes.items():
        setattr(module, name, size)
    try:
        yield
    finally:
        for (module, name), size in before.items():
            setattr(module, name, size)


class ReportSender:
    """Reports matches by number, each task in one of the ways that a service offers."""

    def __init__(self, service: Service, pipe: Connection, chance: Random, next_number: int) -> None:
        self.service, self.chance, self.next = service, chance, next_number
        self._pipe, self._guard = pipe, threading.Lock()

    def tell(self, what: Kept | TaskBegun | Corrected) -> None:
        with self._guard:  # of one message at a time
            self._pipe.send(what)

    def some(self, count: int) -> None:
        """So many tasks at random."""
        for task in self.chance.choices(list(TASKS), list(TASKS.values()), k=count):
            getattr(self, task)()

    def single(self) -> None:
        for number in self._take(5):
            self.tell(Kept({number: receipt_values(self.service.record(numbered_match(number)))}))

    def many(self) -> None:
        numbers = self._take(25)
        outcomes = self.service.record_many(LADDER, [numbered_match(number) for number in numbers])
        self.tell(Kept(dict(zip(numbers, map(receipt_values, outcomes), strict=True))))

    def together(self) -> None:
        """Four threads at once, whose matches share transactions."""

        def send(numbers: range) -> None:
            for number in numbers:
                self.tell(Kept({number: receipt_values(self.service.record(numbered_match(number)))}))

        threads = [threading.Thread(target=send, args=(self._take(6),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def load(self) -> None:
        numbers = self._take(150)
        self.service.import_matches(LADDER, tables.from_matches(numbered_matches(numbers.start, numbers.stop)))
        self.tell(Kept(dict.fromkeys(numbers)))

    def correct(self) -> None:
        if self.chance.random() < 0.5 and self.next:
            kind = correct_match(self.service, f"m{self.chance.randrange(self.next)}")
        else:
            kind = correct_player(self.service, f"player {self.chance.randrange(PLAYERS)}", self.chance)
        if kind is not None:
            self.tell(Corrected(kind))

    def retune(self) -> None:
        """Other parameters, from the start or from now on."""
        tuned = rules(SYSTEM, tau=self.chance.choice((0.3, 0.5, 0.9)))
        self.service.change_rules(LADDER, SYSTEM, tuned, start=self.chance.random() < 0.5)
        self.tell(Corrected("rules-changed"))

    def season(self) -> None:
        self.service.open_season(LADDER, reset="soft", factor=0.75)
        self.tell(Corrected("season-opened"))

    def _take(self, count: int) -> range:
        self.next += count
        return range(self.next - count, self.next)


def receipt_values(outcome: object) -> Plain:
    """What the receipt tells, as it goes through a pipe; a refusal ends the child, and its parent fails."""
    if not isinstance(outcome, MatchReceipt):
        raise TypeError(f"refused: {outcome}")
    return outcome.match_id, outcome.ladder, outcome.position, outcome.rated, outcome.teams


KINDS = {Void: Kind.VOIDED, Unvoid: Kind.UNVOIDED, Ban: Kind.BANNED, Reinstate: Kind.REINSTATED}


def apply_first(service: Service, *corrections: Void | Unvoid | Ban | Reinstate) -> str | None:
    """Apply the first of these corrections without a conflict and return its kind; None if a name is unknown."""
    for correction in corrections:
        with contextlib.suppress(ConflictError):
            try:
                service.correct(LADDER, correction)
            except UnknownNameError:
                return None
            return KINDS[type(correction)].value
    raise AssertionError(f"all of {corrections} conflict with the ledger")


def correct_match(service: Service, match_id: str) -> str | None:
    """Void a match or, if it is void, count it again; return the kind of event."""
    return apply_first(service, Void(match_id, "test"), Unvoid(match_id, "test"))


def correct_player(service: Service, name: str, chance: Random) -> str | None:
    """Ban a player by either rule or, if they are banned, reinstate them; return the kind of event."""
    return apply_first(service, Ban(name, chance.choice(("void", "refund"))), Reinstate(name))


TASKS = {"single": 6, "many": 4, "together": 4, "load": 2, "correct": 3, "retune": 1, "season": 0.3}


def write_for_ever(url: str, pipe: Connection, seed: int, next_number: int, task: str) -> None:
    """Do a few tasks, then the one to be killed in, then others until it happens."""
    chance = Random(seed)
    with in_small_steps(), Service.open(url) as service:
        sender = ReportSender(service, pipe, chance, next_number)
        sender.single()
        sender.some(chance.randrange(4))
        sender.tell(TaskBegun(task))
        getattr(sender, task)()
        while True:
            sender.some(1)


def die_at_commit(url: str, pipe: Connection, act: Callable[[Service], object], number: int) -> None:
    """Do something, and kill this process when it is about to commit its transaction of that number, counted from 1."""
    with in_small_steps(), Service.open(url) as service:
        service.ladders()
        left = [number]

        def commit(_: object) -> None:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

        sqlalchemy.event.listen(sqlalchemy.Engine, "commit", commit)
        act(service)
        pipe.send("done")


def record_range(
    url: str, pipe: Connection, ladders: list[str], numbers: range, size: int, players: int = PLAYERS
) -> None:
    """Record these matches on each of these ladders in turn, `size` at a time, when the parent says so."""
    with Service.open(url) as service:
        wait_for_start(pipe)
        for first in range(0, len(numbers), size):
            for ladder in ladders:
                matches = [numbered_match(number, ladder, players) for number in numbers[first : first + size]]
                for outcome in service.record_many(ladder, matches):
                    receipt_values(outcome)
        pipe.send("done")


def repeat(url: str, pipe: Connection, act: Callable[[Service, int], None], times: int) -> None:
    """Do something several times, when the parent says so."""
    with in_small_steps(), Service.open(url) as service:
        wait_for_start(pipe)
        for at in range(times):
            act(service, at)
        pipe.send("done")


def read_until_told(url: str, pipe: Connection) -> None:
    """Read the standings over and over, when the parent says so, until it says stop; then tell all that was seen.

    That is: the different standings, as ratings by player's id without the cheater's, and how often any were read.
    """
    with Service.open(url, soon_after) as service:
        wait_for_start(pipe)
        seen: dict[frozenset[tuple[int, float]], None] = {}
        count, left_out = 0, service.player(CHEATER)
        while not pipe.poll():
            view = service.view(LADDER)
            board = view.snapshot.board
            listed = zip(board.player.tolist(), board.rating.tolist(), strict=True)
            seen[frozenset(one for one in listed if one[0] != left_out)] = None
            page = service.named(view.snapshot.page(1, 20))
            assert bool(page) == bool(board.completed.any())  # nobody is placed in the season that begins
            count += 1
        pipe.recv()  # a word that nobody took would break the pipe, and what is sent below with it
        pipe.send((list(seen), count))


def hold_lock(path: str, pipe: Connection) -> None:
    """Keep an SQLite file locked until the parent says so."""
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    pipe.send("ready")
    pipe.recv()
    holder.rollback()
    holder.close()
    pipe.send("done")


def refusal_of(act: Callable[[], object]) -> str | None:
    """What was said when it was refused; None: it was done."""
    try:
        act()
    except StoreError as error:
        return str(error)
    return None


def drop_capabilities() -> None:
    """Give up all that root may beyond other accounts (capset(2)): its own files stay readable, modes hold for it."""
    header, none = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, none):
        raise OSError(ctypes.get_errno(), "capset")


def read_only(path: str, pipe: Connection) -> None:
    """Read a ledger of 50 matches, try to write, and tell what happened."""
    if os.geteuid() == 0:  # whom no mode keeps from writing
        drop_capabilities()
    with Service.open(path) as service:
        more = tables.from_matches(numbered_matches(50, 60))
        told = {
            "matches": service.ladder(LADDER).matches,
            "standings": len(service.view(LADDER).snapshot.board),
            "equal": service.verify(LADDER).is_equal,
            "record": refusal_of(lambda: service.record(numbered_match(50))),
            "import": refusal_of(lambda: service.import_matches(LADDER, more)),
            "correct": refusal_of(lambda: correct_player(service, "player 1", Random(1))),
            "new": refusal_of(lambda: Service.open(str(Path(path).with_name("new.db"))).close()),
        }
    pipe.send(told)


def correct_something(service: Service, at: int) -> None:
    chance = Random(at)
    if at % 2:
        correct_match(service, f"m{chance.randrange(100)}")
    else:
        correct_player(service, f"player {chance.randrange(PLAYERS)}", chance)


def rebuild_whole(service: Service, _: int) -> None:
    service.rebuild(LADDER, whole=True)


def open_soft_season(service: Service) -> None:
    service.open_season(LADDER, reset="soft", factor=0.75)


def load_more(service: Service) -> None:
    service.import_matches(LADDER, tables.from_matches(numbered_matches(400, 520)))


def ban_or_reinstate(service: Service) -> None:
    correct_player(service, CHEATER, Random(1))


def wait_for_start(pipe: Connection) -> None:
    pipe.send("ready")
    assert pipe.recv() == "start"


def warm_up() -> None:
    """Load the kernels and whatever else is loaded when it is first wanted; leaves no thread and no connection."""
    with tempfile.TemporaryDirectory() as folder, Service.open(str(Path(folder) / "warm.db")) as service:
        service.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        service.record_many(LADDER, numbered_matches(0, 20))
        service.import_matches(LADDER, tables.from_matches(numbered_matches(10, 30)))
        correct_match(service, "m3")


def record_around_a_freeze(url: str, pipe: Connection, writes: bool) -> None:
    """Take the ladder's lock, be frozen, and record what was interrupted again after waking up.

    writes  the freeze comes after writes of the transaction
    """
    with Service.open(url) as service:
        service.record(numbered_match(0))
        try:
            with service.database.write() as store:
                store.lock(LADDER)
                if writes:
                    with store.together(2):
                        store.run("UPDATE ladder SET divided_at = 7 WHERE name = ?", LADDER)
                        store.run("UPDATE ladder SET position = 7 WHERE name = ?", LADDER)
                pipe.send("locked")
                while not pipe.poll(0.05):  # the freeze falls into this wait
                    pass
                store.run("UPDATE ladder SET divided_at = 7 WHERE name = ?", LADDER)
        except StoreError as error:
            pipe.send(str(error))
        else:
            pipe.send("the transaction went on")
        service.record(numbered_match(1))
        pipe.send("recorded")
