"""The queue simulator of a ladder: its queue now and with a change, which operators can apply or try."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from starlette.responses import Response

from evenmatch.durations import SECOND
from evenmatch.errors import ConflictError, UsageError
from evenmatch.lab.queue.policy_fit import rate_in_words
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.runs import Run
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.trial import CHANGED, NOW, PolicyKnobs, Trial, compare
from evenmatch.lab.queue.verdict import percent, verdict
from evenmatch.policy import Policy, presets
from evenmatch.queues.policy_fits import LEAST_JOINS, QueueArrivals, read_arrivals
from evenmatch.queues.state import LadderOdds
from evenmatch.queues.stored_queues import QueueSetup, find, second_policy
from evenmatch.web import lab_jobs
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.pages.lab import differing_options
from evenmatch.web.texts import Texts
from evenmatch.web.view_models import LadderShown

PRESETS = "presets"  # the query parameter that adds the presets to the comparison
FRESH = 600 * SECOND  # for which the players of a trial stay the same
FEWEST_JOINS = 20  # players who joined in the last day; fewer are not drawn from
FEWEST_MATCHES = 4  # matches that all players of the ladder can fill at once
MATCHES = 100  # latest matches whose times give the arrivals of a ladder without tickets
DEFAULT_SECONDS = 10.0  # between two matches' worth of players, without any record


class Slider(NamedTuple):
    """A range input: field name, label, unit, bounds, step, and the present value."""

    name: str
    words: str
    unit: str
    low: float
    high: float
    step: float
    first: float


class Simulated(NamedTuple):
    """A queue with the visitor's sliders. setup: None, the ladder has no queue;  changed: the policy of the sliders."""

    setups: Mapping[str, QueueSetup]
    setup: QueueSetup | None
    policy: Policy
    sliders: list[Slider]
    values: dict[str, float]
    changed: Policy

    @property
    def asked(self) -> dict[str, str]:
        """The query that shows these sliders."""
        queue = {} if self.setup is None else {"queue": self.setup.name}
        return queue | {name: f"{value:.12g}" for name, value in self.values.items()}


async def queue(visit: PageRequest) -> Response:
    """Show the sliders and the result of the simulation."""
    seen = await visit.site.work(_simulated, visit, visit.typed)
    runs: list[Run] = []
    trial, busy = None, ""
    try:
        async with visit.shared.lab_cache.turn():
            trial, runs = await visit.site.work(_simulate, visit, seen, is_limited=False)
    except ConflictError as error:
        busy = str(error)
    return await visit.show("lab_queue", lambda: _queue(visit, seen, trial, runs, busy))


def _simulated(visit: PageRequest, typed: Mapping[str, str]) -> Simulated:
    setups = {setup.name: setup for setup in visit.site.queue_service.queues(visit.ladder)}
    name = typed.get("queue", "") or next(iter(setups), "")
    setup = find(setups, name) if name else None
    policy = _usual_policy(visit) if setup is None else setup.policy
    sliders = _sliders(visit.texts, policy)
    values = {slider.name: _value(typed, slider) for slider in sliders}
    steps = len(PolicyKnobs.of(policy).times)
    knobs = PolicyKnobs(
        (0.0, *(values[f"t{index}"] for index in range(1, steps))),
        tuple(values[f"w{index}"] for index in range(steps)),
        values["even_spread"],
        values["max_odds"] / 100.0,
    )
    return Simulated(setups, setup, policy, sliders, values, knobs.applied(policy))


def _usual_policy(visit: PageRequest) -> Policy:
    """The balanced policy for the teams of the ladder's latest match, or of its settings."""
    size = visit.reading.view(visit.ladder).settings.team_size
    _, latest, _ = visit.reading.matches(visit.ladder, limit=1)
    teams = 2 if not latest else len(latest[0].sides)
    largest = max((len(side.parts) for match in latest for side in match.sides), default=Policy().team_size)
    return Policy(team_size=largest if size is None else size, teams=teams)


