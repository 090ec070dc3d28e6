"""JSON form of lab results, and figures drawn from the stored form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc

from evenmatch.calibration import Measure
from evenmatch.lab import charts
from evenmatch.lab.backtests.backtest import Backtest
from evenmatch.lab.backtests.scoring import RELIABILITY, SEGMENTS
from evenmatch.lab.backtests.verdict import advise, verdict
from evenmatch.lab.charts import COLORS, new_figure
from evenmatch.lab.fairness.suspects import FEWEST, RATE, Suspect
from evenmatch.lab.ladder import what_if
from evenmatch.lab.ladder.what_if import WhatIf
from evenmatch.options import options_of, shown
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

Kept = Mapping[str, Any]
MOVERS, BEST, RANKS = 25, 25, 600  # players of a what-if in each list and in the chart
LOOKED_UP = 20_000  # most players of a what-if who can be looked up, evenly spaced by rank if there are more
SCORED = (
    *("system", "variant", "matches", "log_loss", "log_loss_low", "log_loss_high", "brier", "accuracy"),
    *("calibration_slope", "seconds"),
)
PERIOD = ("system", "variant", "by", "group", "matches", "log_loss", "log_loss_low", "log_loss_high")


def keep_backtest(found: Backtest, own: str | None = None) -> dict[str, object]:
    """JSON form of a backtest: verdict, scores of all variants, curves and periods of the chosen ones.

    own  the system of the ladder, for advice; None: no ladder
    """
    chosen = {(variant.system, variant.variant) for variant in found.chosen}

    def of_chosen(table: pa.Table) -> list[dict[str, object]]:
        return [row for row in table.to_pylist() if (row["system"], row["variant"]) in chosen]

    segments = found.segments.filter(pc.equal(found.segments["by"], "period")).select(list(PERIOD))
    differences = {(row["system"], row["variant"]): row for row in found.against_best.to_pylist()}
    scores = [
        row | {name: differences[row["system"], row["variant"]][name] for name in ("difference", "low", "high")}
        for row in found.scores.select(list(SCORED)).to_pylist()
    ]
    return plain(
        {
            "verdict": verdict(found),
            "advice": None if own is None else advise(found, own)._asdict(),
            "pick": stored_rules(found.chosen[0].rules),
            "scores": scores,
            "chosen": [[variant.system, variant.variant] for variant in found.chosen],
            "reliability": of_chosen(found.reliability),
            "periods": of_chosen(segments),
            "left_out": [list(system_and_reason) for system_and_reason in found.left_out],
            "matches": len(found.matches),
            "judged": len(found.matches) - found.warm_up,
        }
    )


def backtest_figures(kept: Kept) -> dict[str, go.Figure]:
    """Figures of a stored backtest: reliability curves and log loss by period."""
    chosen = [(system, variant) for system, variant in kept["chosen"]]
    return {
        "reliability": charts.reliability(pa.Table.from_pylist(kept["reliability"], schema=RELIABILITY), chosen),
        "periods": charts.over_time(pa.Table.from_pylist(kept["periods"], schema=SEGMENTS), chosen),
    }


def keep_tuning(found: Backtest, present: Rules) -> dict[str, object]:
    """JSON form of a tuning: changed parameters and their effect on matches not used for tuning.

    found  backtest of the present rules (one system) with tuning
    """
    system = present.system.name
    rows = {row["variant"]: row for row in found.scores.select(list(SCORED)).to_pylist()}
    differences = {row["variant"]: row for row in found.against_best.to_pylist()}
    tuned = next(variant.rules for variant in found.variants if variant.variant == "tuned")
    before, after = rows["given"], rows["tuned"]
    present_minus_tuned = differences[
        "given"
    ]  # log loss of the present rules minus that of the tuned ones, which are the chosen variant
    difference = Measure(-present_minus_tuned["difference"], -present_minus_tuned["high"], -present_minus_tuned["low"])
    finding = what_if.compared(
        "The tuned parameters", before["log_loss"], after["log_loss"], difference, after["matches"]
    )
    old, new, declared = present.values(), tuned.values(), options_of(present.system.parameters)
    best: list[list[float]] = []
    for trial in found.trials.sort_by("trial").to_pylist():
        if trial["log_loss"] is not None and (not best or trial["log_loss"] < best[-1][1]):
            best.append([trial["trial"], trial["log_loss"]])
    return plain(
        {
            "system": system,
            "findings": [finding, *found.notes],
            "before": before,
            "after": after,
            "default": rows["default"],
            "changed": [
                {
                    "name": name,
                    "before": shown(old[name]),
                    "after": shown(value),
                    "meaning": declared[name].meaning,
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
    """Figure of a stored tuning: best log loss by number of trials, on the tuning matches."""
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
    """JSON form of a what-if: both rules, findings, who gains and loses most, best players, points of the chart."""
    now, then = found.now.rules, found.then.rules
    declared, movers = then.values(), found.movers()
    gains, losses = [mover for mover in movers if mover.up > 0], [mover for mover in movers if mover.up < 0]
    return plain(
        {
            "now": stored_rules(now),
            "then": stored_rules(then),
            "changed": [
                {"name": name, "before": shown(old), "after": shown(declared[name])}
                for name, old in now.values().items()
                if now.system is then.system and declared[name] != old
            ],
            "findings": what_if.what_if_findings(found),
            "scores": None if found.scores is None else [score._asdict() for score in found.scores],
            "difference": None if found.difference is None else vars(found.difference),
            "judged": found.judged,
            "matches": len(found.matches),
            "listed": int(found.both.sum()),
            "alike": found.alike,
            "changed_division": found.changed_division,
            "gaining": len(gains),
            "losing": len(losses),
            "gains": [mover._asdict() for mover in gains[:MOVERS]],
            "losses": [mover._asdict() for mover in losses[:MOVERS]],
            "everybody": [list(mover) for mover in found.sample(LOOKED_UP)],
            "best": [mover._asdict() for mover in found.best(BEST)],
            "ranks": [[mover.player, mover.rank_now, mover.rank_then] for mover in found.sample(RANKS)],
        }
    )


def look_up(kept: Kept, player: str) -> what_if.RankChange | None:
    """A player's positions in a stored what-if; None if both rules do not list the player."""
    return next((what_if.RankChange(*row) for row in kept["everybody"] if row[0] == player), None)


