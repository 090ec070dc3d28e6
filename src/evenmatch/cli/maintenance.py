"""evenmatch verify, rebuild, head, backup and drill: database maintenance."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, counted, opened, shown_database, typed
from evenmatch.cli.shared.options import OnCluster, argument, connected, option
from evenmatch.cli.shared.output import note, print_json, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.corrections.ladder_heads import LadderHead
    from evenmatch.corrections.repair import RebuildResult
    from evenmatch.corrections.verification import Verification
    from evenmatch.operations.backup import Drill
    from evenmatch.operations.open_database import DatabaseCheck


def rebuild(
    ladder: Annotated[str | None, option("--ladder, -l L", "One ladder; otherwise all.")] = None,
    whole: Annotated[bool, option("--whole", "Start from the first match, even if no rebuild is due.")] = False,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Rate a ladder's matches again after an interrupted correction or an update of evenmatch.

    Corrections rebuild the ladder themselves. The service keeps reading and recording during a rebuild. With --cluster,
    each ladder is a separate task; the database must be PostgreSQL, and workers need EVENMATCH_SECRET.

    Examples:
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
                "ratings by a different amount than when they were recorded"
            )
            print(printable(f"ladder {name}: {summary}"))
    if json:
        print_json({"ladders": results})


def _rebuilt(db: str, ladder: str | None, whole: bool) -> Iterator[tuple[str, RebuildResult | None]]:
    """Rebuild the ladders one after another in this process."""
    from evenmatch.corrections.ladder_heads import positions_of

    with opened(db) as service:
        positions = positions_of(service)
        for name in positions if ladder is None else [ladder]:
            with working(f"rating {name} again", positions.get(name, 0)) as progress:
                rebuilt = service.rebuild(name, whole=whole, progress=progress)
            yield name, rebuilt


def _on_cluster(address: str, db: str, ladder: str | None, whole: bool) -> Iterator[tuple[str, RebuildResult | None]]:
    """Rebuild the ladders on a cluster, each in its own task."""
    from evenmatch.cluster.maintenance import DatabaseAddress, rebuild_ladders, systems_of

    DatabaseAddress(db)  # raises UsageError before any work starts

    with opened(db) as service:
        names = service.names() if ladder is None else [service.ladder(ladder).name]
    with (
        connected(address, systems_of(db)) as cluster,
        working("rating ladders again", len(names)) as progress,
    ):
        rebuilt = rebuild_ladders(cluster, db, names, whole=whole, progress=progress)
    yield from zip(names, rebuilt, strict=True)


SHOWN = 20


def verify(
    ladder: Annotated[str | None, option("--ladder, -l L", "One ladder; otherwise all.")] = None,
    head: Annotated[str | None, option("--head FILE", "Saved heads: a file, a line, or JSON text.")] = None,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Check the database's files and the chain of events, replay ladders, and compare every rating bit for bit.

    The command also checks players' names, merges, erasures, settings, seasons, divisions and indexes. The exit code is
    0 if everything matches, and 1 if something differs or a rebuild is due. The output says what a rebuild repairs and
    what only a backup repairs. With --cluster, each ladder of a PostgreSQL database is a separate task. With --head,
    the output also lists ladders without a saved head; if --ladder is one of them, the exit code is 1.

    Examples:
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
                _print_verification(results[-1], db)
    if cluster is not None:
        from evenmatch import systems
        from evenmatch.cluster.maintenance import verify_ladders

        with connected(cluster, systems.names()) as nodes, working("verifying ladders", len(names)) as progress:
            results = verify_ladders(nodes, db, names, kept, progress)
        for result in [] if json else results:
            _print_verification(result, db)
    is_compared = ladder is None or not without_head
    is_equal = is_compared and not (check.damage or missing) and all(result.is_equal for result in results)
    if json:
        print_json(
            {
                "equal": is_equal,
                "database": {"damage": list(check.damage), "unchecked": list(check.unchecked)},
                "missing_ladders": missing,
                "without_head": without_head,
                "ladders": [_verified(result) for result in results],
            }
        )
    else:
        for name in missing:
            print(printable(f"ladder {name}: missing from the database, but it has a saved head; restore a backup"))
        for name in without_head:
            print(printable(f"ladder {name}: not compared with any head; expected one in --head"))
        if not results:
            print("there are no ladders to verify")
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


def _print_verification(result: Verification, db: str) -> None:
    size = f"{counted(result.matches, 'match', 'matches')}, {counted(result.players, 'player')}"
    if result.is_equal:
        print(printable(f"ladder {result.ladder}: everything matches ({size})"))
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
    """Advise what to do: a rebuild repairs ratings, but only a backup restores the ledger."""
    if result.damage:
        return ["a rebuild cannot repair that; restore a backup from before the damage"]
    rebuild = typed(db, "rebuild", "--ladder", result.ladder)
    if not result.same_engine:
        return [f"its ratings are from another version of evenmatch or another type of machine; type: {rebuild}"]
    if result.due is not None:
        return [f"a correction needs a rebuild from position {result.due:,} on; type: {rebuild}"]
    return [f"ratings can be rebuilt from the ledger; type: {rebuild} --whole"] if result.differences else []


def head(
    ladder: Annotated[str | None, argument("[LADDER]", "The ladder; otherwise all.")] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Print a ladder's last position, the seal over all its events, and when the last event was recorded.

    Store the output where people with write access to the database cannot change it. Then evenmatch verify --head
    detects any event that was altered or removed, including the last ones. To sign it, use ssh-keygen -Y sign or gpg.

    Examples:
    evenmatch head duel
    evenmatch head > heads.txt
    """
    from evenmatch.corrections.ladder_heads import present_head

    with opened(db) as service:
        heads = [present_head(service, name) for name in (service.names() if ladder is None else [ladder])]
    if json:
        print_json({"heads": heads})
    else:
        for head in heads:
            print(head.line())


