"""The queue simulator: sliders for a matchmaking policy, and the simulated waits and spreads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from evenmatch.errors import ConflictError, UsageError
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.policy import presets
from evenmatch.web.page_request import PageRequest
from evenmatch.web.view_models import LadderShown

if TYPE_CHECKING:
    from evenmatch.lab.queue.run_result import Run
    from evenmatch.lab.queue.trial import Steps, TrialCrowd


class Slider(NamedTuple):
    """A range input: field name, label, unit, bounds, step and initial value."""

    name: str
    words: str
    unit: str
    low: float
    high: float
    step: float
    first: float


CROWD = (
    Slider("arrivals", "Players who join per second", "", 0.5, 20, 0.5, 5),
    Slider("team_size", "Players in a team", "", 1, 10, 1, 6),
    Slider("strict", "Players whose filter never widens", " %", 0, 100, 5, 25),
    Slider("patience", "Mean patience; 0: they never give up", " s", 0, 600, 10, 0),
)
STEPS = presets()["balanced"].steps
WIDTHS = tuple(
    Slider(f"w{index}", f"Width at step {index + 1}", "", 0, 100, 1, width) for index, (_, width) in enumerate(STEPS)
)
TIMES = tuple(
    Slider(f"t{index}", f"Step {index + 1} after", " s", 1, 600, 1, after)
    for index, (after, _) in enumerate(STEPS)
    if index
)


async def queue(visit: PageRequest) -> Response:
    """Show the sliders and the result of the simulation."""
    values = {slider.name: _value(visit, slider) for slider in (*CROWD, *WIDTHS, *TIMES)}
    runs: list[Run] = []
    busy = ""
    try:
        async with visit.shared.lab_cache.turn():
            runs = await visit.site.work(_simulate, visit, values, within=None)
    except ConflictError as error:
        busy = str(error)
    return await visit.show("lab_queue", lambda: _queue(visit, values, runs, busy))


def _value(visit: PageRequest, slider: Slider) -> float:
    text = visit.asked(slider.name)
    try:
        value = float(text) if text else slider.first
    except ValueError:
        value = float("nan")
    if not slider.low <= value <= slider.high:
        raise UsageError(f"{slider.name} is {text[:20]!r}; expected a number from {slider.low:g} to {slider.high:g}")
    return value


def _simulate(visit: PageRequest, values: Mapping[str, float]) -> list[Run]:
    """Simulate the visitor's policy, then the built-in presets, which are cached."""
    from evenmatch.web import lab_jobs  # noqa: PLC0415 - the lab is imported on first use

    crowd, steps = _trial_of(values)
    runs = [lab_jobs.try_steps(crowd, steps)]
    for name in presets():
        key = (name, crowd)
        run = visit.shared.lab_cache.run(key)
        if run is None:
            run = lab_jobs.try_preset(crowd, name)
            visit.shared.lab_cache.keep(key, run)
        runs.append(run)
    return runs


def _trial_of(values: Mapping[str, float]) -> tuple[TrialCrowd, Steps]:
    from evenmatch.lab.queue.trial import Steps, TrialCrowd  # noqa: PLC0415

    crowd = TrialCrowd(
        values["arrivals"], int(values["team_size"]), values["strict"] / 100.0, values["patience"] or None
    )
    times = (0.0, *(values[slider.name] for slider in TIMES))
    return crowd, Steps(times, tuple(values[slider.name] for slider in WIDTHS))


def _queue(visit: PageRequest, values: Mapping[str, float], runs: list[Run], busy: str) -> Mapping[str, object]:
    shown: dict[str, object] = {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "values": {name: f"{value:g}" for name, value in values.items()},
        "crowd": CROWD,
        "steps": list(zip(WIDTHS, (None, *TIMES), strict=True)),
        "busy": busy,
        "rows": [summary_of(run) for run in runs],
    }
    if not runs:
        return shown | {"verdict": [], "figures": {}, "widening": [], "minutes": 0.0}
    from evenmatch.lab.queue.verdict import verdict  # noqa: PLC0415
    from evenmatch.web import lab_jobs  # noqa: PLC0415

    return shown | {
        "verdict": verdict(runs),
        "figures": lab_jobs.trial_figures(runs),
        "widening": runs[0].policy.steps,
        "minutes": 0.0 if runs[0].scenario is None else runs[0].scenario.minutes,
    }
