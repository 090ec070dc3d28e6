"""A real Ray cluster for tests: a head node and others as processes of their own on loopback, ended with the tests.

Nothing is installed, uploaded or reported. Only those who have its token can give it work: the processes that the tests
start. A conftest offers the cluster, which starts when a test asks for it, by

    from ray_cluster import ray_cluster  # noqa: F401
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest

NODE = Path(__file__).parent / "ray_node.py"
START_SECONDS = 240.0  # on a machine that does much else; 10 on a quiet one
STOP_SECONDS = 40.0  # Ray drains a node first
STORE_BYTES = 80_000_000
# The shell ends what it started when its standard input ends, so also where the tests are killed.
GUARD = '"$@" </dev/null & node=$!; read -r word; kill -TERM "$node"; wait "$node"'
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listen on loopback
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_enable_metrics_collection": "0",
    "RAY_health_check_period_ms": "500",  # a node that was killed is missed sooner
}
os.environ.update(SETTINGS)  # Ray reads them when it is imported, before any fixture


class RayNode:
    """One node: `ray start --block` under a guard."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, prefix: Sequence[str]
    ) -> None:
        self.log = log
        command = [*prefix, sys.executable, str(NODE), "start", "--block", "--disable-usage-stats", *arguments]
        with log.open("wb") as output:
            self._guard = subprocess.Popen(
                ["sh", "-c", GUARD, "guard", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                cwd=log.parent,
                start_new_session=True,
            )

    @property
    def has_ended(self) -> bool:
        return self._guard.poll() is not None

    def processes(self) -> list[psutil.Process]:
        """All processes of the node."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._guard.pid).children(recursive=True)
        return []

    def kill(self) -> None:
        """Kill all processes of the node at once, as a power cut does."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._guard.wait(STOP_SECONDS)

    def close(self) -> None:
        """End the node, and wait until none of its processes is left."""
        left = self.processes()
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._guard.wait(STOP_SECONDS)
        for process in psutil.wait_procs(left, timeout=5)[1]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._guard.wait(STOP_SECONDS)


class RayCluster:
    """A head node and others, each with processes that do tasks."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # a socket's path has 107 bytes
        self.nodes: list[RayNode] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"

    def start(self) -> None:
        """Start the head and one more node, each with one worker, and wait for them."""
        head = ("--head", f"--port={self.address.partition(':')[2]}", f"--temp-dir={self.folder}")
        options = ("--include-dashboard=false", "--no-monitor", "--dashboard-agent-listen-port=0")
        self._add([*head, *options, "--num-cpus=1"], {}, ())
        self._wait_for_head()
        self.add_node()
        self.wait_for_workers(2)

    def add_node(
        self, environment: Mapping[str, str] = MappingProxyType({}), prefix: Sequence[str] = (), workers: int = 1
    ) -> RayNode:
        """Start a node. prefix: a command that runs another, for example in a namespace of its own."""
        arguments = [f"--address={self.address}", f"--num-cpus={workers}"]
        return self._add(arguments, {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1", **environment}, prefix)

    def wait_for_workers(self, count: int) -> None:
        """Wait until so many nodes with a worker are alive; for a process that is not connected."""
        import ray  # noqa: PLC0415 - it reads SETTINGS

        ray.init(address=self.address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        try:
            wait_for_nodes(count)
        finally:
            ray.shutdown()

    def task_processes(self) -> list[psutil.Process]:
        """The processes that do tasks now, which Ray names by the function."""
        found = []
        for node in self.nodes:
            for process in node.processes():
                with suppress(psutil.NoSuchProcess):
                    if " ".join(process.cmdline()).startswith("ray::run"):
                        found.append(process)
        return found

    @contextmanager
    def one_task_killed(self) -> Iterator[list[int]]:
        """Kill a process that does a task inside the block, as soon as there is one; yields its id in a list.

        A thread looks for it all the time: tasks may end before anybody else would look.
        """
        killed: list[int] = []
        over = threading.Event()

        def kill_one() -> None:
            while not killed and not over.wait(0.01):
                for process in self.task_processes()[:1]:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                        killed.append(process.pid)

        watching = threading.Thread(target=kill_one)
        watching.start()
        try:
            yield killed
        finally:
            over.set()
            watching.join()

    def remove(self, node: RayNode) -> None:
        """End a node."""
        self.nodes.remove(node)
        node.close()

    def close(self) -> None:
        """End all nodes, the head last, and remove what Ray wrote."""
        for node in reversed(self.nodes):
            node.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _add(self, arguments: Sequence[str], environment: Mapping[str, str], prefix: Sequence[str]) -> RayNode:
        own = ("--node-ip-address=127.0.0.1", f"--object-store-memory={STORE_BYTES}", "--include-log-monitor=false")
        log = self.folder / f"node-{len(self.nodes)}.log"
        node = RayNode([*own, *arguments], environment, log, prefix)
        self.nodes.append(node)
        return node

    def _wait_for_head(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        host, _, port = self.address.partition(":")
        while True:
            with suppress(OSError), socket.create_connection((host, int(port)), 1):
                return
            if time.monotonic() > deadline or self.nodes[0].has_ended:
                raise RuntimeError(f"the head of the Ray cluster did not start:\n{self.nodes[0].log.read_text()}")
            time.sleep(0.05)


def wait_for_nodes(count: int) -> None:
    """Wait until so many nodes with a worker are alive; for a process that is connected."""
    import ray  # noqa: PLC0415

    deadline = time.monotonic() + START_SECONDS
    while sum(node["Alive"] and node["Resources"].get("CPU", 0) > 0 for node in ray.nodes()) != count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {count} nodes within {START_SECONDS:g} s: {ray.nodes()}")
        time.sleep(0.1)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    """A cluster of two nodes with a worker each, for the tests of a file."""
    pytest.importorskip("ray", reason="Ray has no wheel for this version of Python or this system")
    cluster = RayCluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
