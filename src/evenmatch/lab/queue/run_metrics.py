"""Summary of a run: waits, evenness, broken rules, speed, and who is still waiting at the end."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.runs import CANCELLED, EXPIRED, MATCHED, OVERTAKEN, WAITING, Run

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


FIRST = (
    *("name", "matches", "unmatched", "wait_p50", "wait_p95", "wait_max", "spread_p50", "spread_p95"),
    *("share_45_55", "violations", "players_per_cpu_second"),
)
EVEN = (0.45, 0.55)
HAIR = 1e-9  # tolerance for rounding
CLASSES = (0.5, 0.525, 0.55, 0.575, 0.6, 0.65, 0.7, 0.8, 0.9, 1.0)  # bounds of the classes of a favourite's odds


def summary_of(run: Run) -> dict[str, object]:
    """Summarize a run as plain numbers, those of `FIRST` first; None where there is no data.

    Waits are in seconds over matched players; spreads are in percentiles over matches.
    unmatched, longest_unmatched         players waiting at the end, and the longest of their waits
    share_45_55, realised_45_55          share of even matches by predicted odds, and by odds of true skill
    favourites_expected, favourites_won  predicted and actual share of matches won by the predicted favourite
    violations                           players for whom a rule was broken; those of violations_… may overlap
    law                                  arrivals per second × mean wait × mean spread / 100
    wait_so_far_…                        waits including players waiting at the end, so a lower bound
    left_waiting                         waiting players with unusually long waits, see `left_waiting`
    """
    matched, worth, broken = run.matched, run.worth, run.broken
    waits = np.repeat(run.waits[matched], run.sizes[matched])
    players, spread, odds = run.players(MATCHED), worth.spread, worth.odds
    waiting = run.waits[run.fate == WAITING]
    figures: dict[str, object] = {
        "name": run.name,
        "matches": len(run.matches),
        "unmatched": run.players(WAITING),
        **quantiles("wait", waits, (50, 95)),
        "wait_max": number(waits.max()) if len(waits) else None,
        **quantiles("spread", spread, (50, 95)),
        "share_45_55": share(even(odds)),
        "violations": broken.players,
        "players_per_cpu_second": players / run.cpu_seconds if players and run.cpu_seconds > 0 else None,
        **quantiles("wait", waits, (99,)),
        "wait_mean": mean(waits),
        **quantiles("wait_so_far", waits_so_far(run), (50, 95)),
        "longest_unmatched": number(waiting.max()) if len(waiting) else None,
        "arrived": int(run.sizes.sum()),
        "matched": players,
        "cancelled": run.players(CANCELLED),
        "expired": run.players(EXPIRED),
        "overtaken": run.players(OVERTAKEN),
        "passed_over": run.passed_over,
        "realised_45_55": share(even(worth.true_odds[~np.isnan(worth.true_odds)])),
        **_favourites(odds, worth.first_won),
        **quantiles("rating_spread", worth.rating_spread, (50, 95)),
        "violations_window": broken.count(broken.window),
        "violations_region": broken.count(broken.region),
        "violations_avoid": broken.count(broken.avoid),
        "violations_attributes": broken.count(broken.attributes),
        "violations_size": broken.count(broken.size),
        "violations_roles": broken.count(broken.roles),
        "over_caps": _over_caps(run),
        "queue_mean": mean(run.waiting.astype(np.float64)),
        "cpu_seconds": float(run.cpu_seconds),
    }
    figures["law"] = _law(run, waits)
    groups = {"by_decile": by_decile(run), "by_party_size": by_party_size(run), "by_region": by_region(run)}
    return figures | groups | {"calibration": calibration(run), "left_waiting": left_waiting(run)}


def by_decile(run: Run) -> list[dict[str, object]]:
    """Waits of the players in each tenth of the percentiles, lowest first."""
    decile = np.minimum(run.tickets.percentile // 10.0, 9.0).astype(np.int64)
    return [{"decile": index + 1, **_waits(run, decile == index)} for index in range(10)]


def by_party_size(run: Run) -> list[dict[str, object]]:
    """Waits of the players by size of their party."""
    size = np.repeat(run.sizes, run.sizes)
    return [{"size": int(party_size), **_waits(run, size == party_size)} for party_size in np.unique(size)]


def by_region(run: Run) -> list[dict[str, object]]:
    """Waits of the players by the region of their party's best ping; empty without regions."""
    home = np.repeat(home_regions(run), run.sizes)
    return [{"region": name, **_waits(run, home == index)} for index, name in enumerate(run.tickets.region_names)]


