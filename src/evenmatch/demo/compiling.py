"""What the demo compiles at its first start, in processes side by side; later starts find it in the cache on disk.

Run as a program by `Compiling`: compiles what its arguments name, and writes the name of each when it is done.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from evenmatch import rating
from evenmatch.demo.games import GAMES
from evenmatch.errors import EvenmatchError, InputError
from evenmatch.matchmaking import Member, Policy, Queue, Ticket
from evenmatch.matchmaking.passes import make_matches
from evenmatch.matchmaking.serving import serve_overdue
from evenmatch.matchmaking.tick import Tick
from evenmatch.matchmaking.view import role_room, rules_of, view_of
from evenmatch.online import Rater
from evenmatch.service.loading import DUEL
from evenmatch.systems import loop

MATCHES, DIVISION = "matches", "division"  # the two halves of the matchmaker, which take about as long
SYSTEMS = tuple(game.system for game in GAMES)
SHARES = (("wager", "battlepoints", MATCHES), ("scorefactor", "prav", DIVISION))  # of two processes
SECOND = 1_000_000
PATIENCE = 5.0  # seconds that a process has to end


def compile_system(name: str) -> None:
    """Compile a rating system: its loop, and the odds that it foretells."""
    rules = rating.rules(name)
    with suppress(InputError):  # of a system that cannot rate a bare duel; it is compiled by then
        Rater(rules).rate(DUEL)
    loop.odds(rules, rules.newcomers(2), [0], [1], True, 0)


def compile_matchmaker(part: str) -> None:
    """Compile half of the matchmaker: what finds matches, or what serves who waited too long and divides into teams."""
    policy, queue = Policy(team_size=1, overdue_after=0.0), Queue()
    for number in range(4):
        member = Member(player=number, percentile=50.0, rating=1500.0, within=20.0, ping={"here": 20.0})
        queue.join(Ticket(id=number, queued=0, members=(member,)))
    tick = Tick(queue, view_of(queue, SECOND, policy)[0], SECOND, policy)
    if part == DIVISION:
        serve_overdue(tick)
    else:
        rules, room = rules_of(policy, SECOND, policy.team_size), role_room(policy, policy.team_size)
        make_matches(tick.view, tick.windows, tick.places, ~tick.free, rules, room)


class Compiling:
    """Processes that compile what a demo runs on, and end with the block."""

    def __init__(self) -> None:
        self._done = {name: threading.Event() for share in SHARES for name in share}
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        for share in SHARES:
            command = [sys.executable, "-m", __name__, *share]
            self._running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True))
        for share, one in zip(SHARES, self._running, strict=True):
            threading.Thread(target=self._follow, args=(share, one), name="evenmatch-compiling", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for one in self._running:
            one.kill()
        for one in self._running:
            one.wait(PATIENCE)

    @property
    def is_over(self) -> bool:
        """Whether all is compiled."""
        return all(done.is_set() for done in self._done.values())

    def wait_for_ratings(self) -> None:
        """Until all rating systems are compiled."""
        for name in SYSTEMS:
            self._done[name].wait()

    def wait_for_matchmaker(self, stop: threading.Event) -> None:
        """Until the matchmaker is compiled, or `stop`."""
        for name in (MATCHES, DIVISION):
            while not stop.is_set() and not self._done[name].wait(0.2):
                pass

    def _follow(self, share: Sequence[str], running: subprocess.Popen[str]) -> None:
        """Note what a process has done; where it fails, this process compiles the rest when it needs it."""
        assert running.stdout is not None
        with running.stdout as lines:
            for line in lines:
                self._done[line.strip()].set()
        for name in share:
            self._done[name].set()


def main(names: list[str]) -> None:
    """Compile each of these; Ctrl-C is for the process that began this one, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # compiling makes much that lasts until the end
    for name in names:
        with suppress(EvenmatchError):
            compile_system(name) if name in SYSTEMS else compile_matchmaker(name)
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
