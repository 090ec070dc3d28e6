"""evenmatch void: a match counts for nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.correcting import correct
from evenmatch.cli.database import DATABASE, Db, Id, OnLadder, Preview, Reason


def command(
    match: Annotated[str, typer.Argument(metavar="MATCH", help="The match_id of the match.")],
    ladder: OnLadder = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Let a match count for nothing, and rate all that came after it anew.

    The match stays in the ledger; `evenmatch reinstate --match MATCH` makes it count again.

    [bold]Examples[/bold]

    evenmatch void m17 --ladder duel --preview

    evenmatch void m17 --ladder duel --reason "the server crashed"
    """
    from evenmatch.service.corrections import Void

    correct(db, ladder, Void(match, reason), preview, json, event_id)
