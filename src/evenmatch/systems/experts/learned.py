"""Describe what `even` has learned about a ladder, in points, for the game's designers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenmatch.history import Floats
from evenmatch.systems.experts.margins import HALF
from evenmatch.systems.experts.records import CONTEXTS, Even
from evenmatch.systems.ladder_records import Learned, Records

MORE = math.log(5 / 4)  # five players against four
LESS = math.log(5 / 4.5)  # five players against five, one of them gone after half of the match
WIDTH = 1.96  # deviations from the middle of an interval of 95 % to its ends


def learned(records: Records, params: Even, names: Sequence[str]) -> tuple[Learned, ...]:
    """The numbers from the record of a pool and of its ladders, weighted by their matches.

    names  of the experts
    """
    own, shared = records[1:], records[0]
    played = own["matches"]
    parts = played / played.sum() if played.any() else np.full(len(own), 1.0 / len(own))
    if not params.pooled:
        shared = own[int(played.argmax())]
    weights = shared["weight"][: params.experts]
    share = weights / weights.sum()
    points = shared["calibration"] * weights * np.array(params.points[: params.experts])

    def in_points(name: str, factor: float = 1.0) -> tuple[float, float, float]:
        """The experts' numbers in rating points, with an interval that assumes that they err together."""
        value, variance = shared[name][: params.experts], shared[f"{name}_variance"][: params.experts]
        if name == "side":
            value = value + parts @ own["own_side"][:, : params.experts]
            variance = variance + parts**2 @ own["own_side_variance"][:, : params.experts]
        middle = factor * float(points @ value)
        width = WIDTH * abs(factor) * float(points @ np.sqrt(variance))
        return middle, middle - width, middle + width

    none = math.nan
    trust = np.minimum(own["margin_trust"], 1.0)
    counted = float(parts @ (trust * own["margin_worth"] * own["margins"] / (own["margins"] + HALF)))
    by_margin = counted * float(share @ np.array(params.margin[: params.experts]))
    return (
        Learned("side", "advantage of the team that is listed first", "points", *in_points("side")),
        Learned("player", "one extra player, five against four", "points", *in_points("body", MORE)),
        Learned("leavers", "one of five players leaves at half-time", "points", *in_points("leavers", -LESS)),
        Learned("newcomers", "where newcomers start, relative to the mean", "points", *in_points("entry")),
        Learned("entry", "newcomers whose number is one deviation above the mean", "points", *in_points("entry_slope")),
        Learned("experience", "twice as many matches played, in the odds only", "points", *in_points("experience")),
        Learned("margin", "share of the learning that comes from margins", "share", by_margin, none, none),
        *(
            Learned(name, f"weight of the {name} expert in the odds", "share", float(part), none, none)
            for name, part in zip(names, share, strict=True)
        ),
    )


def offset_points(records: Records, column: int, offsets: Records, params: Even) -> Floats:
    """How many rating points players' offsets under values of a context column are worth; float64 (N, 2).

    records  of the pool and of the ladder
    The second number is half the width of an interval of 95 %, which assumes that the experts err together.
    """
    shared, count = records[0 if params.pooled else 1], params.experts
    gain = shared["gain"].reshape(-1, CONTEXTS)[:count, column]
    points = shared["calibration"] * shared["weight"][:count] * np.array(params.points[:count]) * gain
    known = offsets["by_expert"][:, :count]
    return np.column_stack((known["mean"] @ points, WIDTH * np.sqrt(known["variance"]) @ points))
