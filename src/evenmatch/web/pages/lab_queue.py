"""Sliders for a matchmaker's policy, and what a simulated queue makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from evenmatch.errors import ConflictError, UsageError
from evenmatch.matchmaking.policy import presets
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import Visit

if TYPE_CHECKING:
    from evenmatch.lab.queue_run import Run
    from evenmatch.lab.queue_trial import Crowd, Steps


class Slider(NamedTuple):
    """A number that can be pulled: its name, what it says, unit, bounds, step, and its value at first."""

    name: str
    words: str
    unit: str
    low: float
    high: float
    step: float
    first: float


CROWD = (
    Slider("arrivals", "Players who come in a second", "", 0.5, 20, 0.5, 5),
    Slider("team_size", "Players of a team", "", 1, 10, 1, 6),
    Slider("strict", "Share who never widen", " %", 0, 100, 5, 25),
    Slider("patience", "Mean patience; 0: they never give up", " s", 0, 600, 10, 0),
)
STEPS = presets()["balanced"].steps
WIDTHS = tuple(Slider(f"w{at}", f"Width at step {at + 1}", "", 0, 100, 1, width) for at, (_, width) in enumerate(STEPS))
TIMES = tuple(
    Slider(f"t{at}", f"Step {at + 1} after", " s", 1, 600, 1, after) for at, (after, _) in enumerate(STEPS) if at
)


async def queue(visit: Visit) -> Response:
    """The sliders and the picture."""
    values = {one.name: _value(visit, one) for one in (*CROWD, *WIDTHS, *TIMES)}
    runs: list[Run] = []
    busy = ""
    try:
        async with visit.shared.bench.turn():
            runs = await visit.site.work(_simulate, visit, values)
    except ConflictError as error:
        busy = str(error)
    return await visit.show("lab_queue", lambda: _queue(visit, values, runs, busy))


def _value(visit: Visit, slider: Slider) -> float:
    text = visit.asked(slider.name)
    try:
        value = float(text) if text else slider.first
    except ValueError:
        value = float("nan")
    if not slider.low <= value <= slider.high:
        raise UsageError(f"{slider.name} is {text[:20]!r}; accepted is a number from {slider.low:g} to {slider.high:g}")
    return value


def _simulate(visit: Visit, values: Mapping[str, float]) -> list[Run]:
    """The visitor's policy, then those that ship, which are kept for the next time."""
    from evenmatch.web import experiments  # noqa: PLC0415 - the lab is loaded where somebody looks into it

    crowd, steps = _asked(values)
    runs = [experiments.try_steps(crowd, steps)]
    for name in presets():
        key = (name, crowd)
        run = visit.shared.bench.run(key)
        if run is None:
            run = experiments.try_preset(crowd, name)
            visit.shared.bench.keep(key, run)
        runs.append(run)
    return runs


def _asked(values: Mapping[str, float]) -> tuple[Crowd, Steps]:
    from evenmatch.lab.queue_trial import Crowd, Steps  # noqa: PLC0415

    crowd = Crowd(values["arrivals"], int(values["team_size"]), values["strict"] / 100.0, values["patience"] or None)
    times = (0.0, *(values[one.name] for one in TIMES))
    return crowd, Steps(times, tuple(values[one.name] for one in WIDTHS))


def _queue(visit: Visit, values: Mapping[str, float], runs: list[Run], busy: str) -> Mapping[str, object]:
    shown: dict[str, object] = {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "values": {name: f"{value:g}" for name, value in values.items()},
        "crowd": CROWD,
        "steps": list(zip(WIDTHS, (None, *TIMES), strict=True)),
        "busy": busy,
        "rows": [run.summary() for run in runs],
    }
    if not runs:
        return shown | {"verdict": [], "figures": {}, "widening": [], "minutes": 0.0}
    from evenmatch.lab.queue_verdict import verdict  # noqa: PLC0415
    from evenmatch.web import experiments  # noqa: PLC0415

    return shown | {
        "verdict": verdict(runs),
        "figures": experiments.trial_figures(runs),
        "widening": runs[0].policy.steps,
        "minutes": 0.0 if runs[0].scenario is None else runs[0].scenario.minutes,
    }
