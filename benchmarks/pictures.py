"""Pictures of results: for each figure its median, its spread, its reference and its aim, on one axis for each unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.figure import Figure, Section

OURS, GREY, AIM = "#0b6e99", "#737373", "#c2410c"
ROW = 0.24  # inches for each figure
WIDE = 30.0  # largest value by smallest, from which on an axis is logarithmic


def draw(section: Section, path: Path) -> bool:
    """Draw the figures of a section as an SVG file; return whether there was something to draw.

    The same figures give the same bytes on one machine. Figures without any value above zero are left out.
    """
    panels = _panels(section.figures)
    if not panels:
        return False
    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "evenmatch"
    heights = [len(figures) + 1.6 for figures in panels.values()]
    with pyplot.rc_context({"font.size": 8.5, "axes.spines.top": False, "axes.spines.right": False}):
        size = (9.0, ROW * sum(heights) + 0.6)
        grid = {"height_ratios": heights}
        figure, axes = pyplot.subplots(len(panels), figsize=size, layout="constrained", squeeze=False, gridspec_kw=grid)
        for each, (unit, figures) in zip(axes.flat, panels.items(), strict=True):
            _draw_panel(each, unit, figures)
        figure.legend(handles=_legend(), loc="outside upper left", ncols=3, frameon=False)
        figure.savefig(path, facecolor="white", metadata={"Date": None})
        pyplot.close(figure)
    return True


def _panels(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    """The figures by unit and direction."""
    panels: dict[str, list[Figure]] = {}
    for figure in figures:
        if np.isfinite(figure.runs).all() and figure.runs.min() > 0:
            panels.setdefault(f"{figure.unit} ({'more' if figure.more else 'less'} is better)", []).append(figure)
    return panels


def _draw_panel(axes: Axes, unit: str, figures: Sequence[Figure]) -> None:
    values: list[float] = []
    for row, figure in enumerate(figures):
        runs, reference = figure.runs, figure.reference_runs
        axes.plot([runs.min(), runs.max()], [row, row], color=OURS, linewidth=2.2, alpha=0.45)
        axes.plot(figure.value, row, "o", color=OURS, markersize=5)
        values += [float(runs.min()), float(runs.max())]
        if len(reference) and np.median(reference) > 0:
            middle = float(np.median(reference))
            axes.plot(middle, row, "D", color=GREY, markersize=4, fillstyle="none")
            values.append(middle)
        if figure.aim:
            axes.plot(figure.aim, row, "|", color=AIM, markersize=9, markeredgewidth=1.6)
            values.append(figure.aim)
    if max(values) / min(values) >= WIDE:
        axes.set_xscale("log")
        decades = math.log10(max(values) / min(values))
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.set_yticks(range(len(figures)), labels=[figure.name for figure in figures])
    axes.set_ylim(len(figures) - 0.4, -0.6)
    axes.grid(axis="x", color="#d4d4d4", linewidth=0.5)
    axes.tick_params(length=0)
    axes.set_title(unit, loc="left", fontsize=8.5, fontweight="bold")


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color=OURS, marker="o", linewidth=2.2, label="evenmatch: median, least to most"),
        Line2D([], [], color=GREY, marker="D", fillstyle="none", linestyle="", label="reference, in the same run"),
        Line2D([], [], color=AIM, marker="|", linestyle="", markersize=9, label="aim"),
    ]
