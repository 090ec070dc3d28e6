"""Steps of a pipeline in threads of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TypeVar

T = TypeVar("T")
_END = object()


@contextmanager
def ahead(items: Iterable[T], name: str, depth: int = 1) -> Iterator[Iterator[T]]:
    """Yield the items, produced by a thread that is at most `depth` items ahead; its errors are raised here.

    When the block ends, the thread is stopped after the item that it is working at.
    """
    waiting: queue.Queue[object] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: object) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                return

    def produce() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(_END)
        except BaseException as error:
            put(_Failure(error))

    def received() -> Generator[T]:
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]

    thread = threading.Thread(target=produce, name=f"evenmatch-{name}", daemon=True)
    thread.start()
    try:
        with closing(received()) as given:
            yield given
    finally:
        stopped.set()
        thread.join()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
