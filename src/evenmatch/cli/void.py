"""evenmatch void: exclude a match from the ratings."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.correction_options import correct
from evenmatch.cli.shared.database_options import DATABASE, Db, Id, OnLadder, Preview, Reason


def command(
    match: Annotated[str, typer.Argument(metavar="MATCH", help="The match_id of the match.")],
    ladder: OnLadder = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Void a match, so that it does not count, and rate all later matches again.

    The match stays in the ledger; `evenmatch reinstate --match MATCH` makes it count again.

    [bold]Examples[/bold]

    evenmatch void m17 --ladder duel --preview

    evenmatch void m17 --ladder duel --reason "the server crashed"
    """
    from evenmatch.service.corrections import Void

    correct(db, ladder, Void(match, reason), preview, json, event_id)