def calibration(run: Run) -> list[dict[str, object]]:
    """Matches, expected and actual wins of the favourite, by class of the predicted favourite's odds."""
    odds, won = _favourite(run.worth.odds, run.worth.first_won)
    known = ~np.isnan(won)
    odds, won = odds[known], won[known]
    group = np.searchsorted(CLASSES, odds, side="right") - 1
    rows: list[dict[str, object]] = []
    for index, (low, high) in enumerate(pairwise(CLASSES)):
        in_class = np.minimum(group, len(CLASSES) - 2) == index
        rows.append(
            {
                "low": low,
                "high": high,
                "matches": int(in_class.sum()),
                "expected": mean(odds[in_class]),
                "won": mean(won[in_class]),
            }
        )
    return rows


def even(odds: Floats) -> Flags:
    """Whether odds lie within 45 to 55 %, bounds included."""
    return np.asarray((odds >= EVEN[0] - HAIR) & (odds <= EVEN[1] + HAIR))


def quantiles(name: str, values: Floats, percents: tuple[int, ...]) -> dict[str, float | None]:
    """Quantiles under the names `{name}_p{percent}`, interpolated linearly."""
    if not len(values):
        return {f"{name}_p{percent}": None for percent in percents}
    quantile_values = np.percentile(values, percents).tolist()
    return {f"{name}_p{percent}": value for percent, value in zip(percents, quantile_values, strict=True)}


def mean(values: Floats) -> float | None:
    """Mean of the values; None if there are none."""
    return float(values.mean()) if len(values) else None


def share(flags: Flags) -> float | None:
    """Share of true flags; None if there are none."""
    return float(flags.mean()) if len(flags) else None


def number(value: np.float64) -> float:
    """Convert to a Python float."""
    return float(value)


def _waits(run: Run, members: Flags) -> dict[str, object]:
    matched = np.repeat(run.matched, run.sizes) & members
    still = np.repeat(run.fate == WAITING, run.sizes) & members
    waits = np.repeat(run.waits, run.sizes)[matched]
    return {
        "players": int(members.sum()),
        "matched": int(matched.sum()),
        "unmatched": int(still.sum()),
        **quantiles("wait", waits, (50, 95)),
        "wait_max": number(waits.max()) if len(waits) else None,
    }


def _favourite(odds: Floats, first_won: Floats) -> tuple[Floats, Floats]:
    """Odds of predicted favourites and whether they won; matches with odds of exactly 0.5 are left out."""
    uneven = odds != 0.5
    odds, first_won = odds[uneven], first_won[uneven]
    return np.maximum(odds, 1.0 - odds), np.where(odds > 0.5, first_won, 1.0 - first_won)


def _favourites(odds: Floats, first_won: Floats) -> dict[str, float | None]:
    expected, won = _favourite(odds, first_won)
    known = ~np.isnan(won)
    return {"favourites_expected": mean(expected[known]), "favourites_won": mean(won[known])}


def _over_caps(run: Run) -> int:
    """Number of matches whose odds or rating spread exceed the policy's caps."""
    odds, over = run.worth.odds, np.zeros(len(run.matches), np.bool_)
    if run.policy.max_odds is not None:
        over |= np.maximum(odds, 1.0 - odds) > run.policy.max_odds + HAIR
    if run.policy.max_rating_spread is not None:
        over |= run.worth.rating_spread > run.policy.max_rating_spread + HAIR
    return int(over.sum())


def _law(run: Run, waits: Floats) -> float | None:
    if not len(waits) or len(run.ticks) < 2:
        return None
    ticks = len(run.ticks)
    # A difference, since the times of a journal do not start at 0.
    seconds = float(run.ticks[-1] - run.ticks[0]) / 1e6 * ticks / (ticks - 1)
    return float(run.sizes.sum() / seconds * waits.mean() * run.worth.spread.mean() / 100.0)
