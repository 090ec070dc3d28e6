"""The figures of a run: waits, evenness, filters kept, speed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue_run import CANCELLED, EXPIRED, MATCHED, OVERTAKEN, WAITING, Run
from evenmatch.lab.queue_waiting import home_regions, left_waiting, waits_so_far

FIRST = (
    *("name", "matches", "unmatched", "wait_p50", "wait_p95", "wait_max", "spread_p50", "spread_p95"),
    *("share_45_55", "violations", "players_per_cpu_second"),
)
EVEN = (0.45, 0.55)
HAIR = 1e-9  # two ways to sum the same ratings may differ by a last digit
CLASSES = (0.5, 0.525, 0.55, 0.575, 0.6, 0.65, 0.7, 0.8, 0.9, 1.0)  # of a favourite's odds


def summary(run: Run) -> dict[str, object]:
    """The figures of a run as plain numbers, those of `FIRST` first; None where there is nothing to measure.

    Waits are in seconds and of players who found a match, each player counted; `unmatched` are the players who wait at
    the end and `longest_unmatched` how long the longest of them has waited. Spreads are in percentiles, of matches.
    `share_45_55` is of matches by predicted odds, `realised_45_55` by those of true skill; `favourites_expected` and
    `favourites_won` are how often the predicted favourite should have won and did. `violations` are players for whom a
    rule was broken; those of `violations_…` may overlap. `law` is arrivals a second × mean wait × mean spread / 100.
    `wait_so_far_…` counts those who wait at the end too, with what they have waited, and so is never too long; who of
    them is stuck, `left_waiting` tells.
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
    return [{"decile": at + 1, **_waits(run, decile == at)} for at in range(10)]


def by_party_size(run: Run) -> list[dict[str, object]]:
    """Waits of the players in parties of each size that came."""
    size = np.repeat(run.sizes, run.sizes)
    return [{"size": int(one), **_waits(run, size == one)} for one in np.unique(size)]


def by_region(run: Run) -> list[dict[str, object]]:
    """Waits of the players whose party has its best ping in each region; nothing where there are no regions."""
    home = np.repeat(home_regions(run), run.sizes)
    return [{"region": name, **_waits(run, home == at)} for at, name in enumerate(run.tickets.region_names)]


def calibration(run: Run) -> list[dict[str, object]]:
    """Matches by the predicted favourite's odds: how many, how often the favourite should have won, and did."""
    odds, won = _favourite(run.worth.odds, run.worth.first_won)
    known = ~np.isnan(won)
    odds, won = odds[known], won[known]
    group = np.searchsorted(CLASSES, odds, side="right") - 1
    rows: list[dict[str, object]] = []
    for at, (low, high) in enumerate(pairwise(CLASSES)):
        here = np.minimum(group, len(CLASSES) - 2) == at
        rows.append(
            {"low": low, "high": high, "matches": int(here.sum()), "expected": mean(odds[here]), "won": mean(won[here])}
        )
    return rows


def even(odds: Floats) -> Flags:
    """Whether odds lie within 45 to 55 %, bounds included."""
    return np.asarray((odds >= EVEN[0] - HAIR) & (odds <= EVEN[1] + HAIR))


def quantiles(name: str, values: Floats, percents: tuple[int, ...]) -> dict[str, float | None]:
    """Quantiles under the names `{name}_p{percent}`, interpolated linearly."""
    if not len(values):
        return {f"{name}_p{percent}": None for percent in percents}
    found = np.percentile(values, percents).tolist()
    return {f"{name}_p{percent}": value for percent, value in zip(percents, found, strict=True)}


def mean(values: Floats) -> float | None:
    """The mean; None of nothing."""
    return float(values.mean()) if len(values) else None


def share(flags: Flags) -> float | None:
    """The share that is true; None of nothing."""
    return float(flags.mean()) if len(flags) else None


def number(value: np.float64) -> float:
    """A plain number."""
    return float(value)


def _waits(run: Run, members: Flags) -> dict[str, object]:
    found = np.repeat(run.matched, run.sizes) & members
    still = np.repeat(run.fate == WAITING, run.sizes) & members
    waits = np.repeat(run.waits, run.sizes)[found]
    return {
        "players": int(members.sum()),
        "matched": int(found.sum()),
        "unmatched": int(still.sum()),
        **quantiles("wait", waits, (50, 95)),
        "wait_max": number(waits.max()) if len(waits) else None,
    }


def _favourite(odds: Floats, first_won: Floats) -> tuple[Floats, Floats]:
    """Odds of the predicted favourites, and whether they won; matches without a favourite are left out."""
    uneven = odds != 0.5
    odds, first_won = odds[uneven], first_won[uneven]
    return np.maximum(odds, 1.0 - odds), np.where(odds > 0.5, first_won, 1.0 - first_won)


def _favourites(odds: Floats, first_won: Floats) -> dict[str, float | None]:
    expected, won = _favourite(odds, first_won)
    known = ~np.isnan(won)
    return {"favourites_expected": mean(expected[known]), "favourites_won": mean(won[known])}


def _over_caps(run: Run) -> int:
    """Matches with odds or a rating spread beyond what the policy lets be."""
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
    seconds = float(run.ticks[-1] - run.ticks[0]) / 1e6 * ticks / (ticks - 1)  # a journal's times are of its day
    return float(run.sizes.sum() / seconds * waits.mean() * run.worth.spread.mean() / 100.0)
