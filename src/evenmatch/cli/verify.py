"""evenmatch verify: compare ratings with a replay of the ledger, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, counted, opened, typed
from evenmatch.cli.shared.output import print_json, printable, working

if TYPE_CHECKING:
    from evenmatch.service.replay.verification import Verification

SHOWN = 20


def command(
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="One ladder; otherwise all.")
    ] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Replay ladders from the first event and compare every rating and every change, bit for bit.

    The exit code is 0 if all is equal, and 1 if something differs or a rebuild is due. If the ledger itself is damaged,
    the output says what is missing; only a backup can repair that.

    [bold]Examples[/bold]

    evenmatch verify

    evenmatch verify --ladder duel --json
    """
    results: list[Verification] = []
    with opened(db) as service:
        for current in service.ladders() if ladder is None else [service.ladder(ladder)]:
            with working(f"verifying {current.name}", current.position) as progress:
                results.append(service.verify(current.name, progress))
            if not json:
                _print(results[-1], db)
    if json:
        print_json(
            {"equal": all(result.is_equal for result in results), "ladders": [_document(result) for result in results]}
        )
    elif not results:
        print("there is no ladder to verify")
    if not all(result.is_equal for result in results):
        raise typer.Exit(1)


def _print(result: Verification, db: str) -> None:
    size = f"{counted(result.matches, 'match', 'matches')}, {counted(result.players, 'player')}"
    if result.is_equal:
        print(printable(f"ladder {result.ladder}: all is equal ({size})"))
        return
    summary = "its ledger is damaged" if result.damage else f"not equal ({size})" if result.differences else ""
    print(printable(f"ladder {result.ladder}: {summary}".rstrip()))
    for lines in (result.damage, result.differences):
        for line in lines[:SHOWN]:
            print(printable(f"  {line}"))
        if len(lines) > SHOWN:
            print(f"  and {len(lines) - SHOWN:,} more (--json lists all)")
    for line in _advice(result, db):
        print(printable(f"  {line}"))


def _advice(result: Verification, db: str) -> list[str]:
    """Instructions: a rebuild corrects ratings from the ledger, but only a backup restores the ledger."""
    if result.damage:
        return ["a rebuild cannot repair that; restore a backup from before the damage"]
    rebuild = typed(db, "rebuild", "--ladder", result.ladder)
    if not result.same_engine:
        return [f"its ratings are from another version of evenmatch or another type of machine; type: {rebuild}"]
    if result.due is not None:
        return [f"a correction waits for a rebuild from position {result.due:,} on; type: {rebuild}"]
    return [f"ratings can be rebuilt from the ledger; type: {rebuild} --whole"] if result.differences else []


def _document(result: Verification) -> dict[str, object]:
    return {
        "ladder": result.ladder,
        "equal": result.is_equal,
        "events": result.events,
        "matches": result.matches,
        "players": result.players,
        "damage": list(result.damage),
        "differences": list(result.differences),
        "rebuild_due_from": result.due,
        "same_engine": result.same_engine,
    }
