"""Rate histories larger than memory: partitioned Parquet streams through the loop, ladder by ladder."""

from evenmatch.partitioned.rating import (
    RatedLadder,
    RatedLadders,
    Results,
    StandingsOptions,
    rate_partitions,
    write_manifests,
)

__all__ = ["RatedLadder", "RatedLadders", "Results", "StandingsOptions", "rate_partitions", "write_manifests"]
