"""evenmatch head: the last event of each ladder, with the seal over all its events."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, opened
from evenmatch.cli.shared.output import print_json


def command(
    ladder: Annotated[str | None, typer.Argument(metavar="[LADDER]", help="The ladder; otherwise all.")] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Print a ladder's last position, the seal over all its events up to there, and when the last was recorded.

    Keep the output where those who can write to the database cannot: evenmatch verify --head then shows whether events
    were altered or removed since, the last ones too. To sign it, pass it to ssh-keygen -Y sign or gpg.

    [bold]Examples[/bold]

    evenmatch head duel

    evenmatch head > heads.txt
    """
    from evenmatch.service.ladder_heads import present_head

    with opened(db) as service:
        heads = [present_head(service, name) for name in (service.names() if ladder is None else [ladder])]
    if json:
        print_json({"heads": [head.document() for head in heads]})
    else:
        for head in heads:
            print(head.line())
