"""evenmatch ban, void and reinstate: preview how ratings change, correct the ladder, print the effect."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import (
    DATABASE,
    Db,
    Id,
    OnLadder,
    Preview,
    Reason,
    counted,
    ladder_of,
    opened,
    typed,
)
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working
from evenmatch.errors import ConflictError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.accounts.audit_entries import Correcting
    from evenmatch.corrections.effect import Effect
    from evenmatch.operations.service import Service


TOP = 20
ONLY_SEEN = "this is a preview, nothing was changed; run it again without --preview to apply it"

NOTHING: dict[str, object] = {
    "told": None,
    "there_already": False,
    "players": 0,
    "matches": 0,
    "left_out": 0,
    "moves": [],
}  # JSON of a preview if nothing is to be corrected


def correct(
    db: str, ladder: str | None, correction: Correcting, preview: bool, json: bool, event_id: str | None = None
) -> Effect:
    """Apply or only preview a correction, print the rating changes, and return them."""
    with opened(db) as service:
        name = ladder_of(service, ladder)
        seen = carry_out(service, name, correction, preview, event_id)
    if json:
        print_json({"ladder": name, "preview": preview, **as_document(seen)})
        return seen
    print_effect(seen, preview)
    if preview:
        note(ONLY_SEEN)
    elif not seen.done:
        print(printable(f"ladder {name}: {seen.told}"))
    return seen


def carry_out(service: Service, ladder: str, correction: Correcting, preview: bool, event_id: str | None) -> Effect:
    """Apply a correction, or preview it; return the rating changes."""
    from evenmatch.accounts.access import OPERATOR
    from evenmatch.accounts.audit_entries import correcting

    events = service.ladder(ladder).position
    if preview:
        with working("calculating the preview", events) as progress:
            return service.preview(ladder, correction, progress, event_id)
    with working("recalculating ratings", events) as progress:
        noting = service.noting(correcting(OPERATOR, ladder, correction))
        return noting.correct(ladder, correction, progress, event_id)


def as_document(seen: Effect) -> dict[str, object]:
    """An effect as JSON data, with all players whose rating changes, largest change first."""
    return {
        "told": seen.told,
        "there_already": seen.done,
        "players": seen.players,
        "matches": seen.matches,
        "left_out": seen.left_out,
        "moves": [move._asdict() for move in seen.moves],
    }


def print_effect(seen: Effect, preview: bool) -> None:
    """Print the players with the largest rating changes, and how many matches become unrated."""
    begin = f"{'preview: ' if preview else ''}{seen.told}"
    if seen.done:
        print(printable(f"{begin}; nothing is changed"))
        return
    left_out = counted(seen.left_out, "match becomes", "matches become") + " unrated"
    unrated = f"; {left_out}, which the new rules cannot rate" if seen.left_out else ""
    if not seen.moves:
        print(printable(f"{begin}: no rating moves{unrated}"))
        return
    summary = f"{len(seen.moves):,} of {counted(seen.players, 'player')} {'moves' if len(seen.moves) == 1 else 'move'}"
    shown = f", the {TOP} largest changes are shown" if len(seen.moves) > TOP else ""
    rows = [
        [
            move.player,
            move.before,
            move.after,
            None if move.before is None or move.after is None else f"{move.after - move.before:+.2f}",
            move.matches_before,
            move.matches_after,
        ]
        for move in seen.moves[:TOP]
    ]
    heads = ("player", "before", "after", "change", "matches before", "matches after")
    print_table(f"{begin}: {summary}{shown}{unrated}", heads, rows, right=heads[1:])


def command_ban(
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
    from evenmatch.corrections.corrections import Ban

    effect = correct(db, ladder, Ban(player, rule, begin, reason), preview, json, event_id)
    if begin is not None and begin > time.time_ns() // 1000 and not effect.moves and not effect.done:
        note(f"--since {since} is in the future: no match so far is changed, but the player is not in the standings")


def command_void(
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
    from evenmatch.corrections.corrections import Void

    correct(db, ladder, Void(match, reason), preview, json, event_id)


def command_reinstate(
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
    from evenmatch.corrections.corrections import Reinstate, Unvoid

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
    from evenmatch.corrections.corrections import Unvoid

    with opened(db) as service:
        try:
            service.preview(ladder_of(service, ladder), Unvoid(name))
        except UnknownNameError:
            return False
        except ConflictError:
            return True
    return True
