"""evenmatch ban: take a cheater's matches out of a ladder."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.correcting import correct
from evenmatch.cli.database import DATABASE, Db, Id, OnLadder, Preview, Reason
from evenmatch.cli.output import note
from evenmatch.errors import UsageError


def command(
    player: Annotated[str, typer.Argument(metavar="PLAYER", help="The player's name.")],
    ladder: OnLadder = None,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="void: their matches count for nothing; refund: who lost to them keeps what they had.",
        ),
    ] = "void",
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="ISO 8601 or epoch seconds; matches that ended before stay."),
    ] = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Ban a player from a ladder, and rate all that they had a part in anew.

    By the rule void, their matches count for nothing. By the rule refund, their matches stay, and players of teams that
    finished behind theirs keep the rating they had. A banned player is in no standings; `evenmatch reinstate PLAYER`
    makes all of it as though it had never been.

    [bold]Examples[/bold]

    evenmatch ban mallory --ladder duel --preview

    evenmatch ban mallory --ladder duel --rule refund --since 2026-11-01 --reason "aimbot"
    """
    if rule not in ("void", "refund"):
        raise UsageError(f"--rule {rule}: accepted is void or refund")
    begin = options.moment(since, "--since")
    from evenmatch.service.corrections import Ban
    from evenmatch.service.service import microseconds

    seen = correct(db, ladder, Ban(player, rule, begin, reason), preview, json, event_id)
    if begin is not None and begin > microseconds() and not seen.moves and not seen.done:
        note(
            f"--since {since} is a time to come: no match so far is touched; the player is in no standings all the same"
        )
