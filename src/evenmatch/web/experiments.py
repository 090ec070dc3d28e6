"""What the lab's pages have done in threads and jobs: ladders' matches in, findings and figures as JSON out.

It loads the whole lab: import it where somebody asks for that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from markupsafe import Markup

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.lab import health_charts, kept, queue_charts, queue_trial, wait_charts
from evenmatch.lab.backtest import backtest
from evenmatch.lab.health import Health, health
from evenmatch.lab.health_findings import health_findings
from evenmatch.lab.queue_run import Run
from evenmatch.lab.report import embed
from evenmatch.lab.what_if import what_if
from evenmatch.service.histories import LadderHistory, read_history
from evenmatch.service.jobs import Work
from evenmatch.service.queueing.recently import Recent
from evenmatch.service.replaying import Progress
from evenmatch.service.service import Service
from evenmatch.systems.system import Rules

READING = 0.2  # share of the work that is reading
WAITS = 2000  # parties in the picture of waits

Say = Callable[[str], None]
Figures = Mapping[str, Markup]


class Figure(Protocol):
    """A figure that a page can draw."""

    def to_json(self) -> str:
        """It as JSON."""
        ...


HEALTH: Mapping[str, Callable[[Health], Figure | None]] = {
    "levels": health_charts.levels,
    "floor": health_charts.at_floor,
    "troubles": health_charts.troubles,
    "odds": health_charts.odds,
    "activity": health_charts.activity,
    "reliability": health_charts.reliability,
}
DRAWN: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Figure]]] = {
    "backtest": kept.backtest_figures,
    "tuning": kept.tuning_figures,
    "what-if": kept.what_if_figures,
}


def health_of(service: Service, ladder: str) -> tuple[Health | None, list[str]]:
    """The health of a ladder by its present rules and what to say of it; None and why where there is none."""
    try:
        found = read_history(service.database, ladder)
        measured = health(found.matches, found.rules)
    except InputError as error:
        return None, [str(error)]
    return measured, [*health_findings(measured), *found.notes]


def health_figure(found: Health, of: str) -> str:
    """One of the figures of a ladder's health. Raises UnknownNameError."""
    if of not in HEALTH:
        raise UnknownNameError("figure of a ladder's health", of, HEALTH)
    figure = HEALTH[of](found)
    if figure is None:
        raise InputError(f"{found.rules.system.name} has no floor; accepted is a system that has one")
    return str(figure.to_json())


def waits_figure(recent: Sequence[Recent]) -> str:
    """How long the parties waited who were offered a match of late."""
    waits = [
        wait_charts.Waited(offer.made_at, wait, percentile)
        for offer in recent
        for wait, percentile in zip(offer.waits, offer.percentiles, strict=True)
    ]
    return str(wait_charts.waits_over_time(waits[:WAITS]).to_json())


def backtest_work(service: Service, ladder: str, systems: Sequence[str], warm_up: float, say: Say) -> Work:
    """A backtest of the ladder's own history, its present rules besides."""

    def work(progress: Progress) -> Mapping[str, object]:
        found, tell = _read(service, ladder, progress, say)
        by: list[str | Rules] = [found.rules if one == found.rules.system.name else one for one in systems]
        judged = backtest(found.matches, by, warm_up=warm_up, progress=tell, workers=1)
        return kept.keep_backtest(judged) | {"warnings": list(found.notes)}

    return work


def tuning_work(service: Service, ladder: str, rules: Rules, seconds: float, say: Say) -> Work:
    """Tuning on the earlier half of the ladder's history, judged on the later one against these rules."""

    def work(progress: Progress) -> Mapping[str, object]:
        found, tell = _read(service, ladder, progress, say)
        judged = backtest(found.matches, [rules], tune=seconds, progress=tell, workers=1)
        return kept.keep_tuning(judged, rules) | {"warnings": list(found.notes)}

    return work


def what_if_work(service: Service, ladder: str, then: Rules, say: Say) -> Work:
    """The ladder's standings by these rules beside those by its own."""

    def work(progress: Progress) -> Mapping[str, object]:
        found, tell = _read(service, ladder, progress, say)
        tell("rating by both rules", 0.1)
        compared = what_if(found.matches, found.rules, then, found.settings.standings)
        return kept.keep_what_if(compared) | {"warnings": list(found.notes)}

    return work


def _read(
    service: Service, ladder: str, progress: Progress, say: Say
) -> tuple[LadderHistory, Callable[[str, float], None]]:
    """A ladder's history, and a function to call with what is done and the share of it."""
    say("reading the matches")
    found = read_history(service.database, ladder, progress=lambda position: progress(int(READING * position)))

    def tell(what: str, share: float) -> None:
        say(what)
        progress(int(found.position * (READING + (1.0 - READING) * share)))

    return found, tell


def figures_of(kind: str, result: Mapping[str, Any]) -> Figures:
    """The figures of what a job found, for script elements."""
    return {name: _embedded(figure) for name, figure in DRAWN[kind](result).items()}


def trial_figures(runs: Sequence[Run]) -> Figures:
    """Wait against evenness, and the waits of everybody."""
    drawn = {"evenness": queue_charts.wait_against_evenness(runs), "shares": queue_charts.wait_shares(runs)}
    return {name: _embedded(figure) for name, figure in drawn.items()}


try_steps, try_preset = queue_trial.try_steps, queue_trial.try_preset


def _embedded(figure: Figure) -> Markup:
    return Markup(embed(json.loads(figure.to_json())))  # it holds no character that ends a script
