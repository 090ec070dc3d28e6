"""What a number known about newcomers is worth to `even` on the recorded matches.

Rates each ladder of the Parquet files in ../shared/data by itself, and prints a table in Markdown: the log loss
without a number, with each newcomer's rating on the game's other ladders, and with a random number.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import evenmatch
from evenmatch.history import NO_ENTRIES, Floats, History, entries
from evenmatch.lab.backtests.evaluation import LOG_LOSS, MATCHES, replay_and_judge
from evenmatch.rating import rate, rules
from evenmatch.tables import MatchTable

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FEWEST = 300  # matches of a ladder
KNOWN = 0.3  # share of the appearances whose player has played on another ladder before


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of Parquet files")
    given = parser.parse_args()
    print("| ladder | matches | known | log loss | rating elsewhere | second half | random number, second half |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for file in sorted(given.data.glob("*.parquet")):
        matches = evenmatch.read(file)
        for number, ladder in enumerate(matches.ladders if len(matches.ladders) > 1 else ()):
            own = matches.ladder == number
            target, others = matches.take(own).pooled(), matches.take(~own).pooled()
            numbers = elsewhere(target, others)
            known = float(np.mean(~np.isnan(numbers)))
            if len(target) < FEWEST or known < KNOWN:
                continue
            random = np.random.default_rng(1).normal(size=target.history.players)[target.history.columns.player]
            without, second = losses(target.history, None)
            rated, second_rated = losses(target.history, numbers)
            useless = losses(target.history, random)[1]
            cells = f"{without:.4f} | {rated - without:+.4f} | {second_rated - second:+.4f} | {useless - second:+.4f}"
            print(f"| {file.stem} {ladder} | {len(target):,} | {known:.0%} | {cells} |", flush=True)


def elsewhere(target: MatchTable, others: MatchTable) -> Floats:
    """By slot of the target: the player's rating in the other matches before the first match here, NaN without any."""
    slots, time = target.history.columns.player, target.history.columns.time[target.history.slot_match]
    names = np.array(target.player_names)
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, slots, time)
    begins = dict(zip(names.tolist(), first.tolist(), strict=True))
    journal = rate(others, "even", journal=True).journal
    assert journal is not None
    c, listed = others.history.columns, others.player_names
    rating: dict[str, float] = {}
    for player, moment, after in zip(
        c.player.tolist(), c.time[others.history.slot_match].tolist(), journal.after.tolist(), strict=True
    ):
        if moment < begins.get(listed[player], 0):
            rating[listed[player]] = after
    return np.array([rating.get(name, np.nan) for name in names.tolist()])[slots]


def losses(history: History, numbers: Floats | None) -> tuple[float, float]:
    """The log loss over all matches and over the second half of them."""
    empty = np.empty(0, np.int32)
    entry = NO_ENTRIES if numbers is None else entries(numbers)
    alone = History(history.columns._replace(context=empty, offset=empty, entry=entry))
    half = (np.arange(len(history)) >= len(history) // 2).astype(np.int32)
    sums = replay_and_judge(rules("even"), alone, half, 2)[0]
    return float(sums[:, LOG_LOSS].sum() / sums[:, MATCHES].sum()), float(sums[1, LOG_LOSS] / sums[1, MATCHES])


if __name__ == "__main__":
    main()
