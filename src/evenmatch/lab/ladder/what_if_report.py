"""Findings of a what-if as sentences and as a chart: rank changes, and which rules predict better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from evenmatch.calibration import Measure
from evenmatch.lab.backtests.backtest import LEAST
from evenmatch.lab.charts import COLORS, GREY, label, new_figure
from evenmatch.lab.ladder.what_if import WhatIf
from evenmatch.lab.queue.verdict import percent

SAME, ALIKE, APART = 0.9999, 0.95, 0.8  # correlations of ranks
# direction in which a player would move, color, symbol
MOVES = (("rise", COLORS[0], "triangle-up"), ("fall", COLORS[1], "triangle-down"), ("stay", GREY, "circle"))


def what_if_findings(found: WhatIf) -> list[str]:
    """Findings of a what-if as sentences, the most important first."""
    both = int(found.both.sum())
    if not both:
        return ["No player is listed by both rules: there is nothing to compare.", *_left_out(found)]
    return [*_odds(found), *_moves(found, both), *_left_out(found)]


def ranks(points: Sequence[tuple[str, int, int]]) -> go.Figure:
    """Chart of ranks by the other rules against present ranks; players above the line would rise.

    points  name, present rank and rank by the other rules of each player
    """
    figure = new_figure(height=460)
    last = max((rank for _, *both in points for rank in both), default=2)
    figure.add_scatter(
        **{"x": [1, last], "y": [1, last], "mode": "lines", "line": {"color": GREY, "width": 1}},
        hoverinfo="skip",
        showlegend=False,
    )
    for move, color, symbol in MOVES:
        moving = [point for point in points if _move(*point[1:]) == move]
        if moving:
            figure.add_scatter(
                x=[now for _, now, _ in moving],
                y=[then for *_, then in moving],
                customdata=[label(name, 30) for name, *_ in moving],
                mode="markers",
                marker={"color": color, "symbol": symbol, "size": 7 if len(points) <= 300 else 4},
                name=move,
                hovertemplate="%{customdata}<br>now #%{x:,}, then #%{y:,}<extra></extra>",
            )
    figure.update_layout(hovermode="closest", showlegend=True)
    figure.update_xaxes(title_text="rank now, the best on the right", autorange="reversed")
    figure.update_yaxes(title_text="rank then, the best on top", autorange="reversed")
    return figure


def _move(now: int, then: int) -> str:
    return "stay" if now == then else "rise" if then < now else "fall"


def _odds(found: WhatIf) -> list[str]:
    if found.scores is None or found.difference is None:
        few = f"{found.judged:,} match is" if found.judged == 1 else f"{found.judged:,} matches are"
        return [f"{few} too few to say which rules predict better: at least {LEAST} are needed."]
    now, then = (score.log_loss for score in found.scores)
    return [compared("The other rules", now, then, found.difference, found.judged)]


def compared(whose: str, now: float, then: float, difference: Measure, judged: int) -> str:
    """Sentence that compares the log loss of other rules with that of the present ones; `whose` is its subject."""
    figures = f"log loss {then:.4f} against {now:.4f} over the later {judged:,} matches"
    if difference.value == 0:
        return f"{whose} predict the same as the present ones: {figures}."
    if difference.low <= 0 <= difference.high or np.isnan(difference.low):
        return f"{whose} cannot be distinguished from the present ones by their predictions: {figures}."
    by = f"by {percent(abs(difference.value) / now)}, which is more than chance"
    return f"{whose} predict {'better' if difference.value < 0 else 'worse'}, {by}: {figures}."


def _moves(found: WhatIf, both: int) -> list[str]:
    sentences = []
    if found.alike >= SAME:
        sentences.append(f"The order of the {both:,} players listed by both is the same.")
    else:
        kind = "nearly the same" if found.alike >= ALIKE else "similar" if found.alike >= APART else "different"
        sentences.append(
            f"The order of the {both:,} players listed by both is {kind}: their ranks correlate by {found.alike:.2f}."
        )
    changed = found.changed_division or 0.0
    sentences.append(
        f"{percent(changed)} of them would be in another division." if changed else "All keep their division."
    )
    movers = found.movers(1)
    if movers:
        mover = movers[0]
        sentences.append(
            f"The largest move is from percentile {mover.percentile_now} to percentile {mover.percentile_then}."
        )
    return sentences


def _left_out(found: WhatIf) -> list[str]:
    now, then = found.now.left_out, found.then.left_out
    sentence = f"{then:,} match{'' if then == 1 else 'es'} cannot be rated by the other rules"
    return [f"{sentence}, {now:,} by the present ones."] if then or now else []
