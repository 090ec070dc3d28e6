"""Shared part of the correction commands: preview rating changes, apply the correction, print the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenmatch.cli.shared.database_options import counted, ladder_of, opened
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working

if TYPE_CHECKING:
    from evenmatch.service.callers.audit_entry import Correcting
    from evenmatch.service.replay.effect import Effect
    from evenmatch.service.service import Service

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
    from evenmatch.service.callers.access import OPERATOR
    from evenmatch.service.callers.audit_entry import correcting

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
