"""evenmatch verify, rebuild and head: check the ledger, compare ratings with a replay, and export the chain's end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.cluster_option import OnCluster, connected
from evenmatch.cli.shared.database_options import DATABASE, Db, counted, opened, typed
from evenmatch.cli.shared.output import print_json, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.corrections.ladder_heads import LadderHead
    from evenmatch.corrections.repair import RebuildResult
    from evenmatch.corrections.verification import Verification
    from evenmatch.operations.open_database import DatabaseCheck


SHOWN = 20


def command_verify(
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="One ladder; otherwise all.")
    ] = None,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="FILE", help="Heads kept elsewhere: a file of them, or a line or JSON as text."),
    ] = None,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Check the database's files and the chain of events, replay ladders, and compare every rating bit for bit.

    Also compared: players' names with what was reported and with each other, merges, erasures, settings, seasons,
    divisions, and indexes with rows.
    The exit code is 0 if all is equal, and 1 if something differs or a rebuild is due. The output says what a rebuild
    repairs and what only a backup repairs. With --cluster each ladder of a PostgreSQL database is a task of its own.
    With --head, ladders without a head are named; the exit code is 1 if --ladder is one of them.

    [bold]Examples[/bold]

    evenmatch verify

    evenmatch verify --ladder duel --head heads.txt --json
    """
    from evenmatch.corrections.ladder_heads import positions_of
    from evenmatch.operations.open_database import check_database

    results: list[Verification] = []
    with opened(db) as service:
        kept = {} if head is None else _kept(head)
        with working("checking the database's files"):
            check = check_database(service.database)
        if not json:
            _print_check(check)
        positions = positions_of(service)
        missing = [name for name in kept if name not in positions] if ladder is None else []
        names = list(positions) if ladder is None else [ladder]
        without_head = [] if head is None else [name for name in names if name not in kept]
        for name in [] if cluster is not None else names:
            with working(f"verifying {name}", positions.get(name, 0)) as progress:
                results.append(service.verify(name, progress, kept.get(name)))
            if not json:
                _print(results[-1], db)
    if cluster is not None:
        from evenmatch import systems
        from evenmatch.cluster.databases import verify_ladders

        with connected(cluster, systems.names()) as nodes, working("verifying ladders", len(names)) as progress:
            results = verify_ladders(nodes, db, names, kept, progress)
        for result in [] if json else results:
            _print(result, db)
    is_compared = ladder is None or not without_head
    is_equal = is_compared and not (check.damage or missing) and all(result.is_equal for result in results)
    if json:
        print_json(
            {
                "equal": is_equal,
                "database": {"damage": list(check.damage), "unchecked": list(check.unchecked)},
                "missing_ladders": missing,
                "without_head": without_head,
                "ladders": [_document(result) for result in results],
            }
        )
    else:
        for name in missing:
            print(printable(f"ladder {name}: is not in the database, but there is a head of it; restore a backup"))
        for name in without_head:
            print(printable(f"ladder {name}: not compared with any head; expected one in --head"))
        if not results:
            print("there is no ladder to verify")
    if not is_equal:
        raise typer.Exit(1)


def _kept(head: str) -> dict[str, LadderHead]:
    """The latest head of each ladder in a file or text."""
    from evenmatch.corrections.ladder_heads import parse_heads

    try:
        is_file = os.path.isfile(head)  # Path.is_file raises OSError for a text longer than a name can be
        text = Path(head).read_text(encoding="utf-8") if is_file else head
    except (OSError, ValueError) as error:
        raise UsageError(f"--head {head}: cannot be read ({error}); expected a text file") from error
    return {kept.ladder: kept for kept in sorted(parse_heads(text), key=lambda kept: kept.position)}


def _print_check(check: DatabaseCheck) -> None:
    for line in check.unchecked:
        print(printable(line), file=sys.stderr)
    if check.damage:
        print("the database is damaged")
        for line in check.damage[:SHOWN]:
            print(printable(f"  {line}"))
        print("  a rebuild cannot repair that; restore a backup from before the damage")


def _print(result: Verification, db: str) -> None:
    for line in result.unchecked:
        print(printable(f"ladder {result.ladder}: {line}"), file=sys.stderr)
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
        "unchecked": list(result.unchecked),
    }


def command_rebuild(
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="One ladder; otherwise all.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="From the first match on, even if no rebuild is due.")] = False,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Rate a ladder's matches again where that is due: after an interrupted correction or an update of evenmatch.

    Corrections do this by themselves. Reading and recording go on during a rebuild.
    With --cluster each ladder is a task of its own; the database must be PostgreSQL, and workers need EVENMATCH_SECRET.

    [bold]Examples[/bold]

    evenmatch rebuild

    evenmatch rebuild --ladder duel --whole

    evenmatch rebuild --cluster 10.0.0.5:6379 --db postgresql://league@db.example/league
    """
    results: list[dict[str, object]] = []
    for name, rebuilt in _rebuilt(db, ladder, whole) if cluster is None else _on_cluster(cluster, db, ladder, whole):
        done = (
            None if rebuilt is None else {"from": rebuilt.since, "matches": rebuilt.matches, "changed": rebuilt.changed}
        )
        results.append({"ladder": name, "rebuilt": done})
        if not json:
            summary = (
                "no rebuild was due"
                if rebuilt is None
                else f"{counted(rebuilt.matches, 'match', 'matches')} rated again; {rebuilt.changed:,} changed "
                "ratings by other amounts than when they were recorded"
            )
            print(printable(f"ladder {name}: {summary}"))
    if json:
        print_json({"ladders": results})


def _rebuilt(db: str, ladder: str | None, whole: bool) -> Iterator[tuple[str, RebuildResult | None]]:
    """Rebuild one ladder after the other in this process."""
    from evenmatch.corrections.ladder_heads import positions_of

    with opened(db) as service:
        positions = positions_of(service)
        for name in positions if ladder is None else [ladder]:
            with working(f"rating {name} again", positions.get(name, 0)) as progress:
                rebuilt = service.rebuild(name, whole=whole, progress=progress)
            yield name, rebuilt


def _on_cluster(address: str, db: str, ladder: str | None, whole: bool) -> Iterator[tuple[str, RebuildResult | None]]:
    """Rebuild all ladders, each in a task."""
    from evenmatch.cluster.databases import DatabaseAddress, rebuild_ladders, systems_of

    DatabaseAddress(db)  # raises before anything begins

    with opened(db) as service:
        names = service.names() if ladder is None else [service.ladder(ladder).name]
    with (
        connected(address, systems_of(db)) as cluster,
        working("rating ladders again", len(names)) as progress,
    ):
        rebuilt = rebuild_ladders(cluster, db, names, whole=whole, progress=progress)
    yield from zip(names, rebuilt, strict=True)


def command_head(
    ladder: Annotated[str | None, typer.Argument(metavar="[LADDER]", help="The ladder; otherwise all.")] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Print a ladder's last position, the seal over all its events up to there, and when the last was recorded.

    Keep the output where those who can write to the database cannot: evenmatch verify --head then shows whether events
    were altered or removed since, the last ones too. To sign it, pass it to ssh-keygen -Y sign or gpg.

    [bold]Examples[/bold]

    evenmatch head duel

    evenmatch head > heads.txt
    """
    from evenmatch.corrections.ladder_heads import present_head

    with opened(db) as service:
        heads = [present_head(service, name) for name in (service.names() if ladder is None else [ladder])]
    if json:
        print_json({"heads": [head.document() for head in heads]})
    else:
        for head in heads:
            print(head.line())
