"""evenmatch reinstate: take a ban or a void back."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.correcting import correct
from evenmatch.cli.database import DATABASE, Db, OnLadder, Preview, Reason
from evenmatch.errors import UsageError


def command(
    player: Annotated[
        str | None, typer.Argument(metavar="[PLAYER]", help="A banned player; or name a void match by --match.")
    ] = None,
    match: Annotated[
        str | None, typer.Option("--match", "-m", metavar="MATCH", help="A void match, which is to count again.")
    ] = None,
    ladder: OnLadder = None,
    reason: Reason = None,
    preview: Preview = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Take back the ban of a player, or let a void match count again.

    [bold]Examples[/bold]

    evenmatch reinstate mallory --ladder duel

    evenmatch reinstate --match m17 --ladder duel --preview
    """
    from evenmatch.service.corrections import Reinstate, Unvoid

    if match is not None and player is None:
        correct(db, ladder, Unvoid(match, reason), preview, json)
    elif player is not None and match is None:
        correct(db, ladder, Reinstate(player, reason), preview, json)
    else:
        raise UsageError("accepted is either a player who is banned, or --match with a match that is void")
