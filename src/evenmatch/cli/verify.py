"""evenmatch verify: compare ratings with a replay of the ledger, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.database import DATABASE, Db, counted, opened, typed
from evenmatch.cli.output import print_json, printable, working

if TYPE_CHECKING:
    from evenmatch.service.verifying import Verified

SHOWN = 20


def command(
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="One ladder; otherwise all.")
    ] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Replay ladders from nothing and compare every rating and every change, bit for bit.

    Ends with 0 where all is equal, with 1 where it is not, or where a rebuild is due. Where the ledger itself was
    damaged, it says what is missing: that is mended by a backup alone.

    [bold]Examples[/bold]

    evenmatch verify

    evenmatch verify --ladder duel --json
    """
    found: list[Verified] = []
    with opened(db) as service:
        for one in service.ladders() if ladder is None else [service.ladder(ladder)]:
            with working(f"verifying {one.name}", one.position) as progress:
                found.append(service.verify(one.name, progress))
            if not json:
                _print(found[-1], db)
    if json:
        print_json({"equal": all(one.is_equal for one in found), "ladders": [_document(one) for one in found]})
    elif not found:
        print("there is no ladder to verify")
    if not all(one.is_equal for one in found):
        raise typer.Exit(1)


def _print(found: Verified, db: str) -> None:
    """What was found on one ladder, and what to do about it."""
    size = f"{counted(found.matches, 'match', 'matches')}, {counted(found.players, 'player')}"
    if found.is_equal:
        print(printable(f"ladder {found.ladder}: all is equal ({size})"))
        return
    said = "its ledger is damaged" if found.damage else f"not equal ({size})" if found.differences else ""
    print(printable(f"ladder {found.ladder}: {said}".rstrip()))
    for told in (found.damage, found.differences):
        for line in told[:SHOWN]:
            print(printable(f"  {line}"))
        if len(told) > SHOWN:
            print(f"  and {len(told) - SHOWN:,} more (--json lists all)")
    for line in _advice(found, db):
        print(printable(f"  {line}"))


def _advice(found: Verified, db: str) -> list[str]:
    """What to do: a rebuild makes ratings of the ledger, and cannot mend the ledger itself."""
    if found.damage:
        return ["no rebuild mends that; go back to a backup from before"]
    mend = typed(db, "rebuild", "--ladder", found.ladder)
    if not found.same_engine:
        return [f"its ratings are of another version of evenmatch or another kind of machine; type: {mend}"]
    if found.due is not None:
        return [f"a correction waits for a rebuild from position {found.due:,} on; type: {mend}"]
    return [f"ratings can be made anew from the ledger; type: {mend} --whole"] if found.differences else []


def _document(found: Verified) -> dict[str, object]:
    return {
        "ladder": found.ladder,
        "equal": found.is_equal,
        "events": found.events,
        "matches": found.matches,
        "players": found.players,
        "damage": list(found.damage),
        "differences": list(found.differences),
        "rebuild_due_from": found.due,
        "same_engine": found.same_engine,
    }
