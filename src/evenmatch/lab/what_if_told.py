"""A what-if in words, and its picture: who would move, and whether the other rules predict better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from evenmatch.lab.backtest import LEAST
from evenmatch.lab.charts import COLORS, GREY, label, new_figure
from evenmatch.lab.metrics import Measure
from evenmatch.lab.queue_verdict import percent
from evenmatch.lab.what_if import WhatIf

SAME, ALIKE, APART = 0.9999, 0.95, 0.8  # correlations of ranks
# what a player would do, colour and symbol
MOVES = (("rise", COLORS[0], "triangle-up"), ("fall", COLORS[1], "triangle-down"), ("stay", GREY, "circle"))


def what_if_findings(found: WhatIf) -> list[str]:
    """Sentences, the most important first."""
    both = int(found.both.sum())
    if not both:
        return ["Nobody is listed by both rules: there is nothing to compare.", *_left_out(found)]
    return [*_odds(found), *_moves(found, both), *_left_out(found)]


def ranks(points: Sequence[tuple[str, int, int]]) -> go.Figure:
    """The rank of players then against now; who is above the line would rise. points: name, rank now, rank then."""
    figure = new_figure(height=460)
    last = max((rank for _, *both in points for rank in both), default=2)
    figure.add_scatter(
        **{"x": [1, last], "y": [1, last], "mode": "lines", "line": {"color": GREY, "width": 1}},
        hoverinfo="skip",
        showlegend=False,
    )
    for move, color, symbol in MOVES:
        here = [one for one in points if _move(*one[1:]) == move]
        if here:
            figure.add_scatter(
                x=[now for _, now, _ in here],
                y=[then for *_, then in here],
                customdata=[label(name, 30) for name, *_ in here],
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
        few = f"{found.judged:,} match{'' if found.judged == 1 else 'es'}"
        return [f"With {few} to judge by it cannot be said which rules predict better; that takes {LEAST}."]
    now, then = (one.log_loss for one in found.scores)
    return [compared("The other rules", now, then, found.difference, found.judged)]


def compared(whose: str, now: float, then: float, difference: Measure, judged: int) -> str:
    """Whether these rules, the subject of the sentence, predict better than the present ones, by log loss."""
    told = f"log loss {then:.4f} against {now:.4f} over the later {judged:,} matches"
    if difference.value == 0:
        return f"{whose} predict the same as the present ones: {told}."
    if difference.low <= 0 <= difference.high or np.isnan(difference.low):
        return f"{whose} cannot be told from the present ones by how well they predict: {told}."
    by = f"by {percent(abs(difference.value) / now)}, which is more than chance"
    return f"{whose} predict {'better' if difference.value < 0 else 'worse'}, {by}: {told}."


def _moves(found: WhatIf, both: int) -> list[str]:
    told = []
    if found.alike >= SAME:
        told.append(f"The order of the {both:,} players whom both list is the same.")
    else:
        kind = "nearly the same" if found.alike >= ALIKE else "alike" if found.alike >= APART else "another"
        told.append(
            f"The order of the {both:,} players whom both list is {kind}: their ranks correlate by {found.alike:.2f}."
        )
    changed = found.changed_division or 0.0
    told.append(f"{percent(changed)} of them would be in another division." if changed else "All keep their division.")
    far = found.movers(1)
    if far:
        one = far[0]
        told.append(
            f"Farthest moves one who is at percentile {one.percentile_now} now and would be at {one.percentile_then}."
        )
    return told


def _left_out(found: WhatIf) -> list[str]:
    now, then = found.now.left_out, found.then.left_out
    told = f"{then:,} match{'' if then == 1 else 'es'} cannot be rated by the other rules"
    return [f"{told}, {now:,} by the present ones."] if then or now else []
