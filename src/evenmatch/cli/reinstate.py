"""evenmatch reinstate: undo a ban or a void."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.correction_options import correct
from evenmatch.cli.shared.database_options import (
    DATABASE,
    Db,
    Id,
    OnLadder,
    Preview,
    Reason,
    ladder_of,
    opened,
    typed,
)
from evenmatch.errors import ConflictError, UnknownNameError, UsageError


def command(
    player: Annotated[
        str | None, typer.Argument(metavar="[PLAYER]", help="A banned player; for a void match use --match.")
    ] = None,
    match: Annotated[
        str | None, typer.Option("--match", "-m", metavar="MATCH", help="A void match that is to count again.")
    ] = None,
    ladder: OnLadder = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Undo the ban of a player, or let a void match count again.

    [bold]Examples[/bold]

    evenmatch reinstate mallory --ladder duel

    evenmatch reinstate --match m17 --ladder duel --preview
    """
    from evenmatch.service.corrections import Reinstate, Unvoid

    if match is not None and player is None:
        correct(db, ladder, Unvoid(match, reason), preview, json, event_id)
    elif player is not None and match is None:
        try:
            correct(db, ladder, Reinstate(player, reason), preview, json, event_id)
        except UnknownNameError as error:
            if error.kind == "player" and _is_match(db, ladder, player):
                hint = typed(db, "reinstate", "--match", player, *([] if ladder is None else ["--ladder", ladder]))
                raise UsageError(
                    f"there is no player {player!r}, but a match with this id; to let it count: {hint}"
                ) from None
            raise
    else:
        raise UsageError("expected either a banned player, or --match with a void match")


def _is_match(db: str, ladder: str | None, name: str) -> bool:
    """Whether the ladder has a match with this id, void or not."""
    from evenmatch.service.corrections import Unvoid

    with opened(db) as service:
        try:
            service.preview(ladder_of(service, ladder), Unvoid(name))
        except UnknownNameError:
            return False
        except ConflictError:
            return True
    return True
