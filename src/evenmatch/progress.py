"""Progress of long calls, on one line of standard error that is overwritten, for terminals and notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds before the first line
PAUSE = 0.3  # seconds between two lines
_state = {"silent": False, "width": 0}  # width: of the line that the next one overwrites


def silence() -> None:
    """Show no more progress by default: this process is a command or a server, which reports in its own way."""
    _state["silent"] = True


def is_watched() -> bool:
    """Whether a person reads standard error: on a terminal, or in a notebook, where it is not a terminal."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def say(text: str) -> None:
    """Print a line in place of an unfinished line of progress."""
    _overwrite("")
    print(text, file=sys.stderr, flush=True)


@contextmanager
def shown_progress() -> Iterator[Callable[[str, float], None]]:
    """Yield a function of a step's name and its completed share, 0 to 1, that shows them and the time left."""
    if _state["silent"] or not is_watched():
        yield lambda _what, _share: None
        return
    begin, shown, before = time.monotonic(), time.monotonic() + PATIENCE - PAUSE, 0.0

    def report(what: str, share: float) -> None:
        nonlocal begin, shown, before
        now = time.monotonic()
        if share < before:  # the next step
            begin = now
        before = share
        if now - shown >= PAUSE:
            shown = now
            left = f", about {(now - begin) * (1 - share) / share:.0f} s left" if share > 0 else ""
            _overwrite(f"evenmatch: {what} ({share:.0%}{left})")

    try:
        yield report
    finally:
        _overwrite("")


def _overwrite(text: str) -> None:
    if text or _state["width"]:
        print(f"\r{text:<{_state['width']}}" + ("" if text else "\r"), end="", file=sys.stderr, flush=True)
    _state["width"] = len(text)
