"""Report of simulated or replayed queues: one self-contained HTML file in which all names are escaped."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenmatch.errors import needing
from evenmatch.lab.display_names import plain
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.runs import Run
from evenmatch.lab.queue.verdict import habits, percent, seconds, verdict
from evenmatch.options import options_of
from evenmatch.policy import Policy


def facts(run: Run) -> list[tuple[str, str]]:
    """Labels and values of teams, arrivals and scenario."""
    policy, scenario = run.policy, run.scenario
    shape = f"{policy.teams} of {policy.team_size}" if policy.team_size > 1 else f"{policy.teams} players, each alone"
    joins, players = int(run.sizes.sum()), len(np.unique(run.tickets.player))
    listed = [("teams", shape), ("players who joined", f"{players:,}")]
    if joins > players:
        listed.append(("joins, with repeated ones", f"{joins:,}"))
    if scenario is None:
        return [*listed, ("ticks", f"{len(run.ticks):,}")]
    rate = "as recorded" if scenario.kind == "recorded" else f"{scenario.arrivals:g} a second ({scenario.kind})"
    return [
        *listed,
        ("arrivals", rate),
        ("minutes", f"{scenario.minutes:g}"),
        ("strict", f"{percent(scenario.share_strict)}, ±{scenario.strict_within:g} percentiles"),
        ("loose at first", f"±{scenario.loose_within:g} percentiles"),
        ("rating error", f"{scenario.rating_error:g} points"),
        *habits(scenario),
        ("seed", str(scenario.seed)),
    ]


with needing("lab", "a report"):
    import jinja2
    from plotly.offline import get_plotlyjs

    from evenmatch.lab import charts
    from evenmatch.lab.backtests.report import PACKAGES, embed, whole
    from evenmatch.lab.queue import queue_charts

LONGEST = 40  # longest displayed name


class RunRow(NamedTuple):
    """A run in the table: name, line style, figures."""

    name: str
    look: charts.LineStyle
    figures: Mapping[str, Any]


class SharedReportParts(NamedTuple):
    """Parts of the backtest report shared by all reports: macros, style and script."""

    macros: str
    style: str
    script: str


def write_queue_report(
    runs: Sequence[Run], path: Path, *, title: str, command: str = "", notes: Sequence[str] = ()
) -> None:
    """Write the report atomically. Raises UsageError if the path cannot be written."""
    with whole(path) as file:
        file.write(render(runs, title=title, command=command, notes=notes).encode())


def render(runs: Sequence[Run], *, title: str, command: str, notes: Sequence[str]) -> str:
    """Render the page; `notes` follow the verdict, `command` is shown as the way to repeat the run."""
    shared = _shared_parts()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"plain": plain, "seconds": seconds, "percent": percent}
    template = resources.files("evenmatch.lab").joinpath("queue_report.html.jinja").read_text("utf-8")
    figures = _figures(runs)
    embedded = embed({name: json.loads(figure.to_json()) for name, figure in figures.items()})
    look = charts.line_styles([run.name for run in runs])
    sentences = verdict(runs)
    return environment.from_string(shared.macros + template).render(
        title=plain(title, 120),
        facts=[(what, plain(value, 120)) for what, value in facts(runs[0])],
        verdict=[plain(sentence) for sentence in sentences],
        notes=[plain(note) for note in notes],
        rows=[RunRow(run.name, look[run.name], summary_of(run)) for run in runs],
        names=", ".join(plain(run.name, LONGEST) for run in runs),
        drawn=set(figures),
        policies=_policies(runs),
        versions={name: metadata.version(name) for name in PACKAGES} | {"Python": platform.python_version()},
        command=plain(command),
        figures=embedded,
        plotly=get_plotlyjs(),
        nonce=hashlib.sha256((title + embedded).encode()).hexdigest()[:32],  # a name cannot contain a digest of itself
        style=shared.style,
        script=shared.script,
        few=charts.FEW,
        shown_at_first=charts.SHOWN,
    )


def _shared_parts() -> SharedReportParts:
    """Macros, style and script taken from the template of the backtest report."""
    page = resources.files("evenmatch.lab").joinpath("report.html.jinja").read_text("utf-8")
    macros = page.partition("<!doctype html>")[0]
    style = page.partition("<style>")[2].partition("</style>")[0]
    script = page.rpartition('<script nonce="{{ nonce }}">')[2].partition("</script>")[0]
    return SharedReportParts(macros, style, script)


def _figures(runs: Sequence[Run]) -> dict[str, Any]:
    """Figures by name; those named `decile-…` share one place in the page."""
    figures = {"queue": queue_charts.queue_length(runs)}
    if not any(len(run.matches) for run in runs):
        return figures
    figures |= {
        "evenness": queue_charts.wait_against_evenness(runs),
        "waits": queue_charts.wait_shares(runs),
        "decile-95": queue_charts.wait_by_decile(runs, 95),
        "decile-50": queue_charts.wait_by_decile(runs, 50),
    }
    if any((run.sizes > 1).any() for run in runs):
        figures["party"] = queue_charts.wait_by_party_size(runs)
    if any(summary_of(run)["realised_45_55"] is not None for run in runs):
        figures["odds"] = queue_charts.true_odds(runs)
    if (drawn := queue_charts.odds_chart(runs)) is not None:
        figures["foretold"] = drawn
    return figures


def _policies(runs: Sequence[Run]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Options with values and effects of each distinct policy, under the name of its first run."""
    effects = {name: option.meaning for name, option in options_of(Policy).items()}
    known: list[Policy] = []
    listed = []
    for run in runs:
        if run.policy not in known:
            known.append(run.policy)
            values = run.policy.to_data() | {"attributes": _attributes(run.policy)}
            listed.append((run.name, [(name, _shown(value), effects[name]) for name, value in values.items()]))
    return listed


def _attributes(policy: Policy) -> str:
    listed = []
    for name, attribute in policy.attributes.items():
        worth = "" if attribute.worth is None else f", worth {attribute.worth:g} s"
        listed.append(f"{name} ({attribute.kind} of {', '.join(attribute.values)}{worth})")
    return ", ".join(listed) or "none"


def _shown(value: object) -> str:
    if isinstance(value, list):
        names = [item if isinstance(item, str) else f"{item[1]:g} from {item[0]:g} s" for item in value]
        return ", ".join(names) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