def _sliders(texts: Texts, policy: Policy) -> list[Slider]:
    knobs = PolicyKnobs.of(policy)
    longest = max(600.0, 2 * math.ceil(knobs.times[-1]))
    sliders = [
        Slider("arrivals", texts.text("Players who join, compared with now"), " %", 25, 400, 5, 100),
        Slider(
            "even_spread", texts.text("Spread up to which a match may skip players"), "", 0, 100, 0.1, knobs.even_spread
        ),
        Slider(
            "max_odds", texts.text("Highest chance of winning; 100: no limit"), " %", 50, 100, 1, 100 * knobs.max_odds
        ),
    ]
    for index, (time, width) in enumerate(zip(knobs.times, knobs.widths, strict=True)):
        if index:
            sliders.append(
                Slider(f"t{index}", texts.text("Step %(step)s after", step=index + 1), " s", 1, longest, 1, time)
            )
        sliders.append(
            Slider(f"w{index}", texts.text("Skill range at step %(step)s", step=index + 1), "", 0, 100, 0.1, width)
        )
    return sliders


def _value(typed: Mapping[str, str], slider: Slider) -> float:
    """The value of a slider. Browsers round to its step, so a value within half a step is the present one."""
    text = typed.get(slider.name, "")
    try:
        value = float(text) if text else slider.first
    except ValueError:
        value = math.nan
    if abs(value - slider.first) <= 0.51 * slider.step:
        return slider.first
    if not slider.low <= value <= slider.high:
        raise UsageError(f"{slider.name} is {text[:20]!r}; expected a number from {slider.low:g} to {slider.high:g}")
    return value


def _simulate(visit: PageRequest, seen: Simulated) -> tuple[Trial, list[Run]]:
    """Simulate the visitor's policy and the present one, and the presets if they are asked for."""
    cache, now = visit.shared.lab_cache, visit.site.service.clock()
    key = (visit.ladder, None if seen.setup is None else (seen.setup.name, seen.setup.change), now // FRESH)
    trial = cache.trial(key)
    if trial is None:
        trial = _trial(visit, seen)
        cache.keep(key, trial)
    times = seen.values["arrivals"] / 100.0
    present = trial.cached_run(trial.policy, NOW, times)
    same = seen.changed == seen.policy
    policy = replace(seen.changed, odds=trial.policy.odds)
    runs = [replace(present, name=CHANGED) if same else trial.run(policy, CHANGED, times), present]
    for name in presets() if visit.typed.get(PRESETS) else ():
        preset = replace(second_policy({"preset": name}, seen.policy), odds=trial.policy.odds)
        runs.append(trial.cached_run(preset, name, times))
    return trial, runs


def _trial(visit: PageRequest, seen: Simulated) -> Trial:
    """The players of the queue's last day; if too few joined, the active players of the standings."""
    why = "This ladder has no queue"
    if seen.setup is not None:
        service, name = visit.site.service, seen.setup.name
        arrived = read_arrivals(service, visit.ladder, name)[1]
        if arrived.joins >= FEWEST_JOINS and arrived.arrivals > 0:
            odds = LadderOdds(service.database, visit.ladder, arrived.tickets.player.tolist)
            odds.begin_tick(service.clock())
            policy = replace(seen.policy, odds=odds)
            return Trial(policy, _recorded(arrived), arrived.arrivals, arrived.tickets, Scenario())
        joined = f"Only {arrived.joins} players" if arrived.joins else "Nobody"
        why = f"{joined} joined this queue in the last day"
    return _assumed(visit, seen.policy, why)


def _recorded(arrived: QueueArrivals) -> tuple[str, ...]:
    tickets = arrived.tickets
    sizes = np.diff(tickets.start)
    grouped = float(sizes[sizes > 1].sum() / sizes.sum())
    parties = "all alone" if not grouped else f"{percent(grouped)} of them in parties of up to {sizes.max()}"
    told = [
        f"Taken from the records of the last day: {arrived.joins:,} players joined this queue, {parties}; "
        f"{rate_in_words(arrived.arrivals)} in a typical hour. {percent(float(1 - tickets.loose.mean()))} of them have "
        "a filter that never widens. They join with the levels and filters that they had.",
        "Assumed: they join at random times, and nobody gives up.",
    ]
    few = "So few players joined that the result is a rough guide."
    return (*told, *([few] if arrived.joins < LEAST_JOINS else []))


def _assumed(visit: PageRequest, policy: Policy, why: str) -> Trial:
    board = visit.reading.view(visit.ladder).snapshot
    ratings = board.board.rating[board.listed]
    _, matches, _ = visit.reading.matches(visit.ladder, limit=MATCHES)
    span = (matches[0].played_at - matches[-1].played_at) / SECOND if matches else 0.0
    played = sum(len(side.parts) for match in matches[:-1] for side in match.sides)
    rate = min(max(played / span if span > 0 else policy.players / DEFAULT_SECONDS, 1e-3), 1e3)
    taken, scenario = [], Scenario()
    if len(ratings) >= FEWEST_MATCHES * policy.players:
        spread = float(ratings.std())
        scenario = Scenario(
            players=len(ratings),
            skill_mean=float(ratings.mean()),
            skill_sd=spread,
            rating_error=min(scenario.rating_error, spread / 4),
        )
        taken.append(f"{len(ratings):,} active players with ratings as widely spread as in the standings")
    if span > 0:
        taken.append(f"{rate_in_words(rate)}, as in the latest {len(matches):,} matches")
    drawn = f"Taken from the records: {'; '.join(taken)}." if taken else "There are no records to start from."
    assumed = [] if span > 0 else [f"{rate_in_words(rate)} join"]
    assumed += ["everybody joins alone", f"{percent(scenario.share_strict)} have a filter that never widens"]
    return Trial(
        policy, (f"{why}. {drawn}", f"Assumed: {', '.join(assumed)}, and nobody gives up."), rate, None, scenario
    )


def _queue(
    visit: PageRequest, seen: Simulated, trial: Trial | None, runs: list[Run], busy: str
) -> Mapping[str, object]:
    shown_values: dict[str, object] = {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "queues": list(seen.setups),
        "queue": seen.setup,
        "policy": seen.policy,
        "values": {name: f"{value:.12g}" for name, value in seen.values.items()},
        "sliders": seen.sliders,
        "asked": seen.asked,
        "changes": differing_options(seen.policy, seen.changed),
        "with_presets": bool(visit.typed.get(PRESETS)),
        "busy": busy,
        "rows": [summary_of(run) for run in runs],
    }
    if trial is None:
        return shown_values
    length, tick = trial.length(seen.values["arrivals"] / 100.0)
    return shown_values | {
        "told": trial.told,
        "findings": compare(runs[1], runs[0]),
        "verdict": verdict(runs),
        "figures": lab_jobs.trial_figures(runs),
        "minutes": length / 60.0,
        "tick": tick,
    }


async def change_form(visit: PageRequest) -> Response:
    """Show what applying the sliders to the queue changes, and ask whether to apply or to try it."""
    return await visit.show("lab_queue_change", lambda: _change_form(visit))


def _change_form(visit: PageRequest) -> Mapping[str, object]:
    seen = _simulated(visit, visit.typed)
    counts = {} if seen.setup is None else visit.site.queue_service.counts(visit.ladder)
    waiting = counts.get(seen.setup.name) if seen.setup is not None else None
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "queue": seen.setup,
        "changes": differing_options(seen.policy, seen.changed),
        "asked": seen.asked,
        "waiting": 0 if waiting is None else waiting.players,
        "form": visit.form_here(),
    }


