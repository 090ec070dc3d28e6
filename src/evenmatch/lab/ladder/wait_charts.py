"""Chart of waiting times for the matches that a ladder's queues offered. Requires plotly (extra `lab`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from evenmatch.lab.charts import COLORS, GREY, SYMBOLS, new_figure, nothing_yet, wide_enough

LEVELS = ((0, 20), (20, 50), (50, 80), (80, 101))  # percentile ranges, each with its own color
WINDOW = 30  # number of consecutive waits in the running median


class PartyWait(NamedTuple):
    """A party that was offered a match: time of the offer (microseconds), wait (seconds), percentile."""

    made_at: int
    seconds: float
    percentile: float


def waits_over_time(waits: Sequence[PartyWait]) -> go.Figure:
    """Chart of every wait, colored by level, with the running median."""
    figure = new_figure(height=320)
    figure.update_layout(hovermode="closest", showlegend=True)
    if not waits:
        return nothing_yet(figure, "No match was offered yet.")
    ordered = sorted(waits)
    for index, (low, high) in enumerate(LEVELS):
        at_level = [wait for wait in ordered if low <= wait.percentile < high]
        if at_level:
            figure.add_scatter(
                x=[wait.made_at // 1000 for wait in at_level],
                y=[round(wait.seconds, 1) for wait in at_level],
                customdata=[round(wait.percentile, 1) for wait in at_level],
                mode="markers",
                marker={"color": COLORS[index], "symbol": SYMBOLS[index], "size": 5},
                name=f"percentile {low}–{min(high, 100)}",
                hovertemplate="%{y:.0f} s at percentile %{customdata}<br>%{x|%Y-%m-%d %H:%M}<extra></extra>",
            )
    if len(ordered) >= WINDOW:
        seconds = np.array([wait.seconds for wait in ordered])
        windows = np.lib.stride_tricks.sliding_window_view(seconds, WINDOW)
        times = [wait.made_at // 1000 for wait in ordered][WINDOW // 2 :][: len(windows)]
        figure.add_scatter(
            x=times,
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
