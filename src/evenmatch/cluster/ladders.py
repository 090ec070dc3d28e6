"""Rate the ladders of partitioned Parquet on a cluster. A task rates one ladder folder or a few small ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from evenmatch.cluster.connection import Cluster
from evenmatch.cluster.tasks import NamedTask, run_jobs
from evenmatch.partitioned import RatedLadders, Results, StandingsOptions, rate_partitions, write_manifests
from evenmatch.partitioned.rating import MANIFEST, Progress
from evenmatch.partitioned.stream import Selection, streams_of
from evenmatch.systems.system import Rules
from evenmatch.tables.partitions import Partition, is_url
from evenmatch.whole_file import remove_drafts

TASKS = 16  # about the most tasks per worker; if there are more ladders, small ones share a task


def rate_ladders(
    cluster: Cluster,
    partitions: Sequence[Partition],
    by: Rules,
    *,
    out: str | None = None,
    journal: str | None = None,
    progress: Progress | None = None,
    selection: Selection | None = None,
    standings: StandingsOptions | None = None,
) -> RatedLadders:
    """Rate partitions as `rate_partitions` does, with the same results bit for bit, on a cluster.

    cluster  connected for the system of the rules
    Addresses, also of the results, must lead to the same files on all nodes: a shared folder, or an object store.
    Workers write the files of their ladders; this process writes the manifests when all are done. If a task fails, no
    manifest is written and the finished files are removed. Raises as `rate_partitions` and `run_jobs`.
    """
    selection = selection or Selection()
    done: list[RatedLadders] = []
    sizes: dict[str, int] = {}

    def count(_: int, rated: RatedLadders) -> None:
        done.append(rated)
        if progress is not None:
            read = sum(sizes.get(ladder.name, 0) for part in done for ladder in part.ladders)
            progress(read, sum(part.matches for part in done))

    streams = _streams(partitions, selection)
    for stream in streams:
        sizes[stream[0].ladder] = _size(stream)
    groups = _groups(streams, TASKS * cluster.workers)
    largest_first = sorted(range(len(groups)), key=lambda index: -_size(groups[index]))
    jobs = [
        NamedTask(_named(groups[index]), (groups[index], by, out, journal, selection, standings))
        for index in largest_first
    ]
    places = [place for place in (out, journal) if place]
    try:
        for place in places:
            Results(place).remove(MANIFEST)
        parts = dict(zip(largest_first, run_jobs(cluster, rate_group, jobs, count), strict=True))
        rated = RatedLadders.joined([parts[index] for index in range(len(groups))])
        for place in places:
            if not is_url(place):
                remove_drafts(Path(place))  # left by lost workers
        write_manifests(rated, by, out, journal)
    except BaseException:
        _remove(out, [entry for part in done for entry in part.ratings])
        _remove(journal, [entry for part in done for entry in part.journal])
        raise
    return rated


def rate_group(
    partitions: Sequence[Partition],
    by: Rules,
    out: str | None,
    journal: str | None,
    selection: Selection,
    standings: StandingsOptions | None,
) -> RatedLadders:
    """Rate one ladder or a few and write their files, each completely or not at all, so the task can be repeated."""
    return rate_partitions(
        partitions, by, out=out, journal=journal, selection=selection, standings=standings, manifest=False
    )


def _remove(place: str | None, files: list[dict[str, object]]) -> None:
    if place:
        results = Results(place)
        results.written = files
        results.remove_written()


def _streams(partitions: Sequence[Partition], selection: Selection) -> list[list[Partition]]:
    """Group the partitions that can be rated separately; one group if ladders are selected or pooled."""
    if selection.pool or selection.ladder is not None:
        return [list(partitions)]
    return [list(stream) for stream in streams_of(partitions)]


def _groups(streams: Sequence[Sequence[Partition]], most: int) -> list[list[Partition]]:
    """Group streams into tasks, in order: about `most` groups of equal size, unless single streams are larger."""
    share = sum(map(_size, streams)) / most
    groups: list[list[Partition]] = []
    size = math.inf
    for stream in streams:
        if size + _size(stream) > share:
            groups.append([])
            size = 0
        groups[-1] += stream
        size += _size(stream)
    return groups


def _size(partitions: Sequence[Partition]) -> int:
    return sum(partition.size for partition in partitions)


def _named(group: Sequence[Partition]) -> str:
    first, last = group[0].ladder, group[-1].ladder
    if not first:
        return f"{group[0].address} and the files beside it"
    return f"ladder {first!r}" if first == last else f"ladders {first!r} to {last!r}"
