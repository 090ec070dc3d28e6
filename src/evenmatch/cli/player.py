"""evenmatch player: one identity across ladders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.acting import acting
from evenmatch.cli.database import DATABASE, Db, Yes, ask, counted, minutes_text, opened
from evenmatch.cli.output import note, print_json, print_table, printable, working

if TYPE_CHECKING:
    from evenmatch.service.dossier import Appeared

app = typer.Typer(
    help="Show a player, rename them, merge two accounts, hand out or erase what is known.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The player's name, or one they had before.")]


@app.command()
def show(
    name: Name,
    ladder: Annotated[
        str | None, typer.Option("--ladder", "-l", metavar="L", help="This ladder alone; otherwise all.")
    ] = None,
    matches: Annotated[
        int, typer.Option("--matches", "-n", min=0, metavar="N", help="How many matches of each ladder.")
    ] = 10,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show where a player stands, and what their latest matches changed.

    [bold]Examples[/bold]

    evenmatch player show ann

    evenmatch player show ann --ladder duel --matches 50
    """
    from evenmatch.service.dossier import dossier, plain_match, plain_standing

    with opened(db) as service:
        told = dossier(service.database, name, service.clock(), ladder=ladder, matches=matches)
    if json:
        ladders = [
            {
                "ladder": on.ladder.name,
                "banned": on.banned,
                "standing": plain_standing(on.standing),
                "matches": [plain_match(row) for row in on.matches],
            }
            for on in told.ladders
        ]
        print_json({"player": told.name, "names": told.names, "ladders": ladders})
        return
    others = [other for other in told.names if other != told.name]
    print(printable(told.name + (f" (also known as {', '.join(others)})" if others else "")) + "\n")
    for on in told.ladders:
        _print(on)


def _print(on: Appeared) -> None:
    """A player on one ladder."""
    from evenmatch.cli.standings import why_not

    standing = on.standing
    if standing is None:
        told = "no rating"
    else:
        placement = on.ladder.settings.standings.placement
        place = (
            f"rank {standing.rank:,}, percentile {standing.percentile}, {standing.division}"
            if standing.rank is not None
            else "banned"
            if on.banned
            else why_not(standing, placement)
        )
        told = f"{standing.rating:.2f} after {counted(standing.matches, 'match', 'matches')}, {place}"
    heads = ("played at (UTC)", "match", "place", "before", "after", "change", "")
    rows = []
    for row in on.matches:
        before, after, at = row.get("before"), row.get("after"), row["played_at"]
        moved = f"{after - before:+.2f}" if isinstance(before, float) and isinstance(after, float) else None
        remark = "quit" if row["quit"] else "" if row["rated"] else "not rated"
        assert isinstance(at, int)
        rows.append([minutes_text(at), row["match_id"], row["place"], before, after, moved, remark])
    title = f"{on.ladder.title}: {told}"
    if rows:
        print_table(title, heads, rows, right=heads[2:6])
    else:
        print(printable(title))


@app.command()
def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The player's name.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name they are shown by from now on.")],
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Give a player another name. The old one still reaches them, in reports and here.

    [bold]Example[/bold]

    evenmatch player rename ann "Ann the Great"
    """
    with opened(db) as service:
        renamed = acting(service, "player.renamed", target=old, body={"to": new}).rename(old, new)
    if json:
        print_json({"player": new, "named": old, "renamed": renamed})
    elif renamed:
        print(printable(f"player {old} is {new} now; matches reported for {old} still go to them"))
    else:
        print(printable(f"player {old} is called {new} already; nothing is changed"))


@app.command()
def merge(
    name: Name,
    into: Annotated[str, typer.Option("--into", metavar="OTHER", help="The player who is left.")],
    yes: Yes = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Make one player of two accounts, as though OTHER had played all matches of both. This cannot be taken back.

    Two who met in a match cannot be merged.

    [bold]Example[/bold]

    evenmatch player merge ann_smurf --into ann
    """
    with opened(db) as service:
        service.player(name)
        service.player(into)
        ask(printable(f"{name} becomes a part of {into}, on every ladder, for ever. Merge them?"), yes)
        with working("rating anew"):
            touched = acting(service, "player.merged", target=name, body={"into": into}).merge(name, into)
    if json:
        print_json({"player": into, "merged": name, "ladders": touched})
        return
    ladders = f"; rated anew: {', '.join(touched)}" if touched else ""
    print(printable(f"{name} and {into} are one player now, {into}{ladders}"))


@app.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .json file.")],
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Write all that is known of a player: names, standings, matches with changes, past seasons, bans.

    [bold]Example[/bold]

    evenmatch player export ann --out ann.json
    """
    from evenmatch.cli.documents import write_json
    from evenmatch.service.dossier import everything

    with opened(db) as service, working(f"gathering what is known of {name}"):
        told = everything(service.database, name, service.clock())
    write_json(told, out)
    if json:
        print_json({"player": told["player"], "file": str(out), "bytes": out.stat().st_size})
        return
    print(printable(f"{out}: all that is known of {name}"))


@app.command()
def erase(name: Name, yes: Yes = False, db: Db = DATABASE, json: options.Json = False) -> None:
    """Replace a player by a pseudonym everywhere. This cannot be taken back.

    Every name they had is deleted, also in labels of teams and in reasons of bans. Their matches stay without it, so
    nobody else's rating changes; they are in no standings any more. Files that were exported and backups are not
    reached.

    [bold]Example[/bold]

    evenmatch player erase ann --yes
    """
    from evenmatch.service.dossier import dossier

    with opened(db) as service:
        told = dossier(service.database, name, service.clock(), matches=0)
        where = ", ".join(on.ladder.name for on in told.ladders)
        note(
            f"{', '.join(told.names)}: {counted(len(told.names), 'name')} will be deleted"
            + (f" on {counted(len(told.ladders), 'ladder')} ({where})" if where else "")
            + "; matches and ratings of others stay"
        )
        ask("This cannot be taken back. Erase them?", yes)
        with working("erasing"):
            pseudonym = acting(service, "player.erased").erase(name)
    if json:
        print_json({"pseudonym": pseudonym, "ladders": [on.ladder.name for on in told.ladders]})
        return
    print(f"erased; their matches are {pseudonym}'s now")
