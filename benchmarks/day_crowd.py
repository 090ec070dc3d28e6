"""The players and game servers of a simulated day, in a process of their own: they ask one service and measure answers.

python -m benchmarks.day_crowd ADDRESS KEY MULTIPLE WARM SECONDS WAIT    print what was measured as JSON

Arrivals do not wait for answers: who is slow to answer gets more to do, as in life.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import numpy as np
import uvloop

from benchmarks.game_day import GameDay

LADDER = "arena"
POLL = 20  # seconds of a long poll
LATE = 2.0  # seconds that an arrival may come late: more, and this process is what is too slow
GIVE_UP = 300.0  # seconds in the queue


class Connections:
    """Requests over kept connections, as many as are needed at once, from many addresses of the loopback network."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._host, self._port = host, port
        self._idle: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = deque()
        self._head = f"Host: {host}:{port}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        self.opened = 0

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """Status and body of the response."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(content)}\r\n\r\n"
        while True:
            is_kept = bool(self._idle)
            reader, writer = self._idle.pop() if is_kept else await self._open()
            try:
                writer.write(head.encode() + content)
                answer = await _read(reader)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                if not is_kept:
                    raise
                continue  # the server had closed it meanwhile
            self._idle.append((reader, writer))
            return answer

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.opened += 1
        source = f"127.1.{self.opened // 250 % 250}.{1 + self.opened % 250}"
        return await asyncio.open_connection(self._host, self._port, local_addr=(source, 0))


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return int(head[9:12]), await reader.readexactly(int(length)) if length else b""


class Crowd:
    """Players who join, answer offers, play and look at pages, at `multiple` times the rates of the busiest hour.

    times   seconds of requests that began while `measuring`, by kind; `wait`: from joining to the match
    seeking  players who began to join while `measuring`
    errors  responses that were no success, by kind
    """

    def __init__(self, day: GameDay, connections: Connections, multiple: float) -> None:
        self._day, self._connections, self._multiple = day, connections, multiple
        self._busy: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._random = random.Random(7)
        self.measuring = False
        self.times: dict[str, list[float]] = defaultdict(list)
        self.errors: dict[str, int] = defaultdict(int)
        self.seeking = 0
        self.late = 0.0

    async def arrive(self, rate: float, what: Callable[[], Coroutine[None, None, None]]) -> None:
        """Begin `what` so many times a second, at random moments."""
        due = time.monotonic()
        while True:
            due += self._random.expovariate(rate)
            if (ahead := due - time.monotonic()) > 0:
                await asyncio.sleep(ahead)
            elif self.measuring:
                self.late = max(self.late, -ahead)
            task = asyncio.create_task(what())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Wait until all are out of the queue and their matches are reported, or for so many seconds.

        Who is left in a match could not join in the next run over the same service.
        """
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def play(self) -> None:
        """One player queues for one match and plays it."""
        player = self._random.randrange(self._day.players)
        while player in self._busy:
            player = self._random.randrange(self._day.players)
        self._busy.add(player)
        try:
            await self._play(f"player {player}")
        finally:
            self._busy.discard(player)

    async def read(self) -> None:
        """The game shows a player their standing."""
        player = self._random.randrange(self._day.players)
        await self._timed("read", "GET", f"/v1/ladders/{LADDER}/players/player%20{player}")

    async def look(self) -> None:
        """Somebody looks at the standings or at a player on the web site."""
        player = self._random.randrange(self._day.players)
        page = self._random.choice(("/standings", f"/players/player%20{player}", "/standings?page=40"))
        await self._timed("page view", "GET", f"/ladders/{LADDER}{page}")

    async def _play(self, name: str) -> None:
        begun, is_measured = time.monotonic(), self.measuring
        party = {"queues": ["main"], "members": [{"player": name, "loose": True}]}
        ticket = await self._timed("join", "POST", f"/v1/ladders/{LADDER}/tickets", party)
        if ticket is None:
            return
        self.seeking += is_measured
        path = f"/v1/ladders/{LADDER}/tickets/{ticket['ticket']}"
        seen, accepted = ticket, None
        while time.monotonic() - begun < GIVE_UP:
            asked = f"{path}?after={seen['change']}&wait={POLL}"
            status, body = await self._connections.ask("GET", asked)
            if status != 200:
                self.errors["ticket"] += 1
                return
            seen = json.loads(body)
            offer = seen["offer"] and seen["offer"]["offer"]
            if seen["match"]:
                if is_measured:
                    self.times["wait"].append(time.monotonic() - begun)
                await self._finish(seen["match"], name)
                return
            if offer and offer != accepted:
                accepted = offer
                if await self._timed("accept", "POST", f"{path}/accept", {"offer": offer}) is None:
                    return
            elif seen["state"] not in ("waiting", "offered"):
                self.errors["ticket"] += 1
                return
        await self._connections.ask("DELETE", path)
        self.errors["gave up"] += 1

    async def _finish(self, match: dict[str, Any], name: str) -> None:
        """Play; the first player of the match also stands for its game server, which reports it."""
        await asyncio.sleep(self._day.match_seconds_at(self._multiple))
        teams = [[player["player"] for player in team] for team in match["teams"]]
        if name != teams[0][0]:
            return
        report = {
            "id": match["match_id"],
            "played_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "duration": self._day.match_seconds,
            "teams": [
                {
                    "score": self._random.randrange(10),
                    "players": [
                        {"player": one, "score": self._random.randrange(30), "seconds": self._day.match_seconds}
                        for one in team
                    ],
                }
                for team in teams
            ],
        }
        await self._timed("report", "POST", f"/v1/ladders/{LADDER}/matches", report)

    async def _timed(self, kind: str, method: str, path: str, body: object = None) -> dict[str, Any] | None:
        """The answer as JSON (empty for a page), its time noted; None if it was no success."""
        is_measured, begun = self.measuring, time.perf_counter()
        try:
            status, answer = await self._connections.ask(method, path, body)
        except (OSError, asyncio.IncompleteReadError):
            status, answer = 0, b""
        if is_measured:
            self.times[kind].append(time.perf_counter() - begun)
        if not 200 <= status < 300:
            self.errors[f"{kind}: {status}"] += 1
            return None
        told: dict[str, Any] = json.loads(answer) if answer[:1] == b"{" else {}
        return told


