"""Several `evenmatch serve` over one PostgreSQL: one hot ladder and sixty-four, single reports and batches.

python -m benchmarks processes                                  every figure
python -m benchmarks.processes [PROCESSES ...]                  only these numbers of processes; default: 1 2 4
    --cells hot-single hot-batch many-single many-batch         only these loads
    --against SRC --rounds N                                    in turn with the sources in another folder; medians

Beside each rate stand the processor seconds that its processes, the database and the generator took for it: what they
add up to, of the seconds that the cores have, is what bounds it.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.figure import Figure, Section
from benchmarks.ledger import postgres
from benchmarks.serve import BATCH, BATCHES, LADDER, REPORT, evenmatch, loading, made_key, read, running, seeded, send

LADDERS = 64
CONNECTIONS = 24  # of all generators together that send single reports
SENDERS = 8  # of all that send batches
SECONDS = 8
WARM = 3
COUNTS = (1, 2, 4)
TICKS = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    """A kind of load. matches: in each request"""

    ladders: int
    matches: int

    @property
    def script(self) -> str:
        """The program of wrk."""
        base, path = (REPORT, "matches") if self.matches == 1 else (BATCHES, "matches/batch")
        base = base.replace("SIZE", str(self.matches))
        if self.ladders == 1:
            return base
        spread = f'"/v1/ladders/{LADDER}-" .. math.random(0, {self.ladders - 1}) .. "/{path}"'
        return base.replace('wrk.format("POST", nil,', f'wrk.format("POST", {spread},')


LOADS = {
    "hot-single": Load(1, 1),
    "hot-batch": Load(1, BATCH),
    "many-single": Load(LADDERS, 1),
    "many-batch": Load(LADDERS, BATCH),
}
TOLD = {
    "hot-single": "one hot ladder, single reports",
    "hot-batch": f"one hot ladder, batches of {BATCH}",
    "many-single": f"{LADDERS} ladders, single reports",
    "many-batch": f"{LADDERS} ladders, batches of {BATCH}",
}


class Cell(NamedTuple):
    """What was measured of one load. rate: matches a second; p99: milliseconds, of the slowest generator;

    processes, database, generator: processor seconds per second
    """

    rate: float
    p99: float
    errors: int
    processes: float
    database: float
    generator: float

    @property
    def cost(self) -> float:
        """Processor milliseconds of processes and database for each match."""
        return 1000 * (self.processes + self.database) / self.rate if self.rate else float("inf")

    def __str__(self) -> str:
        return (
            f"{self.rate:6.0f}/s p99 {self.p99:6.1f} ms  cores: processes {self.processes:.2f}, database "
            f"{self.database:.2f}, generator {self.generator:.2f}  {self.cost:.3f} CPU-ms/match  errors {self.errors}"
        )


def processor_seconds(pids: Sequence[int]) -> float:
    """Processor seconds that these processes have taken, and those of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:  # it has ended meanwhile
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def database_processes() -> list[int]:
    """The processes of the PostgreSQL that this process has started."""
    parents: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = path.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(path.parent.name)] = int(rest.split()[1]), head.partition("(")[2]
    return [pid for pid, (_, name) in parents.items() if name == "postgres" and _is_below(pid, parents)]


def _is_below(pid: int, parents: dict[int, tuple[int, str]]) -> bool:
    while pid in parents:
        pid = parents[pid][0]
        if pid == os.getpid():
            return True
    return False


@contextmanager
def several(db: str, count: int, sources: str | None) -> Iterator[list[tuple[str, int]]]:
    """So many `evenmatch serve` over a database: address and process id of each."""
    variables = {} if sources is None else {"PYTHONPATH": sources}
    with ExitStack() as stack:
        served = [stack.enter_context(running(db, **variables)) for _ in range(count)]
        for address, _ in served:
            _wait_until_ready(address)
        yield served


