"""The workers of the lab: threads or processes of this machine, or an executor with the same methods."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Workers(Protocol):
    """Workers that call functions of evenmatch's modules.

    workers  calls that run at once
    share    a large value as the last argument of many calls
    """

    workers: int

    def share(self, value: object) -> Any: ...  # noqa: ANN401, D102 - what `submit` takes in the value's place

    def submit(self, fn: Callable[..., T], /, *args: Any) -> Future[T]: ...  # noqa: ANN401, D102

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None: ...  # noqa: D102


class Threads(ThreadPoolExecutor):
    """Threads: the kernels release the interpreter's lock."""

    def __init__(self, workers: int | None = None) -> None:
        """Start the threads. workers: None for one per core."""
        self.workers = workers or os.cpu_count() or 1
        super().__init__(self.workers)

    def share(self, value: T) -> T:
        """The value itself."""
        return value


class Processes(ProcessPoolExecutor):
    """Processes, for simulations, which spend most of their time in Python."""

    def __init__(self, workers: int | None = None) -> None:
        """Begin. workers: None for one per core."""
        self.workers = workers or os.cpu_count() or 1
        super().__init__(self.workers, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)

    def share(self, value: T) -> T:
        """The value itself."""
        return value


def _end_with_parent() -> None:
    """Exit as soon as the parent process has been killed; without this, an idle worker would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