def backup(
    file: Annotated[Path, argument("FILE", "The copy, an SQLite database.")],
    replace: Annotated[bool, option("--replace", "Replace an existing file.")] = False,
    with_secret: Annotated[bool, option("--with-secret", "Also copy the master secret to FILE.secret.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Copy the database as it is now, while other processes read and write.

    To restore a copy, pass it as --db, or put it in place of the database after stopping all processes that use it. The
    copy does not contain the master secret, which the service needs. Keep the secret elsewhere, or add --with-secret to
    write it to FILE.secret with mode 0600. Anyone with both files can sign and log in as anybody. If you rename the
    copy, rename its secret too.

    For a PostgreSQL database, this command prints the pg_dump command to run. The exit code is 1 if the database has
    lost a ladder; the damaged copy does not replace an earlier one.

    Examples:
    evenmatch backup monday.db
    evenmatch backup /backups/monday.db --with-secret
    evenmatch backup /backups/latest.db --replace --db league.db
    """
    from evenmatch.operations.backup import backup
    from evenmatch.operations.master_secret import secret_place

    with opened(db) as service:
        shown = shown_database(service)
        with working(f"copying {shown}"):
            copy = backup(service.database, file, replace=replace, with_secret=with_secret)
        secret = secret_place(service.database)
    if json:
        files = {"file": str(file), "secret": None if copy.secret is None else str(copy.secret)}
        print_json({"database": shown, **files, "bytes": copy.size, "damage": list(copy.damage)})
    else:
        print(printable(f"{file}: a copy of {shown}, {copy.size / 1e6:,.1f} MB"))
        if copy.secret is not None:
            print(printable(f"{copy.secret}: its master secret, mode 0600"))
            note("anyone with both files can sign and log in as anybody; keep them where only operators can read them")
        elif secret is not None:
            note(
                f"the copy is useless without the master secret ({secret}); keep the secret elsewhere, or add "
                "--with-secret"
            )
        if copy.damage:
            print("the database is damaged, and so is the copy; restore a backup from before the damage")
            for line in copy.damage:
                print(printable(f"  {line}"))
    if copy.damage:
        raise typer.Exit(1)


def drill(
    backup: Annotated[Path, argument("BACKUP", "A backup, or a folder: its newest file.")],
    live: Annotated[str | None, option("--live URL", "The live database to compare with; it is only read.")] = None,
    max_age: Annotated[float | None, option("--max-age HOURS", "Fail if the backup is older.", low=0)] = None,
    json: options.Json = False,
) -> None:
    """Restore a backup into a temporary folder, check its file, and replay and verify every ladder in it.

    With --live, the live database must begin with the events of the backup and must use the same master secret, and
    --max-age also counts from the first event that the backup lacks. The exit code is 0 if the backup is good and 1 if
    it is not, so a timer can run this command. TMPDIR needs room for the backup.

    Examples:
    evenmatch drill monday.db
    evenmatch drill /backups --live evenmatch.db --max-age 26
    """
    from evenmatch.operations.backup import drill, latest_backup

    with working(f"restoring {latest_backup(backup)}"):
        result = drill(backup, live)
    is_late = max_age is not None and result.age > max_age * 3600
    if json:
        document = asdict(result) | {"file": str(result.file), "sound": result.is_sound and not is_late}
        print_json(document | {"age_seconds": round(document.pop("age"), 1)})
    else:
        _print_drill(result, live)
        if is_late:
            print(f"  it is {result.age / 3600:,.1f} hours old; expected at most {max_age:g}")
    if is_late or not result.is_sound:
        raise typer.Exit(1)


def _verified(result: Verification) -> dict[str, object]:
    """Return the result for a ladder as JSON data."""
    document = {"equal": result.is_equal, **asdict(result)}
    return document | {"rebuild_due_from": document.pop("due")}


def _print_drill(result: Drill, live: str | None) -> None:
    summary = "can be restored" if result.is_sound else "cannot be relied on"
    print(printable(f"{result.file}: {summary}, checked in {result.seconds:,.1f} s"))
    for line in result.problems[:SHOWN]:
        print(printable(f"  {line}"))
    for ladder in result.ladders:
        findings = [*ladder.damage, *ladder.differences]
        size = f"{ladder.events:,} events, {ladder.matches:,} matches, {ladder.players:,} players"
        state = (
            f"{size}, everything matches" if not findings else "is damaged" if ladder.damage else f"{size}, not equal"
        )
        if not findings and (ladder.due is not None or not ladder.same_engine):
            state += ", a rebuild is due"
        print(printable(f"  ladder {ladder.ladder}: {state}"))
        for line in findings[:SHOWN]:
            print(printable(f"    {line}"))
    if not (result.ladders or result.problems):
        print("  it contains no ladders")
    if result.recorded is not None:
        print(printable(f"  its last event was recorded at {result.recorded}"))
    for line in result.notes:
        print(printable(f"  {line}"))
    if live is not None and result.is_sound:
        print("  the live database continues from it")
