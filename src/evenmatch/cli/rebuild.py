"""evenmatch rebuild: bring ratings up to the ledger where a correction waits for it."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.database import DATABASE, Db, counted, opened
from evenmatch.cli.output import print_json, printable, working


def command(
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="One ladder; otherwise all.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="From the first match on, whether it is due or not.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Rate a ladder's matches anew where that is due: after an interrupted correction, or with a new evenmatch.

    Corrections do this by themselves. Reading and recording go on meanwhile.

    [bold]Examples[/bold]

    evenmatch rebuild

    evenmatch rebuild --ladder duel --whole
    """
    told: list[dict[str, object]] = []
    with opened(db) as service:
        ladders = service.ladders() if ladder is None else [service.ladder(ladder)]
        for one in ladders:
            with working(f"rating {one.name} anew", one.position) as progress:
                made = service.rebuild(one.name, whole=whole, progress=progress)
            done = None if made is None else {"from": made.since, "matches": made.matches, "changed": made.changed}
            told.append({"ladder": one.name, "rebuilt": done})
            if not json:
                said = (
                    "no rebuild was due"
                    if made is None
                    else f"{counted(made.matches, 'match', 'matches')} rated anew; {made.changed:,} changed "
                    "ratings by other amounts than when they were recorded"
                )
                print(printable(f"ladder {one.name}: {said}"))
    if json:
        print_json({"ladders": told})
