"""Connect to a Ray cluster, or start one of this machine's processors; compare its nodes with this machine."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np

from evenmatch import __version__, systems
from evenmatch.cluster import worker
from evenmatch.errors import ClusterError, EvenmatchError, UsageError, needing
from evenmatch.systems.fingerprint import fingerprint

LOCAL = "local"
SECONDS = 5.0  # to wait for an answer
EXPECTED = "expected HOST:PORT of the head node of a Ray cluster, for example 10.0.0.5:6379, or local"
HTTP2_CLIENT = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # RFC 9113, 3.4: SETTINGS
HTTP2_SETTINGS = 4  # the type of frame that a server sends first


class ClusterAddress(NamedTuple):
    """The head node of a cluster."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> ClusterAddress | None:
    """The address of --cluster; None for `local`. Raises UsageError."""
    if text == LOCAL:
        return None
    if "://" in text:
        raise UsageError(f"--cluster {text}: {EXPECTED}; run the command on a machine of the cluster")
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--cluster {text}: {EXPECTED}")
    return ClusterAddress(host.removeprefix("[").removesuffix("]"), int(port))


def check_answers(address: ClusterAddress) -> None:
    """Raise ClusterError unless a gRPC server, as Ray's is, answers within seconds."""
    try:
        with socket.create_connection((address.host, address.port), SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
                _check_protocol(address, connection)
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ClusterError(f"the cluster at {address} cannot be reached: {reason}; {EXPECTED}") from error


def _check_protocol(address: ClusterAddress, connection: socket.socket) -> None:
    """Start an HTTP/2 connection: a gRPC server answers at once with a frame of settings."""
    connection.settimeout(SECONDS)
    connection.sendall(HTTP2_CLIENT)
    answer = b""
    while len(answer) < 4:
        received = connection.recv(64)
        if not received:
            break
        answer += received
    if len(answer) < 4 or answer[3] != HTTP2_SETTINGS:
        raise ClusterError(f"the server at {address} is not a Ray cluster; {EXPECTED}")


def node_facts(names: Sequence[str]) -> dict[str, str]:
    """Return the versions, the kind of processor, and the fingerprints of the named systems on this machine."""
    return {
        "evenmatch": __version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "processor": f"{platform.system()} {platform.machine()}",
        **{f"kernels of {name}": _kernels(name) for name in names},
    }


@cache
def _kernels(name: str) -> str:
    try:
        return fingerprint(systems.find(name))[:16]
    except EvenmatchError as error:  # for example a file that is not there on this node
        return str(error)


def differences(facts: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Describe the facts that differ from the expected ones."""
    if facts.get("evenmatch") != expected["evenmatch"]:
        wrong = ["evenmatch"]
    else:
        wrong = [name for name in expected if facts.get(name) != expected[name]]
    return [f"{name} {facts.get(name, 'is missing')}, here {expected[name]}" for name in wrong]


CHECK_SECONDS = 60.0  # a node's first process imports numba, which is slow
STORE_BYTES = 256 << 20  # shared memory of a `local` cluster
# Ray reads these when it is first imported. Nothing is reported, uploaded or installed.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under `uv run`, Ray would upload the folder
    "RAY_py_gcs_connect_timeout_s": "5",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "30",
    "RAY_task_oom_retries": "3",  # by default, Ray repeats a task that runs out of memory forever
}
ONE_MACHINE = ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray then listens on loopback alone


@dataclass(frozen=True)
class Cluster:
    """A cluster to which this process is connected.

    address   as the user named it
    workers   tasks that run at once
    systems   rating systems whose kernels are the same on all nodes
    expected  the facts that a process must match to run a task, see `worker.facts_of`
    """

    address: str
    workers: int
    systems: tuple[str, ...]
    expected: dict[str, str]


@contextmanager
def connect(text: str, systems: Sequence[str]) -> Iterator[Cluster]:
    """Connect to the cluster at HOST:PORT, or start one on this machine for `local`, and check all of its nodes.

    systems  the rating systems that the tasks use, as `systems.find` takes them
    Raises MissingExtraError without Ray, UsageError for an invalid address, ClusterError where no cluster
    answers within seconds, or a node has another version, other kernels, or another kind of processor.
    """
    address = parse_address(text)
    if address is not None:
        check_answers(address)
    os.environ.update({name: value for name, value in SETTINGS.items() if name not in os.environ})
    if address is None:
        os.environ.setdefault(*ONE_MACHINE)
    own_token = address is None and "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules
    if own_token:  # keeps other users of this machine out; an imported Ray has a token already
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    with needing("cluster", "work on a cluster"):
        import ray
    if ray.is_initialized():
        raise UsageError("this process is connected to a cluster already; expected one connection at a time")
    expected = worker.facts_of(systems)
    folder = tempfile.mkdtemp(prefix="evenmatch-") if address is None else None
    try:
        _begin(ray, text, str(address) if address else None, folder)
        yield Cluster(text, _check_nodes(ray, expected, systems), tuple(systems), expected)
    finally:
        ray.shutdown()
        if own_token:
            del os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN"]
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _begin(ray: ModuleType, text: str, address: str | None, folder: str | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        if address is not None:
            ray.init(address=address, **quiet)
            return
        ray.init(
            address="local",
            num_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            include_dashboard=False,
            object_store_memory=STORE_BYTES,
            _temp_dir=folder,
            **quiet,
        )
    except SystemExit:  # Ray exits if it cannot connect
        raise ClusterError(f"the cluster at {text} did not answer; is it a running Ray cluster?") from None
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ClusterError(f"the cluster at {text} refused: {_first_line(error)}") from error


def _check_nodes(ray: ModuleType, expected: dict[str, str], systems: Sequence[str]) -> int:
    """Check the facts of every node, and return how many tasks the nodes run at once. Raises ClusterError."""
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise ClusterError("no node of the cluster has a processor for tasks")
    asking = remote(ray, worker.facts_of, num_cpus=0, max_retries=1)
    asked = {node["NodeID"]: asking.options(scheduling_strategy=_on(node["NodeID"])).remote(systems) for node in nodes}
    wrong: list[str] = []
    for node in nodes:
        name = node["NodeManagerAddress"]
        try:
            facts = ray.get(asked[node["NodeID"]], timeout=CHECK_SECONDS)
        except ray.exceptions.GetTimeoutError:
            wrong.append(f"{name}: none of its processes answered within {CHECK_SECONDS:g} s")
        except ray.exceptions.RayError as error:
            wrong.append(f"{name}: {_first_line(error)}")
        else:
            wrong += [f"{name}: {difference}" for difference in differences(facts, expected)]
    if wrong:
        raise ClusterError(refusal(wrong))
    return sum(int(node["Resources"]["CPU"]) for node in nodes)


def refusal(wrong: Sequence[str]) -> str:
    """Return the message about nodes that differ from this machine."""
    return "\n  ".join(
        ("some workers could compute different results; install the same versions on all nodes:", *dict.fromkeys(wrong))
    )


def remote(ray: ModuleType, function: Any, **options: Any) -> Any:  # noqa: ANN401 - Ray's own types are not exact
    """Turn a function of `worker` into a Ray task. Its code is sent, since a node may have another version."""
    ray.cloudpickle.register_pickle_by_value(worker)
    return ray.remote(**options)(function)


def _on(node: str) -> Any:  # noqa: ANN401
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id=node, soft=False)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
