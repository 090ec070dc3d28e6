"""evenmatch rebuild: recalculate ratings from the ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, counted, opened
from evenmatch.cli.shared.output import print_json, printable, working


def command(
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="One ladder; otherwise all.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="From the first match on, even if no rebuild is due.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Rate a ladder's matches again where that is due: after an interrupted correction or an update of evenmatch.

    Corrections do this by themselves. Reading and recording go on during a rebuild.

    [bold]Examples[/bold]

    evenmatch rebuild

    evenmatch rebuild --ladder duel --whole
    """
    from evenmatch.service.ladder_heads import positions_of

    results: list[dict[str, object]] = []
    with opened(db) as service:
        positions = positions_of(service)
        for name in positions if ladder is None else [ladder]:
            with working(f"rating {name} again", positions.get(name, 0)) as progress:
                rebuilt = service.rebuild(name, whole=whole, progress=progress)
            done = (
                None
                if rebuilt is None
                else {"from": rebuilt.since, "matches": rebuilt.matches, "changed": rebuilt.changed}
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