async def measure(address: str, key: str, multiple: float, warm: float, seconds: float, wait: float) -> dict[str, Any]:
    """Play for `warm` seconds, measure for so many, go on until all who joined are in a match, or for `wait`."""
    day = GameDay()
    host, _, port = address.removeprefix("http://").partition(":")
    crowd = Crowd(day, Connections(host, int(port), key), multiple)
    arriving = [
        asyncio.create_task(crowd.arrive(day.busiest * day.joins / 86_400 * multiple, crowd.play)),
        asyncio.create_task(crowd.arrive(day.busiest * day.reads / 86_400 * multiple, crowd.read)),
        asyncio.create_task(crowd.arrive(day.busiest * day.views / 86_400 * multiple, crowd.look)),
    ]
    await asyncio.sleep(warm)
    crowd.measuring = True
    await asyncio.sleep(seconds)
    crowd.measuring = False
    until = time.monotonic() + wait
    while len(crowd.times["wait"]) < crowd.seeking and time.monotonic() < until:
        await asyncio.sleep(0.2)
    crowd.times["wait"] += [math.inf] * (crowd.seeking - len(crowd.times["wait"]))
    for task in arriving:
        task.cancel()
    errors = dict(crowd.errors)
    await crowd.finish(POLL + 2 * day.match_seconds_at(multiple))
    figures: dict[str, Any] = {"late": crowd.late, "errors": errors, "too_late": crowd.late > LATE}
    for kind, times in crowd.times.items():
        if not times:
            continue
        half, most, nearly_all = np.percentile(times, [50, 95, 99], method="higher").tolist()
        figures[kind] = {"count": len(times), "p50": half, "p95": most, "p99": nearly_all}
    return figures


def main() -> None:
    """Play against the service of the arguments."""
    address, key, *numbers = sys.argv[1:]
    multiple, warm, seconds, wait = map(float, numbers)
    print(json.dumps(uvloop.run(measure(address, key, multiple, warm, seconds, wait))))


if __name__ == "__main__":
    main()
