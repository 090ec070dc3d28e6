"""evenmatch rebuild: recalculate ratings from the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.cluster_option import OnCluster, connected
from evenmatch.cli.shared.database_options import DATABASE, Db, counted, opened
from evenmatch.cli.shared.output import print_json, printable, working

if TYPE_CHECKING:
    from evenmatch.service.replay.rebuild import RebuildResult


def command(
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="One ladder; otherwise all.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="From the first match on, even if no rebuild is due.")] = False,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Rate a ladder's matches again where that is due: after an interrupted correction or an update of evenmatch.

    Corrections do this by themselves. Reading and recording go on during a rebuild.
    With --cluster each ladder is a task of its own; the database must be PostgreSQL, and workers need EVENMATCH_SECRET.

    [bold]Examples[/bold]

    evenmatch rebuild

    evenmatch rebuild --ladder duel --whole

    evenmatch rebuild --cluster 10.0.0.5:6379 --db postgresql://league@db.example/league
    """
    results: list[dict[str, object]] = []
    for name, rebuilt in _rebuilt(db, ladder, whole) if cluster is None else _on_cluster(cluster, db, ladder, whole):
        done = (
            None if rebuilt is None else {"from": rebuilt.since, "matches": rebuilt.matches, "changed": rebuilt.changed}
        )
        results.append({"ladder": name, "rebuilt": done})
        if not json:
            summary = (
                "no rebuild was due"
                if rebuilt is None
                else f"{counted(rebuilt.matches, 'match', 'matches')} rated again; {rebuilt.changed:,} changed "
                "ratings by other amounts than when they were recorded"
            )
            print(printable(f"ladder {name}: {summary}"))
    if json:
        print_json({"ladders": results})


def _rebuilt(db: str, ladder: str | None, whole: bool) -> Iterator[tuple[str, RebuildResult | None]]:
    """Rebuild one ladder after the other in this process."""
    from evenmatch.service.ladder_heads import positions_of

    with opened(db) as service:
        positions = positions_of(service)
        for name in positions if ladder is None else [ladder]:
            with working(f"rating {name} again", positions.get(name, 0)) as progress:
                rebuilt = service.rebuild(name, whole=whole, progress=progress)
            yield name, rebuilt


def _on_cluster(address: str, db: str, ladder: str | None, whole: bool) -> Iterator[tuple[str, RebuildResult | None]]:
    """Rebuild all ladders, each in a task."""
    from evenmatch.cluster.databases import DatabaseAddress, rebuild_ladders, systems_of

    DatabaseAddress(db)  # raises before anything begins

    with opened(db) as service:
        names = service.names() if ladder is None else [service.ladder(ladder).name]
    with (
        connected(address, systems_of(db)) as cluster,
        working("rating ladders again", len(names)) as progress,
    ):
        rebuilt = rebuild_ladders(cluster, db, names, whole=whole, progress=progress)
    yield from zip(names, rebuilt, strict=True)
