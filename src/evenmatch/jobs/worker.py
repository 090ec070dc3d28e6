"""A worker process: it does one task for the service and ends. Run as a program by `worker_process`.

It reads one message from standard input: the URL of the database and the task. Then it sends messages: the positions
that it reaches, a heartbeat each second, and at last the result or the error. Another message from the parent asks it
to stop; the end of standard input ends it at once, so it never outlives its parent, even if that is killed.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from evenmatch.errors import EvenmatchError, JobCancelledError

if TYPE_CHECKING:
    from evenmatch.jobs.tasks import Task


NICE = 5  # requests that the service answers come first
BEAT = 1.0  # seconds between two heartbeats
ORPHANED = 3  # exit status after the end of standard input
CANCELLED = "the job was cancelled; nothing was changed"


def main() -> None:
    """Do the task that the parent sends."""
    gc.disable()  # a task makes millions of rows and few cycles; the process ends with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    reports = Connection(os.dup(sys.stdout.fileno()), readable=False)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not disturb the messages
    requests = Connection(os.dup(sys.stdin.fileno()), writable=False)
    try:
        url, packed = requests.recv_bytes().decode(), requests.recv_bytes()
    except (EOFError, OSError):
        sys.exit(ORPHANED)
    cancelled = threading.Event()
    threading.Thread(target=_listen, args=(requests, cancelled), daemon=True).start()
    sending = threading.Lock()

    def send(kind: str, content: object) -> None:
        with sending:
            reports.send((kind, content))

    threading.Thread(target=_beat, args=(send,), daemon=True).start()
    kind, content = _outcome(url, packed, send, cancelled)
    try:
        send(kind, content)
    except BrokenPipeError:  # the parent has just been killed
        sys.exit(ORPHANED)


def _listen(requests: Connection, cancelled: threading.Event) -> None:
    """Wait for the request to stop, and for the end of the parent."""
    while True:
        try:
            requests.recv_bytes()
        except (EOFError, OSError):
            os._exit(ORPHANED)
        cancelled.set()


def _beat(send: Callable[[str, object], None]) -> None:
    """Tell the parent again and again that this process goes on."""
    with suppress(OSError):  # the parent has ended
        while True:
            send("beat", None)
            time.sleep(BEAT)


def _outcome(
    url: str, packed: bytes, send: Callable[[str, object], None], cancelled: threading.Event
) -> tuple[str, object]:
    """Do the task: ("done", result), ("failed", error) or ("bug", traceback)."""
    import pickle  # noqa: PLC0415 - of the parent's own values

    def progress(position: int) -> None:
        if cancelled.is_set():
            raise JobCancelledError(CANCELLED)
        send("progress", position)

    try:
        from evenmatch.ledger.database import Database  # noqa: PLC0415 - after the watch over the parent has begun
        from evenmatch.operations.clock import DatabaseClock  # noqa: PLC0415
        from evenmatch.operations.service import Service  # noqa: PLC0415

        task: Task = pickle.loads(packed)
        database = Database.open(url, yielding=True)
        with Service(database, DatabaseClock(database.time)) as service:
            return "done", dict(task.run(service, progress))
    except EvenmatchError as error:
        return "failed", error
    except Exception:
        return "bug", traceback.format_exc()


if __name__ == "__main__":
    main()
