"""evenmatch replay-queue: replay a recorded queue under its own and other policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch import __version__
from evenmatch.cli import policies
from evenmatch.cli.shared import options, queue_runs
from evenmatch.cli.shared.output import working

if TYPE_CHECKING:
    from evenmatch.lab.queue.journal import QueueJournal


LONGEST = 40  # characters shown of a recorded name


def command(
    journal: Annotated[
        Path, typer.Argument(metavar="JOURNAL", help="A queue journal, written by simulate-queue --journal.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME|FILE",
            help="An additional policy to replay it with, a preset or file; repeatable.",
        ),
    ] = None,
    report: queue_runs.Report = None,
    json: options.Json = False,
) -> None:
    """Replay a recorded queue, to compare what other policies would have done with the same players.

    Joins and cancels happen as recorded. Under the recorded policy all decisions should be the same; the output says
    so, or names the first tick at which they differ, for example after a change of the matchmaker.

    [bold]Examples[/bold]

    evenmatch simulate-queue --journal queue.jsonl

    evenmatch replay-queue queue.jsonl --policy quick --policy mine.toml
    """
    queue_runs.check_files(report, journal, *(Path(name) for name in policy or []))
    others = policies.policies_of(policy or [], None, None)
    with working(f"reading {journal.name}"):
        from evenmatch.lab.queue.journal import load_journal
        from evenmatch.lab.queue.simulation import first_difference, replay

        recorded = load_journal(journal)
    name = recorded.name[:LONGEST] if recorded.name.strip() else "recorded"
    if name in others:
        name = f"{name} (recorded)"
    plan = {name: recorded.policy} | others
    minutes = len(recorded.ticks) / 60.0
    with queue_runs.watching(len(plan), minutes) as watch:
        runs = [
            replay(recorded, current, name=called, progress=watch(index))
            for index, (called, current) in enumerate(plan.items())
        ]
    title = f"{journal.name}: {len(recorded.ticks):,} recorded ticks"
    differs = first_difference(recorded, runs[0])
    queue_runs.tell(
        *(runs, title),
        report=report,
        json=json,
        command=queue_runs.repeat_command(),
        notes=[_comparison(recorded, differs)],
        more={"first_differing_tick": None if differs is None else differs + 1},
    )


def _comparison(journal: QueueJournal, tick: int | None) -> str:
    if tick is None:
        return f"Under its own policy all decisions are the same, in {len(journal.ticks):,} ticks."
    since = (journal.ticks[tick].now - journal.ticks[0].now) / 1e6
    by = "" if journal.version == __version__ else f"by evenmatch {journal.version}, not {__version__}, or "
    return (
        f"Under its own policy the decisions differ from tick {tick + 1:,} on, {since:,.0f} s after the first: it was "
        f"recorded {by}with another matchmaker, or was changed since."
    )
