"""Findings of the lab as plain values, ready for JSON, and the figures that can be drawn of them later."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc

from evenmatch.lab import charts, what_if_told
from evenmatch.lab.backtest import Backtest
from evenmatch.lab.charts import COLORS, new_figure
from evenmatch.lab.findings import RELIABILITY, SEGMENTS
from evenmatch.lab.metrics import Measure
from evenmatch.lab.what_if import WhatIf
from evenmatch.systems.parameter import shown, specs
from evenmatch.systems.system import Rules

Kept = Mapping[str, Any]
MOVERS, BEST, RANKS = 40, 25, 600  # players of a what-if that are kept
SCORED = (
    *("system", "variant", "matches", "log_loss", "log_loss_low", "log_loss_high", "brier", "accuracy"),
    *("calibration_slope", "seconds"),
)
PERIOD = ("system", "variant", "by", "group", "matches", "log_loss", "log_loss_low", "log_loss_high")


def keep_backtest(found: Backtest) -> dict[str, object]:
    """The verdict, a row per variant, and of those that stand for their system the curve and the periods."""
    chosen = {(one.system, one.variant) for one in found.chosen}

    def of_chosen(table: pa.Table) -> list[dict[str, object]]:
        return [row for row in table.to_pylist() if (row["system"], row["variant"]) in chosen]

    segments = found.segments.filter(pc.equal(found.segments["by"], "period")).select(list(PERIOD))
    apart = {(row["system"], row["variant"]): row for row in found.against_best.to_pylist()}
    scores = [
        row | {name: apart[row["system"], row["variant"]][name] for name in ("difference", "low", "high")}
        for row in found.scores.select(list(SCORED)).to_pylist()
    ]
    return plain(
        {
            "verdict": found.verdict,
            "scores": scores,
            "chosen": [[one.system, one.variant] for one in found.chosen],
            "reliability": of_chosen(found.reliability),
            "periods": of_chosen(segments),
            "left_out": [list(one) for one in found.left_out],
            "notes": list(found.notes),
            "matches": len(found.matches),
            "judged": len(found.matches) - found.warm_up,
        }
    )


def backtest_figures(kept: Kept) -> dict[str, go.Figure]:
    """The reliability curves, and the log loss of each period."""
    chosen = [(system, variant) for system, variant in kept["chosen"]]
    return {
        "reliability": charts.reliability(pa.Table.from_pylist(kept["reliability"], schema=RELIABILITY), chosen),
        "periods": charts.over_time(pa.Table.from_pylist(kept["periods"], schema=SEGMENTS), chosen),
    }


def keep_tuning(found: Backtest, present: Rules) -> dict[str, object]:
    """What tuning changed of the present rules, and what that is worth on matches which it did not see.

    found  a backtest of the present rules, of one system, with tuning
    """
    system = present.system.name
    rows = {row["variant"]: row for row in found.scores.select(list(SCORED)).to_pylist()}
    apart = {row["variant"]: row for row in found.against_best.to_pylist()}
    tuned = next(one.rules for one in found.variants if one.variant == "tuned")
    before, after = rows["given"], rows["tuned"]
    less = apart["given"]  # the present less the tuned ones, which stand for the system
    difference = Measure(-less["difference"], -less["high"], -less["low"])
    told = what_if_told.compared(
        "The tuned parameters", before["log_loss"], after["log_loss"], difference, after["matches"]
    )
    old, new, declared = present.values(), tuned.values(), specs(present.system.parameters)
    best: list[list[float]] = []
    for trial in found.trials.sort_by("trial").to_pylist():
        if trial["log_loss"] is not None and (not best or trial["log_loss"] < best[-1][1]):
            best.append([trial["trial"], trial["log_loss"]])
    return plain(
        {
            "system": system,
            "findings": [told, *found.notes],
            "before": before,
            "after": after,
            "default": rows["default"],
            "changed": [
                {
                    "name": name,
                    "before": shown(old[name]),
                    "after": shown(value),
                    "meaning": declared[name][0].meaning,
                }
                for name, value in new.items()
                if value != old[name]
            ],
            "parameters": {name: shown(value) for name, value in new.items()},
            "trials": len(found.trials),
            "best": best,
            "matches": len(found.matches),
            "judged": after["matches"],
        }
    )


def tuning_figures(kept: Kept) -> dict[str, go.Figure]:
    """The best log loss that tuning had found after so many trials, on the matches that it saw."""
    figure = new_figure(height=260)
    best = [*kept["best"], [max(kept["trials"] - 1, 0), kept["best"][-1][1]]] if kept["best"] else []
    figure.add_scatter(
        x=[trial + 1 for trial, _ in best],
        y=[loss for _, loss in best],
        mode="lines+markers",
        line={"color": COLORS[0], "width": 2, "shape": "hv"},
        hovertemplate="%{y:.4f} after %{x:,} trials<extra></extra>",
    )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(title_text="trials", rangemode="tozero")
    figure.update_yaxes(title_text="best log loss", tickformat=".4f")
    return {"best": figure}


def keep_what_if(found: WhatIf) -> dict[str, object]:
    """Both rules, what is found in words, the players who move farthest and the best, and points for the picture."""
    now, then = found.now.rules, found.then.rules
    declared = then.values()
    return plain(
        {
            "now": rules_kept(now),
            "then": rules_kept(then),
            "changed": [
                {"name": name, "before": shown(old), "after": shown(declared[name])}
                for name, old in now.values().items()
                if now.system is then.system and declared[name] != old
            ],
            "findings": what_if_told.what_if_findings(found),
            "scores": None if found.scores is None else [one._asdict() for one in found.scores],
            "difference": None if found.difference is None else vars(found.difference),
            "judged": found.judged,
            "matches": len(found.matches),
            "listed": int(found.both.sum()),
            "alike": found.alike,
            "changed_division": found.changed_division,
            "movers": [one._asdict() for one in found.movers(MOVERS)],
            "best": [one._asdict() for one in found.best(BEST)],
            "ranks": [[one.player, one.rank_now, one.rank_then] for one in found.sample(RANKS)],
        }
    )


def what_if_figures(kept: Kept) -> dict[str, go.Figure]:
    """The ranks then against those now."""
    return {"ranks": what_if_told.ranks([(name, now, then) for name, now, then in kept["ranks"]])}


def rules_kept(rules: Rules) -> dict[str, object]:
    """Rules by name, with every parameter as it would be typed."""
    values = {name: shown(value) for name, value in rules.values().items()}
    return {"system": rules.system.name, "preset": rules.preset, "parameters": values}


def plain(value: dict[str, object]) -> dict[str, object]:
    """The same with None where a number is none, for JSON knows no other."""
    return cast("dict[str, object]", json.loads(json.dumps(_finite(value))))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
