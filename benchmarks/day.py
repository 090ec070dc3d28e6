"""A simulated day of a game with a million players: the highest multiple of real time that this machine holds.

python -m benchmarks day            PostgreSQL, the busiest hour at rising multiples
python -m benchmarks.day 12         the busiest hour at 12 times real time, for five minutes
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from benchmarks.figure import ROOT, Figure, Section
from benchmarks.game_day import GameDay
from benchmarks.ledger import postgres, table_of
from benchmarks.matches import Season
from benchmarks.processes import database_processes, processor_seconds
from benchmarks.serve import LADDER, SECRET, evenmatch, memory, running, settled
from evenmatch.operations.service import Service
from evenmatch.tables import MatchTable

DAY = GameDay()
MULTIPLES = (1, 1.5, 2, 3, 4, 6, 8, 10, 12, 15, 20)
SECONDS = 30
WARM = 20  # seconds, besides the length of a match
MOST = {"join": 0.5, "accept": 0.5, "report": 0.5, "read": 0.5, "page view": 0.5}  # seconds, 99 of 100
WAIT = 90.0  # seconds within which 95 of 100 are in a match
OPEN = {"EVENMATCH_OPEN_READS": "true", "EVENMATCH_OPEN_RATE": "1000000", "EVENMATCH_OPEN_BURST": "10000000"}
ONE_ADDRESS = {"EVENMATCH_CONNECTIONS": "15000"}  # each player who waits has an open connection


class Rung(NamedTuple):
    """A multiple that was held, what the players measured, and megabytes of the service."""

    multiple: float
    told: dict[str, Any]
    memory: float


def run() -> Section:
    """Raise the multiple until it is not held any more."""
    held: list[Rung] = []
    broke = ""
    with game() as (address, key, pid):
        for multiple in MULTIPLES:
            told = busiest_hour(address, key, pid, multiple, SECONDS)
            reasons = objections(told)
            print(f"  {multiple} times real time: {'; '.join(reasons) or 'held'}", file=sys.stderr, flush=True)
            if reasons:
                broke = f"At {multiple} times it was not held: {'; '.join(reasons)}."
                break
            held.append(Rung(multiple, told, memory(pid)))
    return section(held, broke)


def section(held: Sequence[Rung], broke: str) -> Section:
    """The figures of the highest multiple that was held. broke: why the next one was not."""
    if not held:
        raise SystemExit(f"not even {MULTIPLES[0]} times real time was held. {broke}")
    multiple, told, used = held[-1]
    at = f"at {multiple} times"
    figures = [
        Figure("busiest hour of a million players", multiple, "times real time", 1.0, True, None, ""),
        *(_p99(kind, at, told) for kind in MOST),
        Figure(f"wait for a match, half, {at}", told["wait"]["p50"], "s", None, False, None, ""),
        Figure(f"wait for a match, 95 of 100, {at}", told["wait"]["p95"], "s", None, False, None, ""),
        *(
            Figure(f"cores that the {part} takes, {at}", cores, "cores", None, False, None, "")
            for part, cores in zip(("service", "database"), told["cores"], strict=True)
        ),
        Figure(f"memory of the service, {at}", used, "MB", None, False, None, ""),
    ]
    notes = [
        f"A ladder with {DAY.players:,} active players on PostgreSQL, one `evenmatch serve`; players, service and "
        f"database share the cores. On a day each player plays {DAY.matches_each} matches of "
        f"{DAY.team_size}v{DAY.team_size}, the game shows each their standing {DAY.reads_each} times, and each "
        f"looks at {DAY.views_each} page. The busiest hour has {DAY.busiest:g} times the mean of the day: "
        f"{rates(1)}. Every player joins, polls (20 s) until there is an offer, accepts it, and polls until there is a "
        "match; its server reports it when it ends. Matches last "
        f"{DAY.match_seconds:g} s divided by the multiple, {DAY.longest:g} s at the most; waits are not shortened.",
        f"Held means: 99 of 100 requests of each kind within {MOST['join']:g} s, 95 of 100 players in a match within "
        f"{WAIT:g} s, no request refused or failed, arrivals on time; over {SECONDS} s after a warm-up. "
        f"{at.capitalize()} that were {rates(multiple)}. {broke}",
    ]
    return Section("A day of a million players", figures, notes)


def _p99(kind: str, at: str, told: dict[str, Any]) -> Figure:
    return Figure(f"{kind}, 99 of 100 within, {at}", 1e3 * told[kind]["p99"], "ms", None, False, None, "")


def rates(multiple: float) -> str:
    """What happens in a second of the busiest hour."""
    per_second = DAY.busiest * multiple / 86_400
    return (
        f"{per_second * DAY.joins:.0f} joins, {per_second * DAY.matches:.1f} matches, "
        f"{per_second * DAY.reads:.0f} reads of a standing and "
        f"{per_second * DAY.views:.0f} page views a second"
    )


@contextmanager
def game() -> Iterator[tuple[str, str, int]]:
    """A service on a ladder with a million players, its kernels loaded: address, key, id of the process."""
    with postgres() as url:
        evenmatch("ladder", "create", LADDER, "--system", "wager", "--team-size", str(DAY.team_size), db=url)
        evenmatch("ladder", "change", LADDER, "--placement", "1", "--active-days", "36500", db=url)
        evenmatch("queue", "set", LADDER, "main", "--policy", "balanced", db=url)
        key = json.loads(evenmatch("key", "create", "game", "--scope", "admin", "--json", db=url))["text"]
        os.environ.update(SECRET)  # for this process, too
        with Service.open(url) as service:
            service.import_matches(LADDER, two_rounds())
        with running(url, **OPEN, **ONE_ADDRESS) as (address, pid):
            settled(address, key)
            yield address, key, pid


def two_rounds() -> MatchTable:
    """The matches before the day: two for each player, but for a remainder of fewer players than a match has."""
    slots = 2 * DAY.team_size
    rng, matches = np.random.default_rng(1), DAY.players // slots
    rounds = [rng.permutation(DAY.players)[: matches * slots] for _ in range(2)]
    return table_of(Season(2 * matches, DAY.players, DAY.team_size), np.concatenate(rounds).astype(np.int32))


def busiest_hour(address: str, key: str, pid: int, multiple: float, seconds: float) -> dict[str, Any]:
    """What the players of the busiest hour measured; `cores`: of the service and of the database, meanwhile."""
    warm = DAY.match_seconds_at(multiple) + WARM
    numbers = map(str, (multiple, warm, seconds, WAIT))
    command = [sys.executable, "-m", "benchmarks.day_crowd", address, key, *numbers]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as crowd:
        time.sleep(warm)
        parts = [pid], database_processes()
        before = [processor_seconds(part) for part in parts]
        time.sleep(seconds)
        used = [processor_seconds(part) - start for part, start in zip(parts, before, strict=True)]
        printed = crowd.communicate()[0]
    told: dict[str, Any] = json.loads(printed)
    return {**told, "cores": [one / seconds for one in used]}


def objections(told: dict[str, Any]) -> list[str]:
    """Why it is not held; empty if it is."""
    reasons = [f"{kind}: {count}" for kind, count in told["errors"].items()]
    for kind, most in MOST.items():
        if kind not in told:
            reasons.append(f"no {kind} was answered")
        elif told[kind]["p99"] > most:
            reasons.append(f"{kind}: 99 of 100 within {told[kind]['p99']:.2f} s")
    if "wait" not in told or told["wait"]["p95"] > WAIT:
        reasons.append("players wait too long" if "wait" in told else "nobody found a match")
    if told["too_late"]:
        reasons.append(f"the players themselves were {told['late']:.1f} s late")
    return reasons


def main() -> None:
    """One multiple, for five minutes."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with game() as (address, key, pid):
        print(json.dumps(busiest_hour(address, key, pid, float(sys.argv[1]), 300), indent=1))


if __name__ == "__main__":
    main()
