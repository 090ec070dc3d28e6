"""Rate histories larger than memory: partitioned Parquet streams through the loop, ladder by ladder."""

from evenmatch.partitioned.rating import RatedLadders, StandingsOptions, rate_partitions, write_manifests
from evenmatch.partitioned.results import Results
from evenmatch.partitioned.summary import RatedLadder

__all__ = ["RatedLadder", "RatedLadders", "Results", "StandingsOptions", "rate_partitions", "write_manifests"]
