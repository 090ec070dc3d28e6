"""Histories written as partitions in drawn shapes: files, row groups, types of columns."""

from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq


def write_partitions(table, folder, files=1, row_group=1000, *, by_ladder=False, dictionaries=False):
    """A MatchTable as Parquet partitions of whole matches; by ladder in folders, or with a column `ladder`."""
    if by_ladder:
        for ladder in table.ladders:
            own = table.on_ladder(ladder)
            write_files(
                own.to_arrow().drop_columns(["ladder"]),
                own,
                folder / f"ladder={ladder}",
                files,
                row_group,
                dictionaries=dictionaries,
            )
    else:
        write_files(table.to_arrow(), table, folder, files, row_group, dictionaries=dictionaries)
    return folder


def write_files(rows, table, folder, files, row_group, *, dictionaries):
    folder.mkdir(parents=True)
    starts = table.history.match_slots
    cuts = [int(starts[len(table) * number // files]) for number in range(files + 1)]
    if dictionaries:
        for name in ("team", "player", "ladder"):
            if name in rows.column_names:
                index = rows.column_names.index(name)
                rows = rows.set_column(index, name, rows[name].cast(pa.string()).dictionary_encode())
    for number, (low, high) in enumerate(pairwise(cuts)):
        if high > low:
            pq.write_table(rows.slice(low, high - low), folder / f"{number}.parquet", row_group_size=row_group)


def read_rows(folder, name="**/*.parquet"):
    """All rows of the Parquet files below a folder, files in order of their paths with numbers by value."""
    paths = sorted(folder.glob(name), key=lambda path: [part.zfill(9) for part in path.parts])
    return pa.concat_tables([pq.ParquetFile(path).read() for path in paths])
