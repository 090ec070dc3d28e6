"""Backtest partitioned Parquet on a cluster: each task reads the matches and judges one variant, or a few."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.cluster.connection import Cluster
from evenmatch.cluster.tasks import NamedTask, run_jobs
from evenmatch.lab.backtests.backtest import SEED, Backtest, By, Progress
from evenmatch.lab.backtests.scoring import Variant
from evenmatch.lab.backtests.streamed import Reading, StreamedScores, plan_backtest, score
from evenmatch.partitioned.stream import Selection
from evenmatch.tables.partitions import Partition

TASKS = 4  # about the most tasks per worker, because each task reads all files


def backtest_on_cluster(
    cluster: Cluster,
    partitions: Sequence[Partition],
    by: By = None,
    *,
    name: str,
    warm_up: float = 0.5,
    selection: Selection | None = None,
    progress: Progress | None = None,
    seed: int = SEED,
) -> Backtest:
    """Score systems on partitions as `backtest_partitions` does, with the same results bit for bit, on a cluster.

    cluster  connected for the systems
    Addresses must lead to the same files on all nodes. The matches are counted here, then judged by the workers. Raises
    as `backtest_partitions` and `run_jobs`, and InputError if a worker reads other matches.
    """
    report = progress or (lambda _what, _share: None)
    plan = plan_backtest(partitions, by, name=name, warm_up=warm_up, selection=selection, progress=report)
    groups = plan.groups(TASKS * cluster.workers)
    report(f"judging {len(plan.variants)} variants", 0.0)

    def count(done: int, _: StreamedScores) -> None:
        report(f"judging {len(plan.variants)} variants", done / len(groups))

    jobs = [NamedTask(_named(group), (plan.reading, group)) for group in groups]
    return plan.conclude(run_jobs(cluster, score_group, jobs, count), seed=seed)


def score_group(reading: Reading, variants: Sequence[Variant]) -> StreamedScores:
    """Judge some variants on one processor."""
    return score(reading, variants, workers=1)


def _named(group: Sequence[Variant]) -> str:
    first, last = (f"{variant.system} {variant.variant}" for variant in (group[0], group[-1]))
    return first if len(group) == 1 else f"{first} to {last}"
