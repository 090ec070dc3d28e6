"""Players still waiting at the end of a run: how long, and what they have in common."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.run_result import MATCHED, WAITING, Run

ENDS = 5.0  # percentiles at each end of the ranks


def home_regions(run: Run) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Index of the region with each ticket's best ping; -1 for tickets that play anywhere."""
    ping = run.tickets.ping
    if not ping.shape[1]:
        return np.full(len(ping), -1)
    home = np.argmin(np.where(np.isnan(ping), np.inf, ping), axis=1)
    return np.where(np.isnan(ping).all(axis=1), -1, home)


def waits_so_far(run: Run) -> Floats:
    """Waits of matched and of waiting players, the latter so far; its quantiles are lower bounds."""
    known = (run.fate == MATCHED) | (run.fate == WAITING)
    return np.repeat(run.waits[known], run.sizes[known])


def left_waiting(run: Run) -> dict[str, object]:
    """Players who have waited longer at the end than 95 of 100 of the matched players.

    players  their number
    after    that wait in seconds; None if no player was matched: then all waiting players count
    common   properties more frequent among them than among all players, as [property, share of them, share of
             all], the largest difference first
    """
    matched, sizes = run.matched, run.sizes
    after = float(np.percentile(np.repeat(run.waits[matched], sizes[matched]), 95)) if matched.any() else None
    left = run.fate == WAITING
    if after is not None:
        left &= run.waits > after
    members = np.repeat(left, sizes)
    rows: list[list[object]] = []
    if members.any():
        kinds = [(name, float(flags[members].mean()), float(flags.mean())) for name, flags in _kinds(run).items()]
        kinds.sort(key=lambda kind: kind[2] - kind[1])
        rows = [list(kind) for kind in kinds if kind[1] > kind[2]]
    return {"players": int(members.sum()), "after": after, "common": rows}


def _kinds(run: Run) -> dict[str, Flags]:
    """Flags of the members that have a property, by its description."""
    tickets, sizes = run.tickets, run.sizes
    kinds = {
        f"among the lowest or highest {ENDS:g} percentiles": np.abs(tickets.percentile - 50.0) > 50.0 - ENDS,
        "strict, or in a party with a strict player": np.repeat(
            np.logical_or.reduceat(~tickets.loose, tickets.start[:-1]), sizes
        ),
    }
    for size in np.unique(sizes).tolist():
        kinds["alone" if size == 1 else f"in parties of {size}"] = np.repeat(sizes == size, sizes)
    home = np.repeat(home_regions(run), sizes)
    return kinds | {f"from {name}": home == index for index, name in enumerate(tickets.region_names)}