async def change(visit: PageRequest) -> Response:
    """Give the queue the policy of the sliders, or let it share the queue as an experiment."""
    form = await visit.form()

    def apply() -> str:
        seen = _simulated(visit, form)
        if seen.setup is None:
            raise ConflictError(visit.text("this ladder has no queue to change"))
        name, policy = seen.setup.name, seen.changed.to_data()
        if form.get("seen") != str(seen.setup.change):
            raise ConflictError(
                visit.text(
                    "queue %(name)s was changed since you saw this page; check the values and send it again", name=name
                )
            )
        changed = {option: policy[option] for option, _, _ in differing_options(seen.policy, seen.changed)}
        if form.get("do") == "experiment":
            entry = visit.audit_entry("experiment.started", visit.ladder, name, {"policy": changed})
            visit.site.queue_service.noting(entry).start_experiment(visit.ladder, name, policy, {})
            return visit.text(
                "The experiment has begun: your change and the present policy take turns in queue %(name)s.",
                name=name[:60],
            )
        entry = visit.audit_entry("queue.set", visit.ladder, name, {"policy": changed})
        visit.site.queue_service.noting(entry).set_queue(visit.ladder, name, policy, seen.setup.rules)
        return visit.text("Queue %(name)s has the new policy. Everybody who waits keeps their place.", name=name[:60])

    notice = await visit.site.change(visit.ladder, apply)
    name = form.get("queue", "")
    page = "audit" if form.get("do") == "experiment" else "queue"
    return visit.go(address("ladders", visit.ladder, "lab", page, queue=name), notice)
