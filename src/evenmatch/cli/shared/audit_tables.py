"""Tables of a queue's audit: what it predicted of its matches, and what was reported of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenmatch.cli.shared.database_options import counted
from evenmatch.cli.shared.experiment_tables import estimate, print_comparison
from evenmatch.cli.shared.output import note, print_table, printable

if TYPE_CHECKING:
    from evenmatch.service.queries.queue_audit import AuditedGroup, QueueAudit

AUDITED = ("matches", "slope", "Brier score", "stomps, %", "with a quitter, %")


def print_audit(title: str, audited: QueueAudit) -> None:
    """Print the audit of one queue."""
    print(
        printable(
            f"{title}: {counted(audited.formed, 'match', 'matches')} formed, "
            f"{audited.overall.matches} played as predicted, {audited.unplayed} not reported or voided, "
            f"{audited.changed} played by another line-up, {audited.unpredicted} not predictable"
        )
    )
    if audited.waits.parties:
        waits = audited.waits
        figures = (str(waits.parties), estimate(waits.within_estimate, 100, 1), estimate(waits.within_upper, 100, 1))
        print_table("waits told at joining", ("parties", "% below estimate (50)", "% below upper (90)"), [figures])
    if audited.overall.matches:
        print_table("all matches", ("", *AUDITED), [_audited(audited.overall)])
        for by, groups in audited.groups.items():
            print_table(f"by {by}", (by, *AUDITED), [_audited(group) for group in groups])
        if audited.warning is not None:
            note(audited.warning)
    for experiment in audited.experiments:
        print_comparison(experiment)


def _audited(group: AuditedGroup) -> list[str]:
    return [
        group.label,
        str(group.matches),
        estimate(group.slope, 1, 2),
        estimate(group.brier, 1, 3),
        estimate(group.stomps, 100, 1),
        estimate(group.quits, 100, 1),
    ]
