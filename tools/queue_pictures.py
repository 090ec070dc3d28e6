"""Draw the pictures of docs/matchmaking.md from simulated queues: `python tools/queue_pictures.py`, some minutes.

They are docs/matchmaking-wait.svg, -deciles.svg and -law.svg. The same code draws the same bytes on one machine. What
the third one shows is printed too, as the rows of the page's table: `--law` draws it alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from benchmarks.rivals import others
from matplotlib import pyplot, rcParams

from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.runs import Run
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking import Policy, presets, propose
from queue_picture import INKS, draw_wait_against_evenness, draw_wait_by_decile

DOCS = Path(__file__).resolve().parents[1] / "docs"
ARRIVALS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # players a second
PLAYERS = 3_000  # who come in a run at least, so that a slow queue is watched for longer
SHORTEST = 20.0  # minutes
TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Point(NamedTuple):
    """What a queue with so many arrivals a second comes to, on average."""

    arrivals: float
    wait: float
    spread: float

    @property
    def product(self) -> float:
        """What the law says is about constant."""
        return self.arrivals * self.wait * self.spread / 100


def main() -> None:
    """Simulate, draw, and print the third picture's numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=DOCS, help="where to write them")
    parser.add_argument("--law", action="store_true", help="the third one alone")
    given = parser.parse_args()
    if not given.law:
        ours = [simulate(Scenario(), propose, policy, name=name) for name, policy in presets().items()]
        theirs = [simulate(Scenario(), other.propose, Policy(), name=name) for name, other in others().items()]
        draw_wait_against_evenness([*ours, *theirs], given.folder / "matchmaking-wait.svg")
        draw_wait_by_decile(ours, given.folder / "matchmaking-deciles.svg")
    loose = [_point(arrivals, 0.0, Policy(overdue_after=None)) for arrivals in ARRIVALS]
    mixed = [_point(arrivals, 0.25, Policy()) for arrivals in ARRIVALS]
    draw_law(loose, mixed, given.folder / "matchmaking-law.svg")
    for one, other in zip(loose, mixed, strict=True):
        cells = [f"{point.wait:.0f} s | {point.spread:.1f} | {point.product:.1f}" for point in (one, other)]
        print(f"| {one.arrivals:g} | {' | '.join(cells)} |")


def _point(arrivals: float, strict: float, policy: Policy) -> Point:
    """6v6 with so many arrivals, of whom this share is strict."""
    minutes = max(SHORTEST, PLAYERS / arrivals / 60)
    scenario = Scenario(arrivals=arrivals, minutes=minutes, share_strict=strict)
    run = simulate(scenario, propose, policy, name=f"{arrivals:g}")
    return Point(arrivals, _mean_wait(run), float(run.worth.spread.mean()))


def _mean_wait(run: Run) -> float:
    wait = summary_of(run)["wait_mean"]
    assert isinstance(wait, float)
    return wait


def draw_law(loose: list[Point], mixed: list[Point], path: Path) -> None:
    """Draw mean wait, mean spread and their product with the arrivals where all are loose, and the product else."""
    pyplot.switch_backend("agg")
    rcParams["svg.hashsalt"] = "evenmatch"
    arrivals = [point.arrivals for point in loose]
    lines = (  # name, values, mark, dash; and where the name stands: at which point, how far from it, on which side
        ("mean wait in seconds", [point.wait for point in loose], "o", "solid", 0, (8, 5), "left"),
        ("mean spread in percentiles", [point.spread for point in loose], "s", "solid", 5, (-8, -15), "right"),
        ("arrivals × wait × spread / 100", [point.product for point in loose], "D", "solid", 0, (0, -18), "left"),
        ("the same with strict and overdue players", [p.product for p in mixed], "D", "dashed", 0, (8, 5), "left"),
    )
    with pyplot.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
        for (name, values, mark, dash, at, away, side), ink in zip(lines, (*INKS[:3], INKS[2]), strict=True):
            axes.plot(arrivals, values, marker=mark, linestyle=dash, color=ink, linewidth=1.6)
            spot = (arrivals[at], values[at])
            axes.annotate(name, spot, away, textcoords="offset points", ha=side, color=ink)
        for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            scale("log")
            axis.set_ticks(TICKS, labels=[f"{one:g}" for one in TICKS])
            axis.set_ticks([], minor=True)
        axes.set_xlim(arrivals[0] * 0.85, arrivals[-1] * 1.15)
        axes.set_ylim(1, max(lines[0][1]) * 2)
        axes.set_title("Fewer players: longer waits and wider matches", loc="left", fontweight="bold")
        axes.grid(color="#d4d4d4", linewidth=0.6)
        axes.tick_params(length=0)
        axes.set_xlabel("arrivals: players a second")
        figure.savefig(path, facecolor="white", metadata={"Date": None})
        pyplot.close(figure)


if __name__ == "__main__":
    main()
