"""evenmatch ban: remove the effect of a cheater's matches from a ladder."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.correction_options import correct
from evenmatch.cli.shared.database_options import DATABASE, Db, Id, OnLadder, Preview, Reason
from evenmatch.cli.shared.output import note
from evenmatch.errors import UsageError


def command(
    player: Annotated[str, typer.Argument(metavar="PLAYER", help="The player's name.")],
    ladder: OnLadder = None,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="void: their matches do not count; refund: players who lost to them keep their rating.",
        ),
    ] = "void",
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="ISO 8601 or epoch seconds; matches that ended earlier stay unchanged."
        ),
    ] = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Ban a player from a ladder, and recalculate the ratings that their matches affected.

    With rule void, their matches do not count. With rule refund, their matches stay, but players of teams that finished
    behind theirs keep the rating they had. A banned player is not in the standings; `evenmatch reinstate PLAYER` undoes
    the ban and all its effects.

    [bold]Examples[/bold]

    evenmatch ban mallory --ladder duel --preview

    evenmatch ban mallory --ladder duel --rule refund --since 2026-11-01 --reason "aimbot"
    """
    if rule not in ("void", "refund"):
        raise UsageError(f"--rule {rule}: expected void or refund")
    begin = options.moment(since, "--since")
    from evenmatch.service.corrections import Ban

    effect = correct(db, ladder, Ban(player, rule, begin, reason), preview, json, event_id)
    if begin is not None and begin > time.time_ns() // 1000 and not effect.moves and not effect.done:
        note(f"--since {since} is in the future: no match so far is changed, but the player is not in the standings")
