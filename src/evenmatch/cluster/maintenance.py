"""Rebuild, verify and audit the ladders of a PostgreSQL database, one task each.

Every worker process needs the master secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evenmatch.cluster.connection import Cluster
from evenmatch.cluster.tasks import NamedTask, run_jobs
from evenmatch.corrections.ladder_heads import LadderHead
from evenmatch.corrections.repair import RebuildResult
from evenmatch.corrections.verification import Verification
from evenmatch.errors import UsageError
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ledger.database_url import parse_url, without_password
from evenmatch.operations.open_database import open_existing
from evenmatch.queues.audit import QueueAudit

Progress = Callable[[int], None]


def systems_of(db: str) -> list[str]:
    """The rating systems of a database's ladders, as `systems.find` takes them."""
    with open_existing(db) as service:
        return sorted({ladder.system for ladder in service.ladders()})


class DatabaseAddress:
    """The URL of a database that workers open; it is shown without its password."""

    def __init__(self, url: str) -> None:
        """Raise UsageError for an invalid URL or a file, which other machines cannot open safely."""
        if parse_url(url).get_backend_name() != "postgresql":
            raise UsageError(f"{url}: an SQLite file is for one machine; expected a postgresql:// URL with --cluster")
        self.url = url

    def __repr__(self) -> str:
        return f"DatabaseAddress({without_password(self.url)!r})"


def rebuild_ladders(
    cluster: Cluster, db: str, ladders: Sequence[str], *, whole: bool = False, progress: Progress | None = None
) -> list[RebuildResult | None]:
    """Rebuild each of these ladders as `Service.rebuild` does; results in their order, None where none was due.

    progress  called with the number of ladders done
    A task repeated after the loss of its worker ignores the unfinished generation and starts a new one. Raises the
    errors of `run_jobs`; ladders that are finished by then stay rebuilt.
    """
    address = DatabaseAddress(db)
    jobs = [NamedTask(f"ladder {name!r}", (address, name, whole)) for name in ladders]
    return run_jobs(cluster, rebuild_ladder, jobs, _counted(progress))


def rebuild_ladder(address: DatabaseAddress, ladder: str, whole: bool) -> RebuildResult | None:
    """Rebuild one ladder."""
    with open_existing(address.url) as service:
        return service.rebuild(ladder, whole=whole)


def verify_ladders(
    cluster: Cluster, db: str, ladders: Sequence[str], kept: Mapping[str, LadderHead], progress: Progress | None = None
) -> list[Verification]:
    """Verify each of these ladders as `Service.verify` does; results in their order.

    kept  heads that were exported before, by ladder
    """
    address = DatabaseAddress(db)
    jobs = [NamedTask(f"ladder {name!r}", (address, name, kept.get(name))) for name in ladders]
    return run_jobs(cluster, verify_ladder, jobs, _counted(progress))


def verify_ladder(address: DatabaseAddress, ladder: str, kept: LadderHead | None) -> Verification:
    """Verify one ladder."""
    with open_existing(address.url) as service:
        return service.verify(ladder, None, kept)


def audit_queues(
    cluster: Cluster,
    db: str,
    queues: Sequence[tuple[str, str]],
    since: int,
    until: int,
    progress: Progress | None = None,
) -> list[QueueAudit]:
    """Audit each of these queues, (ladder, name), as `LadderQueries.queue_audit` does; results in their order."""
    address = DatabaseAddress(db)
    jobs = [
        NamedTask(f"queue {name!r} of ladder {ladder!r}", (address, ladder, name, since, until))
        for ladder, name in queues
    ]
    return run_jobs(cluster, audit_queue, jobs, _counted(progress))


def audit_queue(address: DatabaseAddress, ladder: str, queue: str, since: int, until: int) -> QueueAudit:
    """Audit one queue."""
    with open_existing(address.url) as service:
        return LadderQueries(service).queue_audit(ladder, queue, since, until)


def _counted(progress: Progress | None) -> Callable[[int, object], None] | None:
    return None if progress is None else lambda done, _: progress(done)
