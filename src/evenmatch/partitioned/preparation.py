"""Compile the kernels of this part before the first piece is read, with a notice."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from evenmatch.compile_notice import compile_notice, is_cached
from evenmatch.partitioned.chunk import ChunkBuilder
from evenmatch.partitioned.match_ids import MatchIds
from evenmatch.partitioned.rows import MatchRows
from evenmatch.partitioned.shape import has_player_twice
from evenmatch.tables.partitions import Partition


def prepare() -> None:
    """Compile what is not cached on disk yet, by reading one small match; does nothing otherwise."""
    if is_cached(has_player_twice):
        return
    columns = {"match_id": ["m", "m"], "team": ["a", "b"], "player": ["a", "b"], "place": [1, 2]}
    rows = pa.table(columns).append_column("played_at", pa.array([0, 0], pa.timestamp("us", "UTC")))
    with compile_notice("the reading of partitions"), TemporaryDirectory(prefix="evenmatch-") as folder:
        builder = ChunkBuilder(Path(folder, "players"))
        chunk = builder.build(MatchRows(rows, Partition("a match", "", 1), 0, 1.0))
        ids = MatchIds(Path(folder, "ids"), builder.names)
        ids.add(chunk.match_id)
        ids.repeated()
        builder.names.close()
