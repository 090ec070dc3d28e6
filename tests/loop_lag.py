"""How long an event loop, or a process that serves, was busy with one thing while a test did its worst."""

import asyncio
import gc
import threading
import time
from typing import Self

import httpx

EVERY = 0.005  # seconds between two looks in this process
ASKED_EVERY = 0.05  # seconds between two requests to a process
BUSY = 1.0  # seconds that a test allows, on a machine where several run; the promise is a tenth of it


class LoopLag:
    """The longest delay of a callback in an event loop, in seconds: `with LoopLag(loop) as lag: …; lag.worst`.

    Objects made before, as those of thousands of tests, are not garbage-collected meanwhile, as in a process that
    serves: a collection of all of them takes a second. Measures can be nested.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self.worst, self._ended = loop, 0.0, threading.Event()

    def __enter__(self) -> Self:
        self._is_outermost = not gc.get_freeze_count()
        gc.freeze()
        self._task = asyncio.run_coroutine_threadsafe(self._watch(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._task.result(60)
        if self._is_outermost:
            gc.unfreeze()

    async def _watch(self) -> None:
        while not self._ended.is_set():
            begun = time.perf_counter()
            await asyncio.sleep(EVERY)
            self.worst = max(self.worst, time.perf_counter() - begun - EVERY)


class ServedLag:
    """The longest time until a process answered /healthz, in seconds; infinite if it did not answer."""

    def __init__(self, address: str) -> None:
        self._address, self.worst, self._ended = address, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _watch(self) -> None:
        with httpx.Client(base_url=self._address, timeout=30) as client:
            while not self._ended.wait(ASKED_EVERY):
                begun = time.perf_counter()
                try:
                    is_well = client.get("/healthz").status_code == 200
                except httpx.HTTPError:
                    is_well = False
                self.worst = max(self.worst, time.perf_counter() - begun if is_well else float("inf"))
