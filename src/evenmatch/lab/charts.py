"""Plotly figures of backtests and ratings from Arrow tables, for reports, notebooks and web pages.

Lines are legible on light and dark backgrounds. The background is transparent; text and grids are grey until a page
recolors them. Requires plotly (extra `lab`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from html import escape
from importlib import import_module
from math import isfinite
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.history import Floats, Times
from evenmatch.lab.display_names import plain

with suppress(ImportError):
    import_module("pandas")  # loaded first: plotly fails while pyarrow is importing pandas in another thread

COIN = float(np.log(2.0))
SHOWN = 5  # curves visible initially; a click in the legend shows the others
PATHS = 10  # rating paths visible initially
THIN = 50  # fewest matches of a segment that is shown
DAY = 86_400_000  # milliseconds, plotly's unit
THIN_PERIOD = 15  # fewest matches of a period that is shown
FEW = 10  # fewest matches of a point of a reliability curve
STEPS = 400  # most points of a rating path
FEWEST_TICKS = 6  # up to this maximum, a count axis has a tick for every integer
BARS = 30
GREY = "#80868f"
FAINT = "rgba(128,134,143,0.25)"
# contrast of at least 3:1 to white and near black; distinct for color-blind readers (simulated, Machado et al. 2009)
COLORS = ("#2a93f5", "#c5203a", "#7d33ee", "#b98a14", "#b4208f", "#8b9183")
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "cross")
Name = tuple[str, str]  # system and variant


class LineStyle(NamedTuple):
    """Style that distinguishes a line from others, also without color."""

    color: str
    dash: str
    symbol: str


class Path(NamedTuple):
    """A player's shown rating after each match; times in microseconds since the epoch.

    interval  float64 (2, N), the lower and upper ends; None: not known
    """

    name: str
    time: Times
    rating: Floats
    interval: Floats | None = None


def line_styles(names: Sequence[str]) -> dict[str, LineStyle]:
    """Style of each name by its position, so that the same list has the same styles in all figures."""
    unique = dict.fromkeys(names)
    return {
        name: LineStyle(COLORS[index % len(COLORS)], DASHES[index % len(DASHES)], SYMBOLS[index % len(SYMBOLS)])
        for index, name in enumerate(unique)
    }


def label(name: str, longest: int = 48) -> str:
    """Escape a name for plotly, which interprets tags and entities in texts."""
    return escape(plain(name, longest), quote=False)


def reliability(points: pa.Table, variants: Sequence[Name], shown: int = SHOWN) -> go.Figure:
    """Reliability curves of these variants from `Backtest.reliability`."""
    figure = new_figure(height=420)
    look = line_styles([system for system, _ in variants])
    figure.add_scatter(
        x=[50, 100],
        y=[50, 100],
        mode="lines",
        line={"color": GREY, "width": 1},
        name="as predicted",
        hoverinfo="skip",
        showlegend=False,
    )
    for index, (system, variant) in enumerate(variants):
        rows = _of(points.filter(pc.greater_equal(points["matches"], FEW)), system, variant)
        predicted, observed, low, high = (
            100 * rows[name].to_numpy() for name in ("predicted", "observed", "low", "high")
        )
        figure.add_scatter(
            x=predicted,
            y=observed,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": high - observed,
                "arrayminus": observed - low,
                "thickness": 1,
                "width": 0,
                "color": faded(look[system].color, 0.55),
            },
            customdata=np.stack((low, high, rows["matches"].to_numpy()), 1),
            hovertemplate="given %{x:.1f}%<br>scored %{y:.1f}% (%{customdata[0]:.1f} to %{customdata[1]:.1f})"
            "<br>%{customdata[2]:,.0f} matches",
            **line_style(system, look[system], index < shown, marked=True),
        )
    figure.update_xaxes(title_text="the favourite was given", range=[49, 101], ticksuffix="%", dtick=10)
    figure.update_yaxes(title_text="the favourite scored", ticksuffix="%")
    return figure


def over_time(segments: pa.Table, variants: Sequence[Name], shown: int = SHOWN) -> go.Figure:
    """Log loss by period from `Backtest.segments`, with the interval of the first variant; small periods omitted."""
    figure = new_figure(height=380)
    figure.update_layout(hovermode="x")
    look = line_styles([system for system, _ in variants])
    periods = segments.filter(
        pc.and_(pc.equal(segments["by"], "period"), pc.greater_equal(segments["matches"], THIN_PERIOD))
    )
    for index, (system, variant) in enumerate(variants):
        rows = _of(periods, system, variant).sort_by("group")
        days = np.array(rows["group"].to_pylist(), "datetime64[D]").astype(str)
        if index == 0:
            low, high = (rows[f"log_loss_{end}"].to_numpy() for end in ("low", "high"))
            known = ~np.isnan(low)
            _band(figure, days[known], low[known], high[known], look[system])
        figure.add_scatter(
            x=days,
            y=rows["log_loss"].to_numpy(),
            customdata=np.array(rows["matches"]),
            hovertemplate="%{y:.4f}, %{customdata:,} matches",
            **line_style(system, look[system], index < shown, marked=len(rows) <= 24),
        )
    _coin(figure)
    names = pc.unique(periods["group"]).to_pylist()
    few = len(names) <= 12
    ticks: dict[str, object] = {}
    if few and all(len(name) == len("2026-11") for name in names):
        ticks = {"dtick": "M1", "tickformat": "%b\n%Y"}
    elif few and all(len(name) == len("2026-11-21") for name in names):
        ticks = {"dtick": DAY, "tickformat": "%-d %b\n%Y"}
    figure.update_xaxes(type="date", tickangle=0, **ticks)
    figure.update_yaxes(title_text="log loss", tickformat=".2f")
    return figure


def has_band(segments: pa.Table, variant: Name) -> bool:
    """Whether any period of this variant has an interval."""
    rows = _of(segments.filter(pc.equal(segments["by"], "period")), *variant)
    return int(rows["log_loss_low"].null_count) < len(rows)


def rating_distribution(ratings: Floats, look: LineStyle, height: int = 150) -> go.Figure:
    """Histogram of ratings. height: in pixels."""
    figure = new_figure(height)
    middle, width = float(np.median(ratings)), float(np.ptp(ratings))
    all_equal = width <= 1e-9 * max(1.0, abs(middle))
    span = (middle - 0.5, middle + 0.5) if all_equal else None
    counts, edges = np.histogram(ratings, int(np.clip(2 * np.cbrt(len(ratings)), 5, BARS)), span)  # Rice's rule
    figure.add_bar(
        x=(edges[1:] + edges[:-1]) / 2,
        y=counts,
        width=np.diff(edges),
        customdata=np.stack((edges[:-1], edges[1:]), 1),
        marker={"color": look.color, "line": {"width": 0}},
        hovertemplate="%{y:,} with %{customdata[0]:.4~g} to %{customdata[1]:.4~g}<extra></extra>",
    )
    figure.update_layout(bargap=0, margin={"l": 6, "r": 6, "t": 4, "b": 26}, showlegend=False, dragmode=False)
    figure.update_xaxes(fixedrange=True, nticks=4, tickangle=0)
    figure.update_yaxes(fixedrange=True, showticklabels=False, showgrid=False, zeroline=False)
    return figure


def rating_paths(paths: Sequence[Path]) -> go.Figure:
    """Ratings over time; a path with more than STEPS matches is sampled evenly."""
    figure = new_figure(height=420)
    look = line_styles([str(index) for index in range(len(paths))])
    for index, path in enumerate(paths):
        chosen = np.unique(np.linspace(0, len(path.time) - 1, min(len(path.time), STEPS)).round().astype(int))
        moments = path.time[chosen] / 1000  # plotly's unit is the millisecond
        if path.interval is not None:
            _step_band(figure, moments, path.interval[:, chosen], look[str(index)])
        figure.add_scatter(
            x=moments,
            y=path.rating[chosen],
            hovertemplate="%{y:.5~g}<br>%{x|%Y-%m-%d}",
            **line_style(path.name, look[str(index)], index < PATHS, marked=len(path.time) <= 40, shape="hv"),
        )
    figure.update_layout(showlegend=True)
    figure.update_xaxes(type="date", tickangle=0)
    figure.update_yaxes(title_text="rating")
    return figure


def _step_band(figure: go.Figure, moments: Floats, interval: Floats, look: LineStyle) -> None:
    for end, fill in zip(interval, (None, "tonexty"), strict=True):
        line, area = {"width": 0, "shape": "hv"}, faded(look.color, 0.14)
        hidden = {"hoverinfo": "skip", "showlegend": False, "mode": "lines"}
        figure.add_scatter(x=moments, y=end, fill=fill, fillcolor=area, line=line, **hidden)


def log_losses(scores: pa.Table) -> go.Figure:
    """Log loss of each variant of `Backtest.scores` with its interval, the best on top."""
    rows = scores.to_pylist()
    figure = new_figure(height=90 + 26 * len(rows))
    look = line_styles([row["system"] for row in rows])
    for row in rows:
        middle = row["log_loss"]
        low, high = (middle if row[name] is None else row[name] for name in ("log_loss_low", "log_loss_high"))
        bar = {"symmetric": False, "array": [high - middle], "arrayminus": [middle - low], "thickness": 2}
        name = f"{row['system']}, {row['variant']}"
        figure.add_scatter(
            x=[middle],
            y=[label(name)],
            error_x=bar | {"color": faded(look[row["system"]].color, 0.55)},
            hovertemplate=f"%{{x:.4f}} ({low:.4f} to {high:.4f})",
            **line_style(name, look[row["system"]], shown=True, marked=True) | {"mode": "markers"},
        )
    figure.add_vline(x=COIN, line={"color": GREY, "width": 1, "dash": "dot"}, annotation_text="a coin")
    figure.update_layout(showlegend=False)
    figure.update_xaxes(title_text="log loss, lower is better")
    return figure.update_yaxes(autorange="reversed", showgrid=False)


def new_figure(height: int) -> go.Figure:
    """Empty figure in the common style, with a transparent background."""
    axis = {
        "gridcolor": FAINT,
        "linecolor": FAINT,
        "zeroline": False,
        "automargin": True,
        "title": {"standoff": 10, "font": {"size": 13}},
    }
    return go.Figure(
        layout=go.Layout(
            template=go.layout.Template(),  # plotly's default template sets a background
            height=height,
            autosize=True,
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            font={"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 13, "color": GREY},
            margin={"l": 8, "r": 12, "t": 12, "b": 8},
            xaxis=axis,
            yaxis=axis,
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
            hoverlabel={"namelength": -1},
            uirevision="kept",
        )
    )


def nothing_yet(figure: go.Figure, words: str) -> go.Figure:
    """Show a text in the figure instead of empty axes."""
    note = {"text": words, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    figure.update_layout(annotations=[{**note, "font": {"size": 14, "color": GREY}}], height=160)
    return figure.update_xaxes(visible=False).update_yaxes(visible=False)


def wide_enough(first: int, last: int) -> list[int]:
    """Range of a time axis in milliseconds, at least one day: plotly labels shorter ones in microseconds.

    A short range is extended into the past, because nothing has happened after the last point yet.
    """
    span = max(last - first, DAY)
    room = span // 40
    return [last - span - room, last + room]


def whole_ticks(most: int) -> dict[str, object]:
    """Integer ticks for an axis of small counts, where plotly would use fractions."""
    return {"dtick": 1, "range": [0, most + 0.5]} if most <= FEWEST_TICKS else {}


def share_range(values: Sequence[float], *, from_zero: bool) -> list[float]:
    """Range of an axis of shares within 0..1, since plotly's default for few values may be −100 % to 400 %."""
    known = [value for value in values if isfinite(value)]
    if not known:
        return [0.0, 1.0]
    room = max(0.15 * (max(known) - min(known)), 0.02)
    return [0.0 if from_zero else max(min(known) - room, 0.0), min(max(known) + room, 1.0)]


