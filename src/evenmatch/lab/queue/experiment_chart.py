"""Plotly figure of an experiment with two policies: how much each figure of the second one differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from evenmatch.lab.charts import COLORS, FAINT, GREY, label, new_figure

STYLES = {"b": (COLORS[0], "circle"), "a": (COLORS[1], "square"), None: (GREY, "circle-open")}
NAMES = {"b": "B does better", "a": "A does better", None: "not known"}


class RelativeDifference(NamedTuple):
    """A figure of the second policy minus that of the first, with its 95 % interval, as shares of the first.

    better  "a", "b" or None: not known
    """

    figure: str
    value: float
    low: float
    high: float
    better: str | None


def relative_differences(rows: Sequence[RelativeDifference], worth: float) -> go.Figure:
    """The differences with intervals in percent; a band marks those that are not worth knowing."""
    figure = new_figure(height=130 + 34 * len(rows))
    figure.add_vrect(x0=-100 * worth, x1=100 * worth, fillcolor=FAINT, line_width=0, layer="below")
    figure.add_vline(x=0, line={"color": GREY, "width": 1})
    for better, (color, symbol) in STYLES.items():
        chosen = [row for row in rows if row.better == better]
        if chosen:
            figure.add_scatter(
                x=[100 * row.value for row in chosen],
                y=[label(row.figure) for row in chosen],
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [100 * (row.high - row.value) for row in chosen],
                    "arrayminus": [100 * (row.value - row.low) for row in chosen],
                    "color": color,
                    "thickness": 2,
                    "width": 4,
                },
                customdata=[[100 * row.low, 100 * row.high] for row in chosen],
                hovertemplate="%{y}: %{x:.1f}% (%{customdata[0]:.1f} to %{customdata[1]:.1f})",
                mode="markers",
                marker={"color": color, "size": 10, "symbol": symbol},
                name=NAMES[better],
            )
    order = [label(row.figure) for row in rows]
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1], showgrid=False)
    figure.update_xaxes(title_text="B compared with A", ticksuffix="%")
    return figure