def what_if_figures(kept: Kept) -> dict[str, go.Figure]:
    """Figure of a stored what-if: ranks by the other rules against present ranks."""
    return {"ranks": what_if.ranks([(name, now, then) for name, now, then in kept["ranks"]])}


def keep_suspects(found: Sequence[Suspect], matches: MatchTable) -> dict[str, object]:
    """JSON form of a search for suspects: each with their evidence, and what the false-alarm rates refer to."""
    names, played = matches.player.to_pylist(), np.bincount(matches.history.columns.player)
    return plain(
        {
            "suspects": [
                {
                    "player": names[one.account],
                    "kind": one.kind,
                    "evidence": one.evidence,
                    "matches": int(played[one.account]),
                    "false_alarms": one.false_alarms,
                    "rarity": one.rarity,
                }
                for one in found
            ],
            "matches": len(matches),
            "judged": int((played >= FEWEST).sum()),
            "fewest": FEWEST,
            "rate": RATE,
        }
    )


def stored_rules(rules: Rules) -> dict[str, object]:
    """JSON form of rules: system, preset and all parameters as text."""
    values = {name: shown(value) for name, value in rules.values().items()}
    return {"system": rules.system.name, "preset": rules.preset, "parameters": values}


def plain(value: dict[str, object]) -> dict[str, object]:
    """Round-trip through JSON, with None for NaN and infinite numbers and floats at eight significant digits."""
    return cast("dict[str, object]", json.loads(json.dumps(_finite(value))))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
