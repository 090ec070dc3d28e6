"""Charts of simulated queues, drawn with matplotlib, which does not need a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot
from matplotlib.axes import Axes

from evenmatch.lab.queue.queue_charts import TICKS, marks
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.runs import Run

INKS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7c3aed", "#b4236a", "#92700c")
MARKS = ("o", "s", "D", "^", "v", "P", "X", "<")
DASHES = ("solid", "dashed", "dotted")


def draw_wait_against_evenness(runs: Sequence[Run], path: Path) -> None:
    """Draw median wait and spread of each run, with lines to the 95th percentiles, to an .svg or .png file.

    A mark is open if rules were broken. Raises UsageError if matplotlib is not installed.
    """
    with _picture(path, "Wait against evenness: to the left and low is good") as axes:
        for mark in marks(runs):
            ink, shape = _look(mark.at)
            axes.plot([mark.wait, mark.late], [mark.spread, mark.spread], color=ink, linewidth=2, alpha=0.5)
            axes.plot([mark.wait, mark.wait], [mark.spread, mark.wide], color=ink, linewidth=2, alpha=0.5)
            fill = "white" if mark.broken else ink
            axes.plot(mark.wait, mark.spread, shape, color=ink, markerfacecolor=fill, markersize=8, markeredgewidth=1.8)
            place, end = ((-7, -13), "right") if mark.side == "left" else ((7, -13), "left")
            axes.annotate(mark.name, (mark.wait, mark.spread), place, textcoords="offset points", ha=end, color=ink)
        for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            scale("log")
            axis.set_ticks(TICKS, labels=[f"{tick:g}" for tick in TICKS])
            axis.set_ticks([], minor=True)
        axes.autoscale()
        axes.margins(0.09)
        axes.set_xlabel("wait in seconds: mark half of the players, line to 95 of 100")
        axes.set_ylabel("spread in percentiles: mark half of the matches")


def draw_wait_by_decile(runs: Sequence[Run], path: Path) -> None:
    """Draw the 95th percentile of the wait by tenth of the ranks to an .svg or .png file.

    Raises UsageError if matplotlib is not installed.
    """
    with _picture(path, "Wait of 95 of 100 players, by tenth of the ranks") as axes:
        for index, run in enumerate(runs):
            deciles: Any = summary_of(run)["by_decile"]
            ink, marker = _look(index)
            dash = DASHES[index // len(INKS) % len(DASHES)]
            waits = [(decile["decile"], decile["wait_p95"]) for decile in deciles if decile["matched"]]
            axes.plot(
                *zip(*waits, strict=True), marker=marker, linestyle=dash, color=ink, linewidth=1.6, label=run.name
            )
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(1, 11))
        axes.set_xlabel("tenth of the ranks, the best are the 10th")
        axes.set_ylabel("seconds")
        if len(runs) > 1:
            axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _look(index: int) -> tuple[str, str]:
    return INKS[index % len(INKS)], MARKS[index % len(MARKS)]


@contextmanager
def _picture(path: Path, title: str) -> Iterator[Axes]:
    """Yield axes to draw on; save the chart on exit."""
    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "evenmatch"
    with pyplot.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
        try:
            axes.set_title(title, loc="left", fontweight="bold")
            axes.grid(color="#d4d4d4", linewidth=0.6)
            axes.tick_params(length=0)
            yield axes
            figure.savefig(path, dpi=144, facecolor="white", metadata={"Date": None} if path.suffix == ".svg" else {})
        finally:
            pyplot.close(figure)
