"""Trace a reported match from the body of the request to the row: `.venv/bin/python tools/trace_report.py [-v]`.

The report goes through the ASGI application over a warmed service in this process. Counted are the modules and
functions of evenmatch that run until the receipt is sent; -v lists each function with the number of its calls.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.types import ASGIApp

import evenmatch
from evenmatch import rules
from evenmatch.http import logs
from evenmatch.http.app import application
from evenmatch.http.options import read_options
from evenmatch.http.server import site_over
from evenmatch.operations.kernels import load_system
from evenmatch.operations.service import Service

PACKAGE = f"{Path(evenmatch.__file__).parent}/"
PATH = "/v1/ladders/arena/matches"
BEFORE = 10  # reports that warm the service up


class Calls:
    """Counts the calls of evenmatch's functions, in all threads started after its creation, while it is counting."""

    def __init__(self) -> None:
        self.by_function: Counter[tuple[str, str]] = Counter()
        self.is_counting = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self.is_counting and event == "call" and code.co_filename.startswith(PACKAGE):
            name = code.co_qualname.removesuffix(".<locals>").split(".<locals>.<")[0]  # a comprehension is no function
            self.by_function[code.co_filename.removeprefix(PACKAGE), name] += code.co_qualname == name


def report(number: int) -> bytes:
    """The report of a match of two against two; the players are the same in each."""
    players = [[{"player": f"player-{2 * side + slot}", "seconds": 600} for slot in (0, 1)] for side in (0, 1)]
    teams = [{"score": number % 3 + 5 * side, "players": team} for side, team in enumerate(players)]
    return json.dumps({"id": f"m-{number}", "played_at": "2026-01-01T12:00:00Z", "teams": teams}).encode()


async def post(app: ASGIApp, key: str, body: bytes) -> None:
    """Send a report to the application, as a server does. Raises RuntimeError if it is refused."""
    headers = [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")]
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": PATH, "raw_path": PATH.encode()}
    scope |= {"query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401 - the type of ASGI
        sent.append(message)

    await app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise RuntimeError(f"refused: {sent}")


def trace(folder: str) -> Counter[tuple[str, str]]:
    """How often each function (module, qualified name) is called for one report."""
    load_system(rules("elo"))  # a report does not wait for a compiler
    calls = Calls()

    async def run() -> None:
        for number in range(BEFORE + 1):
            calls.is_counting = number == BEFORE
            await post(app, key, report(number))
        calls.is_counting = False

    with Service.open(str(Path(folder, "trace.db"))) as service:
        service.create_ladder("arena", "elo", rules("elo"))
        options = read_options({"log_level": "warning"})
        logs.begin(options)
        site = site_over(service, options)
        app, key = application(site), site.keys.create("trace", ["report"])[1]
        try:
            asyncio.run(run())
        finally:
            sys.setprofile(None)
            site.threads.shutdown()
    return calls.by_function


def main() -> None:
    """Print the counts."""
    with tempfile.TemporaryDirectory() as folder:
        calls = +trace(folder)
    if "-v" in sys.argv[1:]:
        for (module, function), count in sorted(calls.items()):
            print(f"{count:6}  {module}  {function}")
    print(f"{len({module for module, _ in calls}):6}  modules")
    print(f"{len(calls):6}  functions")
    print(f"{calls.total():6}  calls")


if __name__ == "__main__":
    main()
