"""How far a request travels through the package: modules imported, modules and rooms entered, and crossings.

    .venv/bin/python tools/ways.py            every way, one row each
    .venv/bin/python tools/ways.py rate -v    one way, with the modules in the order in which it enters them

Each way runs the real command, or a real server on loopback, with a profile hook. A module is entered when one of its
functions runs. A crossing is a pair of modules of which one calls the other; a return crosses back into a module that
was entered before. A room is a package directly under `evenmatch`.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "evenmatch"
LISTENING_WITHIN = 120.0  # seconds for a traced server to start
WARM_UP = 5  # requests before the one that is traced
SETTLED_AFTER = 0.5  # seconds until a signal is handled, or work that a request leaves behind is done
MATCH = {
    "played_at": "2026-01-02T18:00:00Z",
    "teams": [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}],
}
ROWS = "match_id,played_at,team,player,place\n" + "".join(
    f"m{at},{1_767_225_600 + 60 * at},{team},p{(at * (team + 2) + team) % 7 + 7 * team},{team + 1}\n"
    for at in range(40)
    for team in range(2)
)


class Trace(NamedTuple):
    """Where a way has been: modules in order of entry, and crossings as pairs of modules in order."""

    imported: int
    entered: list[str]
    crossings: list[tuple[str, str]]

    @property
    def rooms(self) -> int:
        """The number of rooms entered."""
        return len({module.split("/")[0] for module in self.entered})

    @property
    def returns(self) -> int:
        """Crossings into a module that was entered before."""
        seen: set[str] = set()
        back = 0
        for caller, callee in self.crossings:
            seen.add(caller)
            back += callee in seen
            seen.add(callee)
        return back


class Tracer:
    """A profile hook for all threads."""

    def __init__(self) -> None:
        self._entered: dict[str, None] = {}
        self._crossings: dict[tuple[str, str], None] = {}
        self._names: dict[str, str | None] = {}

    def start(self) -> None:
        """Follow this thread and every later one."""
        threading.setprofile(self)
        sys.setprofile(self)

    def clear(self) -> None:
        """Forget where the way has been so far."""
        self._entered, self._crossings = {}, {}

    def write(self, path: Path) -> None:
        """Write the trace as JSON."""
        imported = sum(name.split(".")[0] == "evenmatch" for name in list(sys.modules))
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps([imported, list(self._entered), list(self._crossings)]))
        draft.rename(path)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        module = self._module(frame)
        if module is None:
            return
        self._entered.setdefault(module)
        above = frame.f_back
        while above is not None and self._module(above) is None:
            above = above.f_back
        if above is not None and (caller := self._module(above)) is not None and caller != module:
            self._crossings.setdefault((caller, module))

    def _module(self, frame: FrameType) -> str | None:
        """The module of a frame, as a path in the package; None outside of it or while a module is imported."""
        if frame.f_code.co_name in ("<module>", "<lambda>"):
            return None
        file = frame.f_code.co_filename
        if file not in self._names:
            path = Path(file)
            inside = path.is_relative_to(PACKAGE)
            self._names[file] = path.relative_to(PACKAGE).with_suffix("").as_posix() if inside else None
        return self._names[file]


def run_traced(output: Path, arguments: Sequence[str]) -> int:
    """Run a command of evenmatch in this process; SIGUSR1 clears the trace, SIGUSR2 and the end write it."""
    from evenmatch.cli import main  # noqa: PLC0415 - imported in the traced child only

    tracer = Tracer()
    signal.signal(signal.SIGUSR1, lambda *_: tracer.clear())
    signal.signal(signal.SIGUSR2, lambda *_: tracer.write(output))
    sys.argv = ["evenmatch", *arguments]
    tracer.start()
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.setprofile(None)
        tracer.write(output)
    return 0


def trace_command(folder: Path, *arguments: str) -> Trace:
    """The trace of a command that must succeed."""
    output = folder / "trace.json"
    command = [sys.executable, __file__, "--child", str(output), *arguments]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    return read_trace(output)


def read_trace(path: Path) -> Trace:
    """A trace as `Tracer.write` wrote it."""
    imported, entered, crossings = json.loads(path.read_text())
    return Trace(imported, entered, [(caller, callee) for caller, callee in crossings])


def run(folder: Path, *arguments: str) -> str:
    """Run a command untraced and return its output."""
    command = [sys.executable, "-m", "evenmatch", *arguments]
    return subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True).stdout


def prepare_ladder(folder: Path) -> None:
    """Create a ladder `duel` with forty matches and a queue."""
    (folder / "matches.csv").write_text(ROWS)
    run(folder, "ladder", "create", "duel", "--system", "elo")
    run(folder, "import", "matches.csv")
    run(folder, "queue", "set", "duel", "main", "--team-size", "1")


class Request(NamedTuple):
    """A request to the service: method, path and the body of attempt number so and so."""

    method: str
    path: str
    body: Callable[[int], object] = lambda _: None

    def send(self, address: str, key: str, attempt: int) -> None:
        """Send the request; an answer that is no success raises."""
        body = self.body(attempt)
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        request = urllib.request.Request(address + self.path, content, headers, method=self.method)
        try:
            urllib.request.urlopen(request, timeout=LISTENING_WITHIN).close()
        except urllib.error.HTTPError as refusal:
            raise SystemExit(f"{self.method} {self.path} was refused: {refusal.read().decode()}") from refusal


def trace_request(folder: Path, request: Request) -> Trace:
    """The trace of a request to a server that is warmed up; what the server does by the way is in it."""
    prepare_ladder(folder)
    key, output = run(folder, "key", "create", "ways", "--scope", "admin").strip(), folder / "trace.json"
    serve = ("serve", "--port", "0", "--no-matchmaker", "--open-reads")
    command = [sys.executable, __file__, "--child", str(output), *serve]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            address = listening_at(server)
            for attempt in range(WARM_UP):
                request.send(address, key, attempt)
                time.sleep(SETTLED_AFTER)
            server.send_signal(signal.SIGUSR1)
            time.sleep(SETTLED_AFTER)
            request.send(address, key, WARM_UP)
            time.sleep(SETTLED_AFTER)
            server.send_signal(signal.SIGUSR2)
            wait_for(output)
            return read_trace(output)
        finally:
            server.terminate()


def listening_at(server: subprocess.Popen[str]) -> str:
    """The address that a server prints once it listens."""
    for line in server.stdout or ():
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise SystemExit(f"the server ended with {server.wait()} before it listened")


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    until = time.monotonic() + LISTENING_WITHIN
    while not path.exists():
        if time.monotonic() > until:
            raise SystemExit(f"{path.name} was not written within {LISTENING_WITHIN:.0f} s")
        time.sleep(0.05)


def trace_rate(folder: Path) -> Trace:
    """`evenmatch rate` of a CSV file."""
    (folder / "matches.csv").write_text(ROWS)
    return trace_command(folder, "rate", "matches.csv", "--system", "elo")


def trace_ban(folder: Path) -> Trace:
    """`evenmatch ban` of a player with matches."""
    prepare_ladder(folder)
    return trace_command(folder, "ban", "p0", "--ladder", "duel")


REQUESTS = {
    "report": Request("POST", "/v1/ladders/duel/matches", lambda at: {"id": f"new-{at}", **MATCH}),
    "join": Request(
        "POST", "/v1/ladders/duel/tickets", lambda at: {"queues": ["main"], "members": [{"player": f"p{at}"}]}
    ),
    "standings": Request("GET", "/ladders/duel"),
}
WAYS: dict[str, Callable[[Path], Trace]] = {
    "rate": trace_rate,
    **{name: partial(trace_request, request=request) for name, request in REQUESTS.items()},
    "ban": trace_ban,
}


def main() -> int:
    """Trace the ways that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("ways", nargs="*", choices=[*WAYS, []], metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("-v", "--verbose", action="store_true", help="also list the modules in order of entry")
    chosen = parser.parse_args()
    print(f"{'way':<10} {'imported':>8} {'modules':>8} {'rooms':>6} {'crossings':>9} {'returns':>8}")
    for name in chosen.ways or WAYS:
        with tempfile.TemporaryDirectory() as folder:
            trace = WAYS[name](Path(folder))
        counts = f"{len(trace.entered):>8} {trace.rooms:>6} {len(trace.crossings):>9} {trace.returns:>8}"
        print(f"{name:<10} {trace.imported:>8} {counts}", flush=True)
        if chosen.verbose:
            print(*(f"    {module}" for module in trace.entered), sep="\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(run_traced(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main())
