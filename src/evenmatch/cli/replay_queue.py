"""evenmatch replay-queue: a recorded queue once more, under its own policy and under others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options, policies, queue_runs
from evenmatch.cli.output import working

if TYPE_CHECKING:
    from evenmatch.lab.queue_reading import Journal
    from evenmatch.lab.queue_run import Run

LONGEST = 40  # letters of a recorded name


def command(
    journal: Annotated[
        Path, typer.Argument(metavar="JOURNAL", help="A journal of a queue, as of simulate-queue --journal.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME|FILE",
            help="Another policy to replay it under, a preset or file; repeatable.",
        ),
    ] = None,
    report: queue_runs.Report = None,
    json: options.Json = False,
) -> None:
    """Replay a recorded queue: what another policy would have made of the same players.

    The recorded joins and cancels come as they came. Under the recorded policy all decisions are the same, and this
    says so, or at which tick they first differ, as after a change of the matchmaker.

    [bold]Examples[/bold]

    evenmatch simulate-queue --journal queue.jsonl

    evenmatch replay-queue queue.jsonl --policy quick --policy mine.toml
    """
    queue_runs.check_files(report, journal, *(Path(one) for one in policy or []))
    others = policies.gather(policy or [], None, None)
    with working(f"reading {journal.name}"):
        from evenmatch.lab.queue_reading import load_journal
        from evenmatch.lab.queue_replay import replay

        recorded = load_journal(journal)
    name = recorded.name[:LONGEST] if recorded.name.strip() else "recorded"
    if name in others:
        name = f"{name} (recorded)"
    plan = {name: recorded.policy} | others
    minutes = len(recorded.ticks) / 60.0
    with queue_runs.watching(len(plan), minutes) as watch:
        runs = [replay(recorded, one, name=called, progress=watch(at)) for at, (called, one) in enumerate(plan.items())]
    title = f"{journal.name}: {len(recorded.ticks):,} recorded ticks"
    queue_runs.tell(
        runs, title, report=report, json=json, command=queue_runs.told_command(), notes=[_sameness(recorded, runs[0])]
    )


def _sameness(journal: Journal, run: Run) -> str:
    from evenmatch.lab.queue_replay import first_difference

    at = first_difference(journal, run)
    if at is None:
        return f"Under its own policy all decisions are the same, in {len(journal.ticks):,} ticks."
    since = (journal.ticks[at].now - journal.ticks[0].now) / 1e6
    return (
        f"Under its own policy the decisions differ from tick {at + 1:,} on, {since:,.0f} s after the first: it was "
        f"recorded by evenmatch {journal.version}, another matchmaker, or was changed since."
    )
