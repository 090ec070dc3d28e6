"""The service under load: wrk, the servers and the database share the machine; each figure is measured by itself.

python -m benchmarks serve                      every figure, on SQLite and on PostgreSQL
python -m benchmarks.serve steady [MINUTES]     reports, joins and reads together; memory by the minute
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figure import ROOT, Figure, Section
from benchmarks.ledger import postgres

PLAYERS = 20_000
LADDER = "arena"
SECONDS = 10
WARM = 2
BATCH = 500
CONNECTIONS = 24
CROWD = 64  # connections that join
SENDERS = 4  # of batches
SECRET = {"EVENMATCH_SECRET": "ZXZlbm1hdGNoIGJlbmNobWFya3M6IDMyIGxldHRlcnM="}  # PostgreSQL has no other
LIMITS = {"EVENMATCH_RATE": "1000000", "EVENMATCH_BURST": "10000000", "EVENMATCH_LOG_LEVEL": "warning"}

# Each thread of wrk has a state of its own, told its number by setup(): no two send the same id or the same party.
LUA = """
local count = 0
local id = 0
function setup(thread)
  thread:set("number", count)
  count = count + 1
end
function init(args)
  math.randomseed(os.time() * 1000 + number * 7919 + 13)
  run = args[1]
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer " .. args[2]
end
local function team(first, score)
  local parts = {}
  for i = 0, 5 do
    local n = (first + i * 1667) % 20000
    parts[#parts + 1] = string.format('{"player":"player-%05d","score":%d,"seconds":600}', n, math.random(0, 30))
  end
  return string.format('{"score":%d,"players":[%s]}', score, table.concat(parts, ","))
end
local function match()
  id = id + 1
  local first = math.random(0, 833)
  return string.format('{"id":"%s-%d-%d","played_at":"TIME","duration":600,"teams":[%s,%s]}',
    run, number, id, team(first, math.random(0, 9)), team(first + 834, math.random(0, 9)))
end
"""
REPORT = LUA + 'function request() return wrk.format("POST", nil, nil, match()) end\n'
BATCHES = (
    LUA
    + """
function request()
  local parts = {}
  for i = 1, SIZE do parts[i] = match() end
  return wrk.format("POST", nil, nil, '{"matches":[' .. table.concat(parts, ",") .. ']}')
end
"""
)
JOIN = (
    LUA
    + """
function request()
  id = id + 1
  local body = string.format('{"queues":["main"],"members":[{"player":"waiter-%s-%d-%d"}]}', run, number, id)
  return wrk.format("POST", nil, nil, body)
end
"""
)
READ = """
function init(args)
  wrk.headers["Authorization"] = "Bearer " .. args[2]
end
"""


class Told(NamedTuple):
    """What wrk measured. errors: answers that were not 2xx or 3xx, and requests without an answer."""

    requests: float
    p99: float
    errors: int


def run() -> Section:
    """SQLite with one process, PostgreSQL with one process: reports, batches, joins, reads."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        figures += measured(str(Path(folder, "serve.db")), "SQLite")
    with postgres() as url:
        figures += measured(url, "PostgreSQL")
    notes = [
        f"Load by wrk from {CONNECTIONS} connections ({CROWD} that join, {SENDERS} that send batches) on the same two "
        f"cores as the server and the database, for {SECONDS} s each; 6v6 matches among {PLAYERS:,} players, ladder by "
        "`wager`, every commit durable, "
        "requests not logged (`EVENMATCH_LOG_LEVEL=warning`). The "
        "reference is `/healthz` of the same process under the same load: the cost of HTTP alone.",
    ]
    return Section("The service", figures, notes)


def measured(db: str, name: str) -> list[Figure]:
    """The figures over one database."""
    with served(db) as (address, key, _):
        path = f"/v1/ladders/{LADDER}"
        seeded(address, key)
        settled(address, key)
        bare = load(f"{address}/healthz", READ, "bare", key)
        single = load(f"{address}{path}/matches", REPORT, "single", key)
        batch = load(
            f"{address}{path}/matches/batch", BATCHES.replace("SIZE", str(BATCH)), "batch", key, connections=SENDERS
        )
        joins = load(f"{address}{path}/tickets", JOIN, "join", key, connections=CROWD)
        reads = load(f"{address}{path}/standings", READ, "read", key)
    wrong = [
        f"{what}: {told.errors}"
        for what, told in (("reports", single), ("batches", batch), ("joins", joins), ("reads", reads))
        if told.errors
    ]
    if wrong:
        raise SystemExit(f"answers that were no success on {name}: {', '.join(wrong)}")
    http = "/healthz, requests a second"
    return [
        Figure(f"single reports, {name}", single.requests, "a second", 600, True, bare.requests, http),
        Figure(f"single reports, 99 of 100 within, {name}", single.p99, "ms", 50, False, bare.p99, "/healthz, ms"),
        Figure(
            f"matches in batches of {BATCH}, {name}",
            batch.requests * BATCH,
            "a second",
            5000,
            True,
            bare.requests,
            http,
        ),
        Figure(f"joins, {name}", joins.requests, "a second", 1500, True, bare.requests, http),
        Figure(f"reads of standings, {name}", reads.requests, "a second", 2000, True, bare.requests, http),
    ]


def load(url: str, script: str, run: str, key: str, *, connections: int = CONNECTIONS) -> Told:
    """What wrk measures of one address, after a moment to warm up."""
    for seconds in (WARM, SECONDS):
        with loading(url, script, run, key, connections, seconds) as process:
            told = read(process.communicate()[0])
    return told


@contextmanager
def loading(
    url: str, script: str, run: str, key: str, connections: int, seconds: int
) -> Iterator[subprocess.Popen[str]]:
    """wrk, which asks one address for so long."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed; on Debian or Ubuntu type: apt-get install wrk")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script.replace("TIME", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))
        file.flush()
        how = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", file.name]
        command = ["wrk", *how, url, "--", f"{run}-{time.time_ns()}", key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.terminate()


def read(printed: str) -> Told:
    """What wrk printed."""
    rate = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s|m)", printed)
    if rate is None or p99 is None:
        raise SystemExit(f"wrk printed something else than expected:\n{printed}")
    errors = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", printed)))
    errors += sum(int(one) for line in re.findall(r"Socket errors: (.*)", printed) for one in re.findall(r"\d+", line))
    scale = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}[p99[2]]
    return Told(float(rate[1]), float(p99[1]) * scale, errors)


@contextmanager
def served(db: str) -> Iterator[tuple[str, str, int]]:
    """`evenmatch serve` over a database with a ladder and a queue: its address, a key, and the id of the process."""
    evenmatch("ladder", "create", LADDER, "--system", "wager", "--team-size", "6", "--placement", "1", db=db)
    evenmatch("queue", "set", LADDER, "main", "--policy", "balanced", db=db)
    key = made_key(db)
    with running(db) as (address, pid):
        yield address, key, pid


def made_key(db: str) -> str:
    """A new key of scope `admin`."""
    text: str = json.loads(evenmatch("key", "create", "load", "--scope", "admin", "--json", db=db))["text"]
    return text


@contextmanager
def running(db: str, **variables: str) -> Iterator[tuple[str, int]]:
    """`evenmatch serve` over a database: its address, and the id of the process, which may be killed meanwhile."""
    env = {**os.environ, **SECRET, **LIMITS, **variables}
    command = [sys.executable, "-m", "evenmatch", "serve", "--db", db, "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        yield found[0], server.pid
    finally:
        server.terminate()
        server.wait(60)


def evenmatch(*arguments: str, db: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "evenmatch", *arguments, "--db", db]
    env = {**os.environ, **SECRET}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=ROOT).stdout


def seeded(address: str, key: str) -> None:
    """Every player in one match at least, so that standings are full."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    names = [f"player-{at:05d}" for at in range(PLAYERS)]
    for first in range(0, PLAYERS, 1000):
        some = names[first : first + 1000]
        matches = [
            {
                "id": f"seed-{first + at}",
                "played_at": moment,
                "teams": [
                    {
                        "score": score,
                        "players": [{"player": name} for name in some[at + 5 * score : at + 5 * score + 5]],
                    }
                    for score in (0, 1)
                ],
            }
            for at in range(0, 1000, 10)
        ]
        send(f"{address}/v1/ladders/{LADDER}/matches/batch", key, {"matches": matches})


def settled(address: str, key: str) -> None:
    """Wait until a match was proposed: by then all kernels are loaded, or compiled."""
    tickets = []
    for at in range(12):
        party = {"queues": ["main"], "members": [{"player": f"first-{at}", "loose": True}]}
        tickets.append(send(f"{address}/v1/ladders/{LADDER}/tickets", key, party)["ticket"])
    end = time.monotonic() + 300
    while send(f"{address}/v1/ladders/{LADDER}/tickets/{tickets[0]}", key)["state"] == "waiting":
        if time.monotonic() > end:
            raise SystemExit("no match was proposed to twelve players within five minutes")
        time.sleep(0.5)


def send(url: str, key: str, body: object = None) -> dict[str, Any]:
    """What one request is answered; without a body it is a read."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, content, headers)) as answer:
        told: dict[str, Any] = json.load(answer)
        return told


def steady(db: str, name: str, minutes: int) -> None:
    """Reports, batches, joins and reads at once: what was answered, and the memory of the process by the minute."""
    with served(db) as (address, key, pid), ExitStack() as stack:
        seeded(address, key)
        settled(address, key)
        path = f"{address}/v1/ladders/{LADDER}"
        wanted = [
            ("single reports", f"{path}/matches", REPORT, 8),
            ("batches", f"{path}/matches/batch", BATCHES.replace("SIZE", "20"), 1),
            ("joins", f"{path}/tickets", JOIN, 4),
            ("reads", f"{path}/standings", READ, 1),
        ]
        running = [
            (what, stack.enter_context(loading(url, script, what.split()[0], key, connections, minutes * 60)))
            for what, url, script, connections in wanted
        ]
        print(f"{name}: memory of the process, MB", flush=True)
        for minute in range(minutes):
            print(f"  minute {minute}: {memory(pid):.0f}", flush=True)
            time.sleep(60)
        told = [(what, read(process.communicate()[0])) for what, process in running]
        print(f"  minute {minutes}: {memory(pid):.0f}")
        for what, one in told:
            print(f"  {what}: {one.requests:.0f} a second, 99 of 100 within {one.p99:.0f} ms, errors {one.errors}")


def memory(pid: int) -> float:
    """Megabytes that a process has in memory."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    if found is None:
        raise SystemExit(f"process {pid} has ended")
    return int(found[1]) / 1024


def main() -> None:
    """The steady load, on both databases."""
    if sys.argv[1:2] != ["steady"]:
        raise SystemExit(__doc__)
    minutes = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory() as folder:
        steady(str(Path(folder, "serve.db")), "SQLite", minutes)
    with postgres() as url:
        steady(url, "PostgreSQL", minutes)


if __name__ == "__main__":
    main()
