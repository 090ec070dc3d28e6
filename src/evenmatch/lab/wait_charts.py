"""How long players waited for the matches that a ladder's queues offered. Needs plotly (the extra `lab`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from evenmatch.lab.charts import COLORS, GREY, SYMBOLS, new_figure, nothing_yet, wide_enough

LEVELS = ((0, 20), (20, 50), (50, 80), (80, 101))  # percentiles, as they are told apart
WINDOW = 30  # waits of which the middle line is the median


class Waited(NamedTuple):
    """A party that was offered a match: when (microseconds), after how many seconds, and its percentile."""

    made_at: int
    seconds: float
    percentile: float


def waits_over_time(waits: Sequence[Waited]) -> go.Figure:
    """Every wait, told apart by level, with the median of those about the same time."""
    figure = new_figure(height=320)
    figure.update_layout(hovermode="closest", showlegend=True)
    if not waits:
        return nothing_yet(figure, "No match was offered yet.")
    ordered = sorted(waits)
    for at, (low, high) in enumerate(LEVELS):
        here = [one for one in ordered if low <= one.percentile < high]
        if here:
            figure.add_scatter(
                x=[one.made_at // 1000 for one in here],
                y=[round(one.seconds, 1) for one in here],
                customdata=[round(one.percentile, 1) for one in here],
                mode="markers",
                marker={"color": COLORS[at], "symbol": SYMBOLS[at], "size": 5},
                name=f"percentile {low}–{min(high, 100)}",
                hovertemplate="%{y:.0f} s at percentile %{customdata}<br>%{x|%Y-%m-%d %H:%M}<extra></extra>",
            )
    if len(ordered) >= WINDOW:
        seconds = np.array([one.seconds for one in ordered])
        windows = np.lib.stride_tricks.sliding_window_view(seconds, WINDOW)
        middle = [one.made_at // 1000 for one in ordered][WINDOW // 2 :][: len(windows)]
        figure.add_scatter(
            x=middle,
            y=np.median(windows, axis=1).round(1).tolist(),
            mode="lines",
            line={"color": GREY, "width": 2},
            name=f"median of {WINDOW}",
            hovertemplate="half wait %{y:.0f} s or less<extra></extra>",
        )
    ends = wide_enough(ordered[0].made_at // 1000, ordered[-1].made_at // 1000)
    figure.update_xaxes(type="date", tickangle=0, range=ends)
    figure.update_yaxes(title_text="wait, seconds", rangemode="tozero")
    return figure
