"""Those who are left waiting at the end of a run: how long, and what they have in common."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue_run import MATCHED, WAITING, Run

ENDS = 5.0  # percentiles that count as an end of the ranks


def home_regions(run: Run) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The region of each ticket's best ping, as its place among the names; -1 of tickets that play anywhere."""
    ping = run.tickets.ping
    if not ping.shape[1]:
        return np.full(len(ping), -1)
    home = np.argmin(np.where(np.isnan(ping), np.inf, ping), axis=1)
    return np.where(np.isnan(ping).all(axis=1), -1, home)


def waits_so_far(run: Run) -> Floats:
    """The waits of players who found a match or still wait, these so far: quantiles of it are never too long."""
    known = (run.fate == MATCHED) | (run.fate == WAITING)
    return np.repeat(run.waits[known], run.sizes[known])


def left_waiting(run: Run) -> dict[str, object]:
    """Players who at the end have waited longer than 95 of 100 of those who found a match.

    players  how many; `after` is that wait in seconds, None where nobody found a match: then all who wait count
    common   what more of them are than of all who came, as [what, share of them, share of all], the largest
             difference first
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
    """Whether each member is of a kind, by what the kind is called."""
    tickets, sizes = run.tickets, run.sizes
    kinds = {
        f"among the lowest or highest {ENDS:g} percentiles": np.abs(tickets.percentile - 50.0) > 50.0 - ENDS,
        "strict, or in a party with somebody strict": np.repeat(
            np.logical_or.reduceat(~tickets.loose, tickets.start[:-1]), sizes
        ),
    }
    for size in np.unique(sizes).tolist():
        kinds["alone" if size == 1 else f"in parties of {size}"] = np.repeat(sizes == size, sizes)
    home = np.repeat(home_regions(run), sizes)
    return kinds | {f"from {name}": home == at for at, name in enumerate(tickets.region_names)}
