"""What the commands that correct history have together: show who moves, then do it, or only show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenmatch.cli.database import counted, ladder_of, opened
from evenmatch.cli.output import note, print_json, print_table, printable, working

if TYPE_CHECKING:
    from evenmatch.service.corrections import Preview
    from evenmatch.service.ladders import Wishing

TOP = 20


def correct(db: str, ladder: str | None, wish: Wishing, preview: bool, json: bool) -> None:
    """Carry a correction out, or only show what it would do, and print who moves."""
    with opened(db) as service:
        name = ladder_of(service, ladder)
        events = service.ladder(name).position
        with working("who would move", events) as progress:
            seen = service.preview(name, wish, progress)
        if not preview:
            with working("rating anew", events) as progress:
                service.correct(name, wish, progress)
    if json:
        print_json({"ladder": name, "preview": preview, **as_document(seen)})
        return
    print_preview(seen, preview)
    if preview:
        note("this is a preview, nothing was changed; the same without --preview does it")
    else:
        print(printable(f"ladder {name}: {seen.told}"))


def as_document(seen: Preview) -> dict[str, object]:
    """A preview as data: everybody who moves, the largest change first."""
    return {
        "told": seen.told,
        "players": seen.players,
        "matches": seen.matches,
        "moves": [move._asdict() for move in seen.moves],
    }


def print_preview(seen: Preview, preview: bool) -> None:
    """The players who move most."""
    if not seen.players:
        print(printable(f"{'preview: ' if preview else ''}{seen.told}: no rating moves"))
        return
    said = f"{len(seen.moves):,} of {counted(seen.players, 'player')} {'moves' if len(seen.moves) == 1 else 'move'}"
    shown = f", the {TOP} who move most are shown" if len(seen.moves) > TOP else ""
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
    title = f"{'preview: ' if preview else ''}{seen.told}: {said}{shown}"
    if rows:
        print_table(title, heads, rows, right=heads[1:])
    else:
        print(printable(title))
