"""Measure what pages of a running site cost a slow phone: bytes, requests, paints, layout shift.

    evenmatch demo --port 8702
    python tools/page_weight.py http://127.0.0.1:8702 --markdown

Each page is opened with an empty cache, a processor four times slower, and the network of Lighthouse's slow 4G. Bytes
are those on the wire: compressed bodies and headers. Of several visits, the paints are those of the fastest, which
other work on the machine has disturbed least, and the layout shift is that of the worst.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from playwright.sync_api import Browser, CDPSession, Page, ViewportSize

from chromium import chromium

# Lighthouse's mobile profile as request-level throttling: throttling.mobileSlow4G in its core/config/constants.js
SLOW_4G = {
    "offline": False,
    "latency": 562.5,
    "downloadThroughput": 1474.56 * 1024 / 8,
    "uploadThroughput": 675 * 1024 / 8,
}
SLOWER = 4  # processor
PHONE: ViewportSize = {"width": 390, "height": 844}
SETTLED = 2000  # milliseconds after `load` in which paints may still come
WATCH = """() => {
    window.found = { lcp: 0, shift: 0 };
    const watch = (type, use) =>
        new PerformanceObserver((list) => list.getEntries().forEach(use)).observe({ type, buffered: true });
    watch("largest-contentful-paint", (entry) => { found.lcp = entry.startTime; });
    watch("layout-shift", (entry) => { if (!entry.hadRecentInput) found.shift += entry.value; });
}"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


class Visit(NamedTuple):
    """What a visit cost: bytes on the wire, requests, milliseconds until paints, and layout shift."""

    size: int
    requests: int
    first_paint: float
    largest_paint: float
    shift: float


class Wire:
    """The bytes that a page receives, compressed, with headers."""

    def __init__(self, session: CDPSession) -> None:
        self.size, self.requests = 0, 0
        session.send("Network.enable")
        session.on("Network.loadingFinished", self._finished)

    def _finished(self, event: dict[str, float]) -> None:
        self.size += int(event["encodedDataLength"])
        self.requests += 1


@contextmanager
def visitor(browser: Browser, *, scripts: bool) -> Iterator[tuple[Page, Wire]]:
    """A phone with an empty cache, on a slow network."""
    context = browser.new_context(viewport=PHONE, java_script_enabled=scripts, device_scale_factor=2, is_mobile=True)
    page = context.new_page()
    session = context.new_cdp_session(page)
    wire = Wire(session)
    session.send("Network.emulateNetworkConditions", SLOW_4G)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    try:
        yield page, wire
    finally:
        context.close()


def visit(browser: Browser, address: str, *, scripts: bool) -> Visit:
    """Visit a page once."""
    with visitor(browser, scripts=scripts) as (page, wire):
        page.add_init_script(f"({WATCH})()")
        page.goto(address, wait_until="load", timeout=120_000)
        page.wait_for_timeout(SETTLED)
        found = page.evaluate("() => window.found") if scripts else {"lcp": 0.0, "shift": 0.0}
        return Visit(wire.size, wire.requests, page.evaluate(PAINT), found["lcp"], found["shift"])


def visits(browser: Browser, address: str, count: int, *, scripts: bool) -> Visit:
    """Visit a page so often: the fastest paints, and otherwise the worst."""
    sizes, requests, first_paints, largest_paints, shifts = zip(
        *(visit(browser, address, scripts=scripts) for _ in range(count)), strict=True
    )
    return Visit(max(sizes), max(requests), min(first_paints), min(largest_paints), max(shifts))


def bytes_while_open(browser: Browser, address: str, seconds: float) -> tuple[int, int]:
    """Bytes and requests of a page that stays open for so long, after it has loaded."""
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    wire = Wire(context.new_cdp_session(page))
    page.goto(address, wait_until="load")
    page.wait_for_timeout(SETTLED)
    size, requests = wire.size, wire.requests
    page.wait_for_timeout(1000 * seconds)
    context.close()
    return wire.size - size, wire.requests - requests


def pages_of(site: str, ladder: str) -> dict[str, str]:
    """The main pages by name, with a player and a match that were just played."""

    def ask(path: str) -> dict[str, list[dict[str, str]]]:
        with urllib.request.urlopen(f"{site}/v1/ladders/{quote(ladder)}/{path}", timeout=30) as answer:
            found: dict[str, list[dict[str, str]]] = json.load(answer)
        return found

    player = ask("standings?limit=5")["items"][-1]["player"]
    match = ask("matches?limit=1")["items"][0]["match_id"]
    base = f"{site}/ladders/{quote(ladder)}"
    return {
        "ladders": f"{site}/",
        "ladder": base,
        "standings": f"{base}/standings",
        "player": f"{base}/players/{quote(player, safe='')}",
        "match": f"{base}/matches/{quote(match, safe='')}",
        "matches": f"{base}/matches",
        "ratings": f"{base}/distribution",
        "queue": f"{base}/queue",
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure what pages of a running site cost a slow phone.")
    parser.add_argument("site", help="such as http://127.0.0.1:8080")
    parser.add_argument("--ladder", default="arena")
    parser.add_argument("--page", action="append", help="of the table; may be repeated (default: all)")
    parser.add_argument("--visits", type=int, default=3, help="of each page (default: 3)")
    parser.add_argument("--live", type=float, default=0.0, help="also count the bytes of pages open that long")
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    asked = parser.parse_args()
    heads = [
        "page",
        "kB",
        "requests",
        "first paint, s",
        "largest paint, s",
        "shift",
        "kB without scripts",
        "first paint, s",
    ]
    heads += [f"kB in {asked.live:g} s"] if asked.live else []
    before, between, after = ("| ", " | ", " |") if asked.markdown else ("", "\t", "")
    print(before + between.join(heads) + after)
    if asked.markdown:
        print("| --- |" + " ---: |" * (len(heads) - 1))
    with chromium() as browser:
        for name, address in pages_of(asked.site, asked.ladder).items():
            if asked.page is not None and name not in asked.page:
                continue
            one, plain = (visits(browser, address, asked.visits, scripts=scripts) for scripts in (True, False))
            row = [name, f"{one.size / 1000:.1f}", str(one.requests), f"{one.first_paint / 1000:.2f}"]
            row += [f"{one.largest_paint / 1000:.2f}", f"{one.shift:.3f}"]
            row += [f"{plain.size / 1000:.1f}", f"{plain.first_paint / 1000:.2f}"]
            if asked.live:
                size, requests = bytes_while_open(browser, address, asked.live)
                row.append(f"{size / 1000:.1f} ({requests} requests)")
            print(before + between.join(row) + after)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