def _wait_until_ready(address: str) -> None:
    """Until a process has loaded its kernels."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        with suppress(OSError):  # urllib raises one for a status that is no success
            urllib.request.urlopen(f"{address}/readyz").close()
            return
        time.sleep(0.2)
    raise SystemExit(f"{address} is not ready after five minutes")


def prepared(db: str) -> str:
    """Create the ladders of a database; a key."""
    evenmatch("ladder", "create", LADDER, "--system", "wager", "--team-size", "6", "--placement", "1", db=db)
    key = made_key(db)
    with running(db) as (address, _):
        _wait_until_ready(address)
        for number in range(LADDERS):
            settings = {"team_size": 6, "placement": 1}
            ladder = {"name": f"{LADDER}-{number}", "system": "wager", "settings": settings}
            send(f"{address}/v1/ladders", key, ladder)
        seeded(address, key)
        for name, load in LOADS.items():
            _loaded([(address, 0)], key, load, f"first-{name}", WARM)
    return key


def _loaded(served: Sequence[tuple[str, int]], key: str, load: Load, run: str, seconds: int) -> list[str]:
    """What the generators print, one for each process."""
    connections = max(1, (CONNECTIONS if load.matches == 1 else SENDERS) // len(served))
    path = "matches" if load.matches == 1 else "matches/batch"
    with ExitStack() as stack:
        generators = [
            stack.enter_context(
                loading(f"{address}/v1/ladders/{LADDER}/{path}", load.script, f"{run}{at}", key, connections, seconds)
            )
            for at, (address, _) in enumerate(served)
        ]
        return [generator.communicate()[0] for generator in generators]


def measured(served: Sequence[tuple[str, int]], key: str, name: str) -> Cell:
    """One load, after a moment to warm up."""
    load = LOADS[name]
    _loaded(served, key, load, f"warm-{name}", WARM)
    pids, backends = [pid for _, pid in served], database_processes()
    before = processor_seconds(pids), processor_seconds(backends), _generators()
    begin = time.monotonic()
    told = [read(printed) for printed in _loaded(served, key, load, name, SECONDS)]
    took = time.monotonic() - begin
    after = processor_seconds(pids), processor_seconds(database_processes()), _generators()
    taken = [(end - start) / took for start, end in zip(before, after, strict=True)]
    return Cell(
        sum(one.requests for one in told) * load.matches,
        max(one.p99 for one in told),
        sum(one.errors for one in told),
        *taken,
    )


def _generators() -> float:
    """Processor seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run() -> Section:
    """1, 2 and 4 processes, all loads."""
    figures: list[Figure] = []
    notes: list[str] = []
    with postgres() as db:
        key = prepared(db)
        cells: dict[tuple[int, str], Cell] = {}
        for count in COUNTS:
            with several(db, count, None) as served:
                for name in LOADS:
                    cells[count, name] = measured(served, key, name)
        wrong = {place: cell.errors for place, cell in cells.items() if cell.errors}
        if wrong:
            raise SystemExit(f"answers that were no success: {wrong}")
    for name, load in LOADS.items():
        alone = cells[1, name].rate
        for count in COUNTS:
            cell = cells[count, name]
            aim = (1000 if load.matches == 1 else 6000) if count == 1 and name.startswith("hot") else None
            figures.append(
                Figure(f"{TOLD[name]}: {_processes(count)}", cell.rate, "matches/s", aim, True, alone, "one process")
            )
            notes.append(
                f"{TOLD[name]}, {_processes(count)}: 99 of 100 within {cell.p99:.0f} ms; cores busy: processes "
                f"{cell.processes:.2f}, database {cell.database:.2f}, generator {cell.generator:.2f}."
            )
    first = (
        f"Load by wrk, one for each process, {CONNECTIONS} connections in all ({SENDERS} that send batches), for "
        f"{SECONDS} s each; 6v6 matches, PostgreSQL with `fsync` on, everything on the same cores."
    )
    return Section("Many processes", figures, [first, "\n".join(f"- {note}" for note in notes)])


def _processes(count: int) -> str:
    return "one process" if count == 1 else f"{count} processes"


def main() -> None:
    """Some cells, perhaps in turn with other sources."""
    parser = argparse.ArgumentParser(prog="benchmarks.processes")
    parser.add_argument("counts", nargs="*", type=int, default=list(COUNTS))
    parser.add_argument("--cells", nargs="+", choices=list(LOADS), default=list(LOADS))
    parser.add_argument("--against", metavar="SRC")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--unsynced", action="store_true", help="a server that does not flush to the disk")
    given = parser.parse_args()
    sources = {"here": None} if given.against is None else {"there": given.against, "here": None}
    told: dict[tuple[str, int, str], list[Cell]] = {}
    with postgres(durable=not given.unsynced) as db:
        key = prepared(db)
        for _ in range(given.rounds):
            for count in given.counts or COUNTS:
                for whose, folder in sources.items():
                    with several(db, count, folder) as served:
                        for name in given.cells:
                            cell = measured(served, key, name)
                            told.setdefault((name, count, whose), []).append(cell)
                            print(f"{name:12} {count} {whose:5} {cell}", flush=True)
    print("\nmedians")
    for (name, count, whose), cells in sorted(told.items()):
        print(f"{name:12} {count} {whose:5} {Cell(*map(statistics.median, zip(*cells, strict=True)))}")


if __name__ == "__main__":
    main()
