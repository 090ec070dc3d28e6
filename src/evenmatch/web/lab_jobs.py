"""The computations behind the lab pages: from a ladder's matches to findings and figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any, Protocol

from markupsafe import Markup

from evenmatch.calibration import Point
from evenmatch.corrections.ladder_history import LadderHistory, read_history
from evenmatch.corrections.replay import Progress
from evenmatch.errors import InputError, UnknownNameError
from evenmatch.jobs.jobs import Work
from evenmatch.lab import stored_results
from evenmatch.lab.backtests.backtest import backtest
from evenmatch.lab.backtests.report import embed
from evenmatch.lab.fairness.suspects import ladder_suspects
from evenmatch.lab.ladder import charts
from evenmatch.lab.ladder.health import LadderHealth, health, health_findings
from evenmatch.lab.ladder.what_if import what_if
from evenmatch.lab.queue import queue_charts
from evenmatch.lab.queue.runs import Run
from evenmatch.operations.service import Service
from evenmatch.queues.audit import RecentOffer
from evenmatch.queues.experiment_audit import ExperimentAudit
from evenmatch.systems.system import Rules

READING = 0.2  # the share of a job's progress that reading the matches takes
WAITS = 2000  # most parties in the chart of waits

Say = Callable[[str], None]
Figures = Mapping[str, Markup]


class Figure(Protocol):
    """A figure that a page can draw."""

    def to_json(self) -> str:
        """The figure as plotly JSON."""
        ...


HEALTH: Mapping[str, Callable[[LadderHealth], Figure | None]] = {
    "levels": charts.levels,
    "floor": charts.at_floor,
    "troubles": charts.troubles,
    "odds": charts.odds,
    "activity": charts.activity,
    "reliability": charts.reliability,
}
DRAWN: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Figure]]] = {
    "backtest": stored_results.backtest_figures,
    "tuning": stored_results.tuning_figures,
    "what-if": stored_results.what_if_figures,
}


def health_of(service: Service, ladder: str) -> tuple[LadderHealth | None, list[str]]:
    """Return the health of a ladder under its present rules and the findings; None and the reason if there is none."""
    try:
        history = read_history(service.database, ladder)
        measured = health(history.matches, history.rules)
    except InputError as error:
        return None, [str(error)]
    return measured, [*health_findings(measured), *history.notes]


def health_figure(found: LadderHealth, of: str) -> str:
    """Return one figure of a ladder's health as JSON. Raises UnknownNameError; InputError without a floor."""
    if of not in HEALTH:
        raise UnknownNameError("figure of a ladder's health", of, HEALTH)
    figure = HEALTH[of](found)
    if figure is None:
        raise InputError(f"{found.rules.system.name} has no rating floor, so there is no such figure")
    return str(figure.to_json())


def calibration_figure(points: Sequence[Point]) -> Markup:
    """Return the reliability curve of a queue's predictions as JSON for a page."""
    return _embedded(charts.calibration("queue", points))


def experiment_figure(audited: ExperimentAudit) -> Markup | None:
    """Return the differences of two policies as JSON for a page; None: none has an interval yet."""
    rows = [
        queue_charts.RelativeDifference(
            compared.figure.label, apart.value / first, apart.low / first, apart.high / first, compared.better
        )
        for compared in audited.figures
        if (first := compared.first.value) > 0 and not isnan((apart := compared.difference).low)
    ]
    if not rows:
        return None
    return _embedded(queue_charts.relative_differences(rows, audited.experiment.design.worth))


def waits_figure(recent: Sequence[RecentOffer]) -> str:
    """Return the chart of waits of the parties that were recently offered a match, as JSON."""
    waits = [
        charts.PartyWait(offer.made_at, wait, percentile)
        for offer in recent
        for wait, percentile in zip(offer.waits, offer.percentiles, strict=True)
    ]
    return str(charts.waits_over_time(waits[:WAITS]).to_json())


def backtest_work(service: Service, ladder: str, systems: Sequence[str], warm_up: float, say: Say) -> Work:
    """Return a job that backtests these systems on the ladder's history, its own system with its current rules."""

    def work(progress: Progress) -> Mapping[str, object]:
        history, report = _read(service, ladder, progress, say)
        own = history.rules
        by: list[str | Rules] = [own if system == own.system.name else system for system in systems]
        judged = backtest(history.matches, by, warm_up=warm_up, progress=report, workers=1)
        return stored_results.keep_backtest(judged, own.system.name) | {"warnings": list(history.notes)}

    return work


def tuning_work(service: Service, ladder: str, rules: Rules, seconds: float, say: Say) -> Work:
    """Return a job that tunes these rules on the earlier half of the history and judges them on the later half."""

    def work(progress: Progress) -> Mapping[str, object]:
        history, report = _read(service, ladder, progress, say)
        judged = backtest(history.matches, [rules], tune=seconds, progress=report, workers=1)
        return stored_results.keep_tuning(judged, rules) | {"warnings": list(history.notes)}

    return work


def what_if_work(service: Service, ladder: str, then: Rules, say: Say) -> Work:
    """Return a job that compares the ladder's standings under these rules with those under its own."""

    def work(progress: Progress) -> Mapping[str, object]:
        history, report = _read(service, ladder, progress, say)
        compared = what_if(history.matches, history.rules, then, history.settings.standings, report)
        return stored_results.keep_what_if(compared) | {"warnings": list(history.notes)}

    return work


def suspects_work(service: Service, ladder: str, say: Say) -> Work:
    """Return a job that lists the accounts whose play looks like a known kind of cheating."""

    def work(progress: Progress) -> Mapping[str, object]:
        history, report = _read(service, ladder, progress, say)
        compare = partial(report, "comparing with simulated seasons of honest players")
        found = ladder_suspects(history.matches, history.rules, compare)
        return stored_results.keep_suspects(found, history.matches) | {"warnings": list(history.notes)}

    return work


def _read(
    service: Service, ladder: str, progress: Progress, say: Say
) -> tuple[LadderHistory, Callable[[str, float], None]]:
    """A ladder's history, and a function that reports the current step and the share done, 0..1."""
    say("reading the matches")
    history = read_history(service.database, ladder, progress=lambda position: progress(int(READING * position)))

    def report(step: str, share: float) -> None:
        say(step)
        progress(int(history.position * (READING + (1.0 - READING) * share)))

    return history, report


def figures_of(kind: str, result: Mapping[str, Any]) -> Figures:
    """The figures of a job's result, for script elements."""
    return {name: _embedded(figure) for name, figure in DRAWN[kind](result).items()}


def trial_figures(runs: Sequence[Run]) -> Figures:
    """The figures of a simulation, for script elements: wait against spread, and the distribution of waits."""
    drawn = {"evenness": queue_charts.wait_against_evenness(runs), "shares": queue_charts.wait_shares(runs)}
    return {name: _embedded(figure) for name, figure in drawn.items()}


def _embedded(figure: Figure) -> Markup:
    return Markup(embed(json.loads(figure.to_json())))  # `embed` escapes characters that could end the script element
