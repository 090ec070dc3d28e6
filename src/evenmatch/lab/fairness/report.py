"""Report of an audit: one self-contained HTML file without scripts, whose names are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from evenmatch.errors import needing
from evenmatch.lab import behaviours
from evenmatch.lab.display_names import plain
from evenmatch.lab.fairness.audit import Audit, Cell, Contestant

with needing("lab", "a report"):
    import jinja2

    from evenmatch.lab.backtests.report import whole

FULL = 25.0  # percentiles gained or lost that give a cell its full colour


class HeatCell(NamedTuple):
    """A cell of the heat map: its colour as a share of the full one, whether it is beyond chance, and its anchor."""

    cell: Cell
    share: float
    is_sure: bool
    anchor: str


def write_audit_report(audit: Audit, path: Path, *, command: str = "") -> None:
    """Write the report atomically. Raises UsageError if the path cannot be written."""
    with whole(path) as file:
        file.write(render(audit, command=command).encode())


def render(audit: Audit, *, command: str) -> str:
    """Render the page; `command` is shown as the way to repeat the audit."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["plain"] = plain
    folder = resources.files("evenmatch.lab")
    style = folder.joinpath("report.html.jinja").read_text("utf-8").partition("<style>")[2].partition("</style>")[0]
    template = folder.joinpath("fairness_report.html.jinja").read_text("utf-8")
    names = audit.plan.behaviours
    return environment.from_string(template).render(
        style=style,
        contestants=[str(contestant) for contestant in audit.plan.contestants],
        rows=[(behaviours.find(name), heat_row(audit, name)) for name in names],
        titles={name: behaviours.find(name).title for name in names},
        worst=worst_by_contestant(audit),
        measured=len(audit.cells),
        plan=audit.plan,
        command=plain(command),
    )


def heat_row(audit: Audit, behaviour: str) -> list[HeatCell | None]:
    """One behaviour under every contestant; None where the system does not rate the behaviour's games."""
    row: list[HeatCell | None] = []
    for index, contestant in enumerate(audit.plan.contestants):
        cell = audit.cell(contestant, behaviour)
        if cell is None:
            row.append(None)
            continue
        share = max(-1.0, min(1.0, cell.percentile.mean / FULL))
        is_sure = cell.percentile.is_gain or cell.percentile.is_loss
        row.append(HeatCell(cell, share, is_sure, f"cell-{audit.plan.behaviours.index(behaviour)}-{index}"))
    return row


def worst_by_contestant(audit: Audit) -> Mapping[Contestant, list[Cell]]:
    """For each contestant the behaviours that gain by more than chance, the most profitable first."""
    gains = sorted((c for c in audit.cells if c.percentile.is_gain), key=lambda c: -c.percentile.mean)
    return {
        contestant: [cell for cell in gains if cell.contestant == contestant] for contestant in audit.plan.contestants
    }
