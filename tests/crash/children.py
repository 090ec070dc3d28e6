"""Child processes forked from one that has loaded everything: new in milliseconds, and as real to kill as any."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 120.0  # seconds that a child may be silent: beyond that it hangs
FORKS = get_context("forkserver")


def prepare() -> None:
    """Start the process that is forked, once; it ends with this one."""
    FORKS.set_forkserver_preload(["pytest", "crash.preload"])
    with here_on_path():  # it imports nothing from where its parent does, unless told so
        forkserver.ensure_running()


@contextmanager
def here_on_path() -> Iterator[None]:
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


class Child:
    """A process that runs one function of (url, pipe, …), and what it says."""

    def __init__(self, work: Callable[..., None], url: str, *rest: object) -> None:
        self.pipe, theirs = FORKS.Pipe()
        self.process = FORKS.Process(target=work, args=(url, theirs, *rest), daemon=True)
        self.process.start()
        theirs.close()  # so that this end is told when the child is gone

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.join(PATIENCE)
        self.pipe.close()

    def next(self) -> object:
        """What it says next. Raises EOFError when it is gone."""
        assert self.pipe.poll(PATIENCE), f"the child said nothing for {PATIENCE:g} s"
        return self.pipe.recv()

    def kill(self) -> list[object]:
        """End it by SIGKILL; what it had said before."""
        self.process.kill()
        said = []
        while True:
            try:
                said.append(self.next())
            except EOFError:
                break
        self.process.join(PATIENCE)
        assert self.process.exitcode == -signal.SIGKILL
        return said


def run_together(children: list[Child]) -> float:
    """Let children that are ready begin at the same moment, and wait for all; seconds until the last was done."""
    for child in children:
        assert child.next() == "ready"
    begin = time.monotonic()
    for child in children:
        child.pipe.send("start")
    waiting: list[Connection] = [child.pipe for child in children]
    while waiting:
        done = wait(waiting, PATIENCE)
        assert done, f"no child said anything for {PATIENCE:g} s"
        for pipe in done:
            assert pipe.recv() == "done"  # EOFError: it failed, and said why on standard error
            waiting.remove(pipe)
    took = time.monotonic() - begin
    for child in children:
        child.process.join(PATIENCE)
        assert child.process.exitcode == 0
    return took
