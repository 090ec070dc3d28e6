"""Plotly figures of simulated queues and of experiments, for reports, notebooks and web pages.

Same style as `lab.charts`: every line has a color, a dash pattern and a symbol. Requires plotly (extra `lab`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from evenmatch.history import Floats
from evenmatch.lab.charts import COLORS, FAINT, FEW, GREY, faded, label, line_style, line_styles, new_figure
from evenmatch.lab.queue.run_metrics import EVEN, summary_of
from evenmatch.lab.queue.runs import Run

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
    """The differences with intervals in percent; a band marks those that are not worth detecting."""
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


TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
SMALLEST = 0.1  # seconds or percentiles: lower bound, since a logarithmic scale has no zero
NEAR = 1.7  # marks closer than this factor have overlapping labels


class Mark(NamedTuple):
    """A run that made matches; `at` is its index among the runs.

    wait, late    median and 95th percentile of the players' waits, seconds
    spread, wide  median and 95th percentile of the matches' spreads, percentiles
    broken        players with a broken rule
    side          left or right: side of the label without overlap
    """

    at: int
    name: str
    wait: float
    late: float
    spread: float
    wide: float
    broken: int
    side: str


def marks(runs: Sequence[Run]) -> list[Mark]:
    """Marks of all runs that made a match."""
    figures = {index: summary_of(run) for index, run in enumerate(runs) if run.matches}
    medians = {
        index: (_place(summary, "wait_p50"), _place(summary, "spread_p50")) for index, summary in figures.items()
    }
    return [
        Mark(
            at=index,
            name=runs[index].name,
            wait=medians[index][0],
            late=_place(summary, "wait_p95"),
            spread=medians[index][1],
            wide=_place(summary, "spread_p95"),
            broken=runs[index].broken.players,
            side=_side(index, medians),
        )
        for index, summary in figures.items()
    ]


def _side(index: int, middles: Mapping[int, tuple[float, float]]) -> str:
    """Side of the label: left if another mark is close on the right."""
    wait, spread = middles[index]
    for other_index, (other_wait, other_spread) in middles.items():
        near = max(other_wait / wait, wait / other_wait, other_spread / spread, spread / other_spread) < NEAR
        if near and (other_wait, other_index) > (wait, index):
            return "left"
    return "right"


def _place(found: Mapping[str, object], name: str) -> float:
    value = found[name]
    assert isinstance(value, float)
    return max(value, SMALLEST)


SHOWN = 8  # runs visible initially
STEPS = 240  # points of a line
PERIODS = 120  # number of periods over which the queue's length is averaged


def wait_against_evenness(runs: Sequence[Run]) -> go.Figure:
    """Median wait and spread of each run, with lines to the 95th percentiles; lower left is better.

    Both scales are logarithmic. A mark is open if rules were broken.
    """
    figure, look = new_figure(height=440), line_styles([run.name for run in runs])
    for mark in marks(runs):
        seen = look[mark.name]
        symbol = {"symbol": f"{seen.symbol}-open", "line": {"width": 2}} if mark.broken else {"symbol": seen.symbol}
        bar = {"type": "data", "symmetric": False, "arrayminus": [0], "thickness": 2, "width": 0}
        bar |= {"color": faded(seen.color, 0.5)}
        line = line_style(mark.name, seen, mark.at < SHOWN, marked=True)
        figure.add_scatter(
            x=[mark.wait],
            y=[mark.spread],
            error_x=bar | {"array": [mark.late - mark.wait]},
            error_y=bar | {"array": [mark.wide - mark.spread]},
            customdata=[[mark.late, mark.wide, mark.broken]],
            hovertemplate="wait %{x:.1f} s, 95 of 100 %{customdata[0]:.1f} s<br>spread %{y:.1f}, 95 of 100 "
            "%{customdata[1]:.1f} percentiles<br>%{customdata[2]:,} violations",
            text=[label(mark.name, 20)],
            textposition=f"bottom {mark.side}",
            **line | {"mode": "markers+text", "marker": {"color": seen.color, "size": 11, **symbol}},
        )
    _logarithmic_axis(figure, "x", "wait, seconds")
    _logarithmic_axis(figure, "y", "spread of a match, percentiles")
    return figure


def wait_shares(runs: Sequence[Run]) -> go.Figure:
    """Share of the matched players by wait (cumulative distribution)."""
    figure, look = new_figure(height=400), line_styles([run.name for run in runs])
    shares, most = np.linspace(0.0, 1.0, STEPS + 1), 1.0
    for index, run in enumerate(runs):
        waits = waits_of(run)
        if len(waits):
            most = max(most, float(np.quantile(waits, 0.99)))
            figure.add_scatter(
                x=np.quantile(waits, shares),
                y=100 * shares,
                hovertemplate="%{y:.0f}% after %{x:.0f} s",
                **line_style(run.name, look[run.name], index < SHOWN, marked=False),
            )
    figure.update_xaxes(title_text="seconds", range=[0, 1.02 * most])
    figure.update_yaxes(title_text="players with a match", ticksuffix="%", range=[0, 101])
    return figure


def wait_by_decile(runs: Sequence[Run], percent: int = 95) -> go.Figure:
    """The 50th or 95th percentile of the wait by tenth of the ranks, the lowest first."""
    figure = _by_group(runs, "by_decile", "decile", percent)
    figure.update_xaxes(title_text="tenth of the ranks, the best are the 10th", range=[0.7, 10.3], dtick=1)
    return figure


def wait_by_party_size(runs: Sequence[Run], percent: int = 95) -> go.Figure:
    """The 50th or 95th percentile of the wait by size of the party."""
    figure = _by_group(runs, "by_party_size", "size", percent)
    figure.update_xaxes(title_text="players in the party", dtick=1)
    return figure


def true_odds(runs: Sequence[Run]) -> go.Figure:
    """Share of matches by the winning chance of the stronger team, by true skill (cumulative distribution)."""
    figure, look = new_figure(height=400), line_styles([run.name for run in runs])
    shares = np.linspace(0.0, 1.0, STEPS + 1)
    for index, run in enumerate(runs):
        odds = run.worth.true_odds[~np.isnan(run.worth.true_odds)]
        if len(odds):
            figure.add_scatter(
                x=100 * np.quantile(np.maximum(odds, 1.0 - odds), shares),
                y=100 * shares,
                hovertemplate="%{y:.0f}% of the matches: %{x:.1f}% or less",
                **line_style(run.name, look[run.name], index < SHOWN, marked=False),
            )
    figure.add_shape(
        type="line", yref="paper", y0=0, y1=1, x0=100 * EVEN[1], x1=100 * EVEN[1], line={"color": GREY, "dash": "dot"}
    )
    figure.update_xaxes(title_text="chance of the stronger team, by true skill", ticksuffix="%", rangemode="normal")
    figure.update_yaxes(title_text="matches", ticksuffix="%", range=[0, 101])
    return figure


def odds_chart(runs: Sequence[Run]) -> go.Figure | None:
    """Actual wins of predicted favourites by their odds; None if there are too few classes of odds."""
    figure, look = new_figure(height=400), line_styles([run.name for run in runs])
    figure.add_scatter(
        **{"x": [50, 100], "y": [50, 100], "mode": "lines", "line": {"color": GREY, "width": 1}},
        hoverinfo="skip",
        showlegend=False,
    )
    highest, points = 55.0, 0
    for index, run in enumerate(runs):
        classes: list[dict[str, float]] = [row for row in _groups(run, "calibration") if row["matches"] >= FEW]
        if not classes:
            continue
        points = max(points, len(classes))
        given, won, matches = (np.array([row[name] for row in classes]) for name in ("expected", "won", "matches"))
        error = 1.96 * np.sqrt(given * (1.0 - given) / matches)
        highest = max(highest, 100 * float(given.max()))
        figure.add_scatter(
            x=100 * given,
            y=100 * won,
            error_y={
                "type": "data",
                "array": 100 * error,
                "thickness": 1,
                "width": 0,
                "color": faded(look[run.name].color, 0.55),
            },
            customdata=matches,
            hovertemplate="given %{x:.1f}%<br>won %{y:.1f}%<br>%{customdata:,} matches",
            **line_style(run.name, look[run.name], index < SHOWN, marked=True),
        )
    figure.update_xaxes(title_text="the favourite was given", ticksuffix="%", range=[49, highest + 2])
    figure.update_yaxes(title_text="the favourite won", ticksuffix="%")
    return figure if points > 1 else None


def queue_length(runs: Sequence[Run]) -> go.Figure:
    """Mean number of players waiting after each decision, over short periods."""
    figure, look = new_figure(height=360), line_styles([run.name for run in runs])
    for index, run in enumerate(runs):
        first = np.unique(np.linspace(0, len(run.ticks), min(len(run.ticks), PERIODS), endpoint=False).astype(int))
        count = np.diff(np.append(first, len(run.ticks)))
        figure.add_scatter(
            x=np.add.reduceat(run.ticks - run.ticks[0], first) / count / 60e6,
            y=np.add.reduceat(run.waiting, first) / count,
            hovertemplate="%{y:,.0f} players after %{x:.1f} minutes",
            **line_style(run.name, look[run.name], index < SHOWN, marked=False),
        )
    figure.update_xaxes(title_text="minutes")
    figure.update_yaxes(title_text="players waiting", rangemode="tozero")
    return figure


def waits_of(run: Run) -> Floats:
    """Waits of the matched players, in seconds."""
    waits: Floats = np.repeat(run.waits[run.matched], run.sizes[run.matched])
    return waits


def _by_group(runs: Sequence[Run], name: str, group: str, percent: int) -> go.Figure:
    figure, look = new_figure(height=380), line_styles([run.name for run in runs])
    for index, run in enumerate(runs):
        groups = [row for row in _groups(run, name) if row["matched"]]
        figure.add_scatter(
            x=[row[group] for row in groups],
            y=[row[f"wait_p{percent}"] for row in groups],
            customdata=[row["matched"] for row in groups],
            hovertemplate="%{y:.1f} s, %{customdata:,} players",
            **line_style(run.name, look[run.name], index < SHOWN, marked=True),
        )
    figure.update_yaxes(title_text="wait, seconds", rangemode="tozero")
    return figure


def _groups(run: Run, name: str) -> list[dict[str, float]]:
    groups = summary_of(run)[name]
    assert isinstance(groups, list)
    return groups


def _logarithmic_axis(figure: go.Figure, axis: str, title: str) -> None:
    ticks = {"tickmode": "array", "tickvals": TICKS, "ticktext": [f"{tick:g}" for tick in TICKS]}
    figure.update_layout({f"{axis}axis": {"type": "log", "title_text": title, **ticks}})
