"""The serving processes of one supervisor, as one of them sees its group."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evenmatch.http.processes.commands import Supervision
from evenmatch.http.processes.shared_memory import SharedMemory


@dataclass(frozen=True)
class ProcessGroup:
    """The place of a serving process in its group.

    number  from 1 to `count`, in logs and metrics; its successor after a reload has the same one
    cell    in the shared memory; the successor has another one
    folder  that only the supervisor and its processes may enter
    """

    number: int
    count: int
    cell: int
    folder: Path
    memory: SharedMemory
    supervision: Supervision

    @classmethod
    def join(cls, supervision: Supervision) -> ProcessGroup:
        """The group that the supervisor has put this process into."""
        start = supervision.start
        folder = Path(start.folder)
        return cls(start.number, start.count, start.cell, folder, SharedMemory(folder / "shared"), supervision)

    @property
    def sockets(self) -> Path:
        """The folder of the sockets at which the processes answer each other."""
        return self.folder / "sockets"

    @property
    def socket(self) -> Path:
        """The socket of this process."""
        return self.sockets / f"{self.number}-{self.cell}"

    @property
    def jobs(self) -> Path:
        """The folder by which the processes count their running jobs together."""
        return self.folder / "jobs"

    @property
    def views(self) -> Path:
        """The folder of shared standings."""
        return self.folder / "views"

    @property
    def next_views(self) -> Path:
        """The folder of those of the next database, while other processes still serve the former one."""
        return self.folder / "next-views"
