"""evenmatch replay-queue: a recorded queue once more, under its own policy and under others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch import __version__
from evenmatch.cli import options, policies, queue_runs
from evenmatch.cli.output import working

if TYPE_CHECKING:
    from evenmatch.lab.queue_reading import Journal

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
        from evenmatch.lab.queue_replay import first_difference, replay

        recorded = load_journal(journal)
    name = recorded.name[:LONGEST] if recorded.name.strip() else "recorded"
    if name in others:
        name = f"{name} (recorded)"
    plan = {name: recorded.policy} | others
    minutes = len(recorded.ticks) / 60.0
    with queue_runs.watching(len(plan), minutes) as watch:
        runs = [replay(recorded, one, name=called, progress=watch(at)) for at, (called, one) in enumerate(plan.items())]
    title = f"{journal.name}: {len(recorded.ticks):,} recorded ticks"
    differs = first_difference(recorded, runs[0])
    queue_runs.tell(
        *(runs, title),
        report=report,
        json=json,
        command=queue_runs.told_command(),
        notes=[_sameness(recorded, differs)],
        more={"first_differing_tick": None if differs is None else differs + 1},
    )


def _sameness(journal: Journal, at: int | None) -> str:
    if at is None:
        return f"Under its own policy all decisions are the same, in {len(journal.ticks):,} ticks."
    since = (journal.ticks[at].now - journal.ticks[0].now) / 1e6
    by = "" if journal.version == __version__ else f"by evenmatch {journal.version}, not {__version__}, or "
    return (
        f"Under its own policy the decisions differ from tick {at + 1:,} on, {since:,.0f} s after the first: it was "
        f"recorded {by}with another matchmaker, or was changed since."
    )
