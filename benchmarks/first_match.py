"""Seconds from the start of `evenmatch demo`, as `make demo` starts it, to the first match that its queues offer.

python -m benchmarks.first_match    once with an empty cache of kernels, then with the one that this left
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, TextIO

import httpx

POLL = 0.1  # seconds between two looks at the queues
LONGEST = 300.0  # seconds
OFFERS = re.compile(r"^evenmatch_offers_total\{.*outcome=\"made\".*\} (\S+)$", re.MULTILINE)
KEY = re.compile(r"log in at \S+ with (\S+)")
ADDRESS = re.compile(r"serving at (http\S+)")


class Start(NamedTuple):
    """Seconds after the start of the process, and what it and its children used of the processors by the end.

    serving  until it answers
    offered  until a queue has offered the first match
    cpu      user and system, until the process has ended
    """

    serving: float
    offered: float
    cpu: float


def start_demo(cache: Path) -> Start:
    """Start the demo with this cache of kernels, and end it after the first match."""
    begin, used = time.perf_counter(), _children_cpu()
    command = [sys.executable, "-m", "evenmatch", "demo", "--port", "0"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    with tempfile.TemporaryFile("w+") as notes:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=notes, text=True, env=environment)
        try:
            assert process.stdout is not None
            address = ADDRESS.match(process.stdout.readline())
            serving = time.perf_counter() - begin
            if address is None:
                raise RuntimeError("the demo did not start")
            while not _has_offer(address[1], notes):
                if time.perf_counter() - begin > LONGEST:
                    raise TimeoutError(f"no match within {LONGEST:.0f} s")
                time.sleep(POLL)
            offered = time.perf_counter() - begin
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    return Start(serving, offered, _children_cpu() - used)


def first_and_later() -> tuple[Start, Start]:
    """With an empty cache, and with the one that this left; the first start may be ended before it is all compiled."""
    with tempfile.TemporaryDirectory(prefix="evenmatch-bench-") as folder:
        return start_demo(Path(folder)), start_demo(Path(folder))


def _has_offer(address: str, notes: TextIO) -> bool:
    """Whether a queue of the demo has offered a match, by its metrics; the operator's key is in its notes."""
    notes.seek(0)
    key = KEY.search(notes.read())
    if key is None:
        return False
    asked = httpx.get(f"{address}/metrics", headers={"Authorization": f"Bearer {key[1]}"}, timeout=LONGEST)
    return any(float(number) > 0 for number in OFFERS.findall(asked.raise_for_status().text))


def _children_cpu() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


if __name__ == "__main__":
    for name, start in zip(("first", "later"), first_and_later(), strict=True):
        print(f"{name}: serving {start.serving:.1f} s, first match {start.offered:.1f} s, CPU {start.cpu:.1f} s")
