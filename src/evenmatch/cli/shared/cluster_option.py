"""The option --cluster: batch work as tasks on a Ray cluster, or on the processors of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.cluster import Cluster
    from evenmatch.lab.backtests.workers import Workers

OnCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on a Ray cluster: HOST:PORT of its head node; or local, for all processors of this machine.",
    ),
]


def on_all_nodes(system: str) -> str:
    """A system as all nodes find it: a file by its whole path, which must be the same there."""
    return str(Path(system).resolve()) if system.lower().endswith(".py") else system


def no_cluster(cluster: str | None, matches: str) -> None:
    """Raise UsageError if one file is to be rated on a cluster: it is the work of one process."""
    if cluster is not None:
        raise UsageError(f"--cluster: {matches} is one file, for one process; expected a folder or URL of partitions")


@contextmanager
def connected(address: str, systems: Sequence[str]) -> Iterator[Cluster]:
    """The cluster of --cluster, whose nodes were compared with this machine.

    systems  all that will be used, as `systems.find` takes them
    """
    from evenmatch.cli.shared.output import working
    from evenmatch.cluster import connect

    with ExitStack() as stack:
        with working(f"connecting to the cluster {address}"):
            cluster = stack.enter_context(connect(address, systems))
        yield cluster


@contextmanager
def workers_of(address: str | None, systems: Sequence[str]) -> Iterator[Workers | None]:
    """Workers that replay histories: those of a cluster; None without one, for threads."""
    if address is None:
        yield None
        return
    from evenmatch.cluster.tasks import executor_of

    with connected(address, systems) as cluster, executor_of(cluster) as workers:
        yield workers
