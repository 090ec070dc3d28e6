"""Write pictures of the site's pages into docs/screenshots: `make screenshots`.

Starts the demo, waits until there is life in it, and ends it again.
"""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote

from dev import fail, say

if find_spec("playwright") is None:
    fail("pictures need packages that are not installed; to install them, run: python3 tools/dev.py screenshots")

from PIL import Image
from playwright.sync_api import Browser, Page

from chromium import chromium

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "screenshots"
LIMIT = 150_000  # bytes of a picture
COLOURS = (256, 128, 64)  # of the palette, until it is small enough
START, LIFE = 90.0, 480.0  # seconds until the demo serves, and until its queues have made matches
READY = """() => !document.querySelector('[data-every]')
    && [...document.querySelectorAll('[data-figure], [data-from]')].every((one) => one.dataset.drawn)"""
LADDER = "arena"
OFFERED = 40  # matches


class Picture(NamedTuple):
    """A file's name, the address of a page, and the window in which it is seen."""

    name: str
    path: str
    width: int = 1200
    height: int = 860
    scheme: str = "light"


class Demo(NamedTuple):
    """Where the demo is, and the key of its operator."""

    address: str
    key: str


@contextmanager
def demo() -> Iterator[Demo]:
    """The demo on a free port, until the block ends."""
    with tempfile.TemporaryFile("w+") as told:
        command = [sys.executable, "-m", "evenmatch", "demo", "--port", "0"]
        process = subprocess.Popen(command, stdout=told, stderr=told)
        try:
            yield _read(process, told)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _read(process: subprocess.Popen[bytes], told: IO[str]) -> Demo:
    """What the demo tells once it serves."""
    deadline = time.monotonic() + START
    while process.poll() is None and time.monotonic() < deadline:
        told.seek(0)
        text = told.read()
        if (found := re.search(r"log in at (\S+)/login with (em_\S+)", text)) and "Ctrl-C" in text:
            return Demo(found[1], found[2])
        time.sleep(0.2)
    return fail(f"the demo did not begin to serve within {START:g} s")


def ask(demo: Demo, path: str) -> list[dict[str, Any]]:
    """What the API lists."""
    with urllib.request.urlopen(f"{demo.address}/v1/ladders/{path}", timeout=10) as answer:
        items: list[dict[str, Any]] = json.load(answer)["items"]
    return items


def wait_for_life(page: Page) -> None:
    """Until enough matches were offered, and somebody waits."""
    deadline = time.monotonic() + LIFE
    while time.monotonic() < deadline:
        page.goto(f"/ladders/{LADDER}/queue")
        head = page.locator("#even th").first
        offered = re.search(r"\d+", head.text_content() or "") if head.count() else None
        if offered and int(offered[0]) >= OFFERED and page.locator("#waiting svg").count():
            return
        page.wait_for_timeout(2000)
    fail(f"nobody played in the demo within {LIFE:g} s")


def pictures(demo: Demo) -> Sequence[Picture]:
    """All of them. Who and what is seen is chosen from what was played."""
    best = ask(demo, f"{LADDER}/standings")[4]["player"]
    match = _interesting(ask(demo, f"{LADDER}/matches?limit=100"))
    lost = next(team for team in match["teams"] if team["place"] > 1)["players"][0]["player"]
    base = f"/ladders/{LADDER}"
    player = f"{base}/players/{quote(best, safe='')}"
    won = next(team for team in match["teams"] if team["place"] == 1)["players"][0]["player"]
    played = f"{base}/matches/{quote(match['match_id'], safe='')}"
    why = f"{played}?player={quote(lost, safe='')}"
    return (
        Picture("ladders", "/"),
        Picture("overview", base),
        Picture("standings", f"{base}/standings"),
        Picture("player", player),
        Picture("match", why),
        Picture("result", f"{played}/results/{quote(won, safe='')}", 390, 760, "dark"),
        Picture("queue", f"{base}/queue", height=1500),
        Picture("lab", f"{base}/lab"),
        Picture("simulator", f"{base}/lab/queue"),
        Picture("operators", f"{base}/operate"),
        Picture("player-dark", player, scheme="dark"),
        Picture("match-phone", why, 360, 740),
    )


def _interesting(matches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The latest match in which somebody quit; the latest of all where nobody did."""
    quit_in = (one for one in matches if any(who.get("quit") for team in one["teams"] for who in team["players"]))
    return next(quit_in, matches[0])


def shoot(browser: Browser, demo: Demo, cookies: Sequence[Any], picture: Picture) -> bytes:
    """A page as it is seen."""
    context = browser.new_context(
        base_url=demo.address,
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    context.add_cookies(cookies if picture.name == "operators" else [])
    page = context.new_page()
    page.goto(picture.path)
    page.wait_for_function(READY)
    image = page.screenshot()
    context.close()
    return image


def small(image: bytes) -> bytes:
    """The same picture with a palette, within the limit."""
    for colours in COLOURS:
        out = io.BytesIO()
        Image.open(io.BytesIO(image)).convert("RGB").quantize(colours).save(out, "PNG", optimize=True)
        if out.tell() <= LIMIT:
            break
    return out.getvalue()


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    say("starting the demo")
    with demo() as served, chromium() as browser:
        context = browser.new_context(base_url=served.address)
        page = context.new_page()
        page.goto("/login")
        page.get_by_label("Key", exact=True).fill(served.key)
        page.get_by_role("button", name="Log in with a key").click()
        page.wait_for_url(lambda url: "/login" not in url)
        say("waiting until people play")
        wait_for_life(page)
        cookies = context.cookies()
        for picture in pictures(served):
            image = small(shoot(browser, served, cookies, picture))
            (FOLDER / f"{picture.name}.png").write_bytes(image)
            say(f"docs/screenshots/{picture.name}.png: {len(image) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
