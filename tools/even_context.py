"""What context columns are worth to `even` on the recorded matches.

Makes columns from the names of matches and ladders of the Parquet files in ../shared/data, and prints a table in
Markdown: the log loss of the second half with the columns, without, and with a ladder for each value.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import evenmatch
from evenmatch.errors import EvenmatchWarning

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
# By game and column: its value, from the match's id and ladder.
COLUMNS: Mapping[str, Mapping[str, Callable[[str, str], str]]] = {
    "afl": {"stage": lambda _, ladder: ladder, "venue": lambda match, _: match.split("-")[2]},
    "cod_cwl": {"mode": lambda _, ladder: ladder.split("/")[1], "game": lambda _, ladder: ladder.split("/")[0]},
    "f1": {"circuit": lambda match, _: match.split("-", 2)[2]},
    "halo2_largeteam": {"mode": lambda _, ladder: ladder},
    "halo2_smallteam": {"mode": lambda _, ladder: ladder},
    "intl_football": {
        "ground": lambda _, ladder: ladder.split("-")[1],
        "stakes": lambda _, ladder: ladder.split("-")[0],
    },
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of Parquet files")
    given = parser.parse_args()
    warnings.simplefilter("ignore", EvenmatchWarning)
    print("| game | matches | log loss | more than with all columns |\n| --- | --- | ---: | ---: |")
    for game, columns in COLUMNS.items():
        rows = pq.read_table(given.data / f"{game}.parquet")
        named = list(zip(rows["match_id"].to_pylist(), rows["ladder"].to_pylist(), strict=True))
        for name, value in columns.items():
            rows = rows.append_column(name, pa.array([value(str(match), ladder) for match, ladder in named]))
        matches = evenmatch.from_frame(rows.drop_columns(["ladder"]), context=list(columns))
        for row in evenmatch.backtest(matches, "even").context.to_pylist():
            more = "–" if row["difference"] == 0 else "{difference:+.4f} ({low:+.4f} to {high:+.4f})".format(**row)
            print(f"| {game} | {row['matches']} | {row['log_loss']:.4f} | {more} |", flush=True)


if __name__ == "__main__":
    main()
