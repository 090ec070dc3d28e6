"""A real Chromium, for tests and screenshots; Debian's, or another on PATH."""

from __future__ import annotations

import ctypes.util
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from dev import CHROMIUMS

FLAGS = (
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-dev-shm-usage",  # small in containers
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)
PATIENCE = 30_000  # milliseconds until it is there


def lacking() -> str | None:
    """Why no Chromium can be started here; None: it can."""
    if _program() is None:
        return f"there is none of {', '.join(CHROMIUMS)} on PATH"
    if sys.platform == "linux" and ctypes.util.find_library("atomic") is None:
        return "libatomic1 is not installed, without which playwright hangs"
    return None


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser, until the block ends; `lacking` says before whether there can be one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_program(),
            args=FLAGS,
            ignore_default_args=["--disable-back-forward-cache"],  # people have it
            timeout=PATIENCE,
        )
        try:
            yield browser
        finally:
            browser.close()


def _program() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUMS)), None)
