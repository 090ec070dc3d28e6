"""Draw the figures of `benchmarks.fronts --json`: `python tools/front_pictures.py FRONTS.json [--out FILE] [--table]`.

One panel for each cell: a line leads from wait p50 to wait p95 at the height of spread p95. Our presets are coloured,
rivals are grey, and those that broke filters are open. Cells that differ in the preset alone share a panel, in which
rivals follow the first preset. `--table` prints a Markdown table instead, a row for each cell.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOCS = Path(__file__).resolve().parents[1] / "docs"
OURS = "evenmatch"
GREY = "#737373"
MARKS = ("s", "^", "D", "v", "P", "X", "<", ">")  # of the rivals; ours are circles
WAIT_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
COLUMNS = 3
SHOWN = (
    ("wait_p50", "wait, half"),
    ("wait_p95", "wait, 95 of 100"),
    ("spread_p95", "spread, 95 of 100"),
    ("law", "law"),
)

FrontCell = dict[str, Any]  # a cell of the JSON file


def main() -> None:
    """Draw the picture, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fronts", type=Path, metavar="FRONTS.json", help="what benchmarks.fronts has written")
    parser.add_argument("--out", type=Path, default=DOCS / "matchmaking-fronts.svg", help="where to draw")
    parser.add_argument("--table", action="store_true", help="print a Markdown table, and draw nothing")
    given = parser.parse_args()
    cells: list[FrontCell] = json.loads(given.fronts.read_text(encoding="utf-8"))["cells"]
    if given.table:
        print("\n".join(table(cells)))
    else:
        draw(cells, given.out)


def table(cells: list[FrontCell]) -> list[str]:
    """Lines of a Markdown table: evenmatch, the best rival by law, and the rivals that dominate."""
    heads = [name for _, name in SHOWN]
    lines = [
        f"| match | players a second | population | policy | {' | '.join(heads)} | best rival | {' | '.join(heads)} | "
        "dominated by |",
        f"| --- | ---: | --- | --- |{' ---: |' * len(SHOWN)} --- |{' ---: |' * len(SHOWN)} --- |",
    ]
    for cell in cells:
        rival = cell["best_rival"]
        texts = [cell["shape"], f"{cell['rate']:.3g}", cell["population"], f"`{cell['preset']}`"]
        texts += [_text(cell, OURS, key) for key, _ in SHOWN]
        texts += ["–" if rival is None else f"`{rival}`", *(_text(cell, rival, key) for key, _ in SHOWN)]
        lines.append(f"| {' | '.join(texts)} | {', '.join(f'`{name}`' for name in cell['dominating']) or 'none'} |")
    return lines


def _text(cell: FrontCell, name: str | None, key: str) -> str:
    """Mean and interval of a figure, with its unit."""
    value = cell["runs"][name][key] if name in cell["runs"] else {"mean": None}
    if value["mean"] is None:
        return "–"
    digits = 0 if key.startswith("wait") and value["mean"] >= 9.95 else 1
    half = f" ± {value['half']:.{digits}f}" if value["half"] else ""
    return f"{value['mean']:,.{digits}f}{half}{' s' if key.startswith('wait') else ''}"


def draw(cells: list[FrontCell], path: Path) -> None:
    """Draw the panels; the same file gives the same bytes on one machine."""
    from matplotlib import pyplot, rcParams

    from queue_picture import INKS

    pyplot.switch_backend("agg")
    rcParams["svg.hashsalt"] = "evenmatch"
    panels: dict[str, list[FrontCell]] = {}
    for cell in cells:
        panels.setdefault(f"{cell['shape']}, {cell['rate']:.3g} a second, {cell['population']}", []).append(cell)
    inks = dict(zip(dict.fromkeys(cell["preset"] for cell in cells), INKS, strict=False))
    rivals = dict.fromkeys(name for cell in cells for name in cell["runs"] if name != OURS)
    marks = {name: MARKS[index % len(MARKS)] for index, name in enumerate(rivals)}
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with pyplot.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        size = (3.6 * columns + 0.4, 2.9 * rows + 0.9)
        figure, grid = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, (title, of_panel) in zip(grid.flat, panels.items(), strict=False):
            _draw_panel(axes, of_panel, inks, marks)
            axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        figure.supxlabel("wait in seconds: mark half of the players, line to 95 of 100", fontsize=10)
        figure.supylabel("spread in percentiles: 95 of 100 matches", fontsize=10)
        lines = {
            label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=4, frameon=False)
        figure.savefig(path, facecolor="white", metadata={"Date": None} if path.suffix == ".svg" else {})
        pyplot.close(figure)


def _draw_panel(axes: Axes, cells: list[FrontCell], inks: dict[str, str], marks: dict[str, str]) -> None:
    """The rivals under the first policy of the panel, then evenmatch under each."""
    from matplotlib.ticker import MaxNLocator

    for name, mark in marks.items():
        if name in cells[0]["runs"]:
            _draw_run(axes, cells[0]["runs"][name], name, GREY, mark)
    for cell in cells:
        if OURS in cell["runs"]:
            _draw_run(axes, cell["runs"][OURS], f"evenmatch, {cell['preset']}", inks[cell["preset"]], "o")
    axes.set_xscale("log")
    axes.xaxis.set_ticks(WAIT_TICKS, labels=[f"{tick:g}" for tick in WAIT_TICKS])
    axes.xaxis.set_ticks([], minor=True)
    axes.autoscale()
    axes.margins(0.12)
    axes.set_ylim(0, 1.15 * axes.get_ylim()[1])  # from 0, so that small differences look small
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(color="#d4d4d4", linewidth=0.6)
    axes.tick_params(length=0)


def _draw_run(axes: Axes, figures: FrontCell, label: str, ink: str, mark: str) -> None:
    """A mark at wait p50 and a line to wait p95."""
    half, most, spread = (figures[key]["mean"] for key in ("wait_p50", "wait_p95", "spread_p95"))
    if half is None or not spread:
        return
    half, ours = max(half, WAIT_TICKS[0]), mark == "o"
    axes.plot([half, most], [spread, spread], color=ink, linewidth=2 if ours else 1.2, alpha=0.6)
    fill = "white" if figures["violations"]["mean"] else ink
    axes.plot(half, spread, mark, color=ink, markerfacecolor=fill, markersize=7 if ours else 5, label=label)


if __name__ == "__main__":
    main()