def line_style(name: str, look: LineStyle, shown: bool, *, marked: bool, shape: str = "linear") -> dict[str, object]:
    """Plotly properties of a line; if not `shown`, it appears only in the legend until clicked."""
    return {
        "name": label(name),
        "meta": plain(name),  # for pages with their own legend
        "mode": "lines+markers" if marked else "lines",
        "line": {"color": look.color, "dash": look.dash, "width": 2, "shape": shape},
        "marker": {"color": look.color, "symbol": look.symbol, "size": 7},
        "visible": True if shown else "legendonly",
    }


def _band(figure: go.Figure, days: NDArray[np.str_], low: Floats, high: Floats, look: LineStyle) -> None:
    figure.add_scatter(
        x=np.concatenate((days, days[::-1])),
        y=np.concatenate((low, high[::-1])),
        mode="none",
        fill="toself",
        fillcolor=faded(look.color, 0.14),
        hoverinfo="skip",
        showlegend=False,
    )


def _coin(figure: go.Figure) -> None:
    figure.add_shape(
        type="line", xref="paper", x0=0, x1=1, y0=COIN, y1=COIN, line={"color": GREY, "width": 1, "dash": "dot"}
    )
    figure.add_annotation(
        xref="paper", x=1, y=COIN, text=f"a coin, {COIN:.3f}", showarrow=False, xanchor="right", yanchor="bottom"
    )


def _of(table: pa.Table, system: str, variant: str) -> pa.Table:
    return table.filter(pc.and_(pc.equal(table["system"], system), pc.equal(table["variant"], variant)))


def faded(color: str, share: float) -> str:
    """The color #rrggbb with this opacity (0..1) as CSS rgba()."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"
