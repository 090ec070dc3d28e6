"""evenmatch player: show, rename, merge, link to accounts, export and erase players, across ladders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, Yes, acting, ask, counted, minutes_text, opened
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working
from evenmatch.errors import UsageError
from evenmatch.times import iso_time
from evenmatch.whole_file import whole_file

if TYPE_CHECKING:
    from evenmatch.players.profile import PlayerOnLadder

app = typer.Typer(
    help="Show, rename, merge and erase players, export their data, and link them to accounts.",
    no_args_is_help=True,
)

Name = Annotated[str, argument("NAME", "The player's name, or one they had before.")]


@app.command()
def show(
    name: Name,
    ladder: Annotated[str | None, option("--ladder, -l L", "Only this ladder; otherwise all.")] = None,
    matches: Annotated[int, option("--matches, -n N", "Number of matches shown per ladder.", low=0)] = 10,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show a player's standings, and the rating changes of their latest matches.

    Examples:
    evenmatch player show ann
    evenmatch player show ann --ladder duel --matches 50
    """
    from evenmatch.players.profile import dossier, plain_ban, plain_match, plain_standing

    with opened(db) as service:
        player = dossier(service.database, name, service.clock(), ladder=ladder, matches=matches)
    if json:
        ladders = [
            {
                "ladder": appeared.ladder.name,
                **plain_ban(appeared.ban),
                "standing": plain_standing(appeared.standing),
                "matches": [plain_match(row) for row in appeared.matches],
            }
            for appeared in player.ladders
        ]
        print_json({"player": player.name, "names": player.names, "ladders": ladders})
        return
    others = [other for other in player.names if other != player.name]
    print(printable(player.name + (f" (also known as {', '.join(others)})" if others else "")) + "\n")
    for appeared in player.ladders:
        _print(appeared)


def _banned(until: int | None) -> str:
    return "banned" if until is None else f"banned until {minutes_text(until)} UTC"


def _print(on: PlayerOnLadder) -> None:
    from evenmatch.cli.standings import why_not

    standing = on.standing
    if standing is None:
        summary = "no rating"
    else:
        place = (
            f"rank {standing.rank:,}, percentile {standing.percentile}, {standing.division}"
            if standing.rank is not None
            else _banned(on.ban.until)
            if on.ban is not None
            else why_not(standing, on.ladder.settings.standings)
        )
        summary = f"{standing.rating:.2f} after {counted(standing.matches, 'match', 'matches')}, {place}"
    heads = ("played at (UTC)", "match", "place", "before", "after", "change", "")
    rows = []
    for row in on.matches:
        before, after, played_at = row.get("before"), row.get("after"), row["played_at"]
        moved = f"{after - before:+.2f}" if isinstance(before, float) and isinstance(after, float) else None
        remark = "quit" if row["quit"] else "" if row["rated"] else "not rated"
        assert isinstance(played_at, int)
        rows.append([minutes_text(played_at), row["match_id"], row["place"], before, after, moved, remark])
    title = f"{on.ladder.title}: {summary}"
    if rows:
        print_table(title, heads, rows, right=heads[2:6])
    else:
        print(printable(title))


@app.command()
def rename(
    old: Annotated[str, argument("OLD", "The player's name.")],
    new: Annotated[str, argument("NEW", "The new name.")],
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Rename a player. The old name still works in reports and commands.

    Example:
    evenmatch player rename ann "Ann the Great"
    """
    with opened(db) as service:
        renamed = acting(service, "player.renamed", target=old, body={"to": new}).rename(old, new)
    if json:
        print_json({"player": new, "named": old, "renamed": renamed})
    elif renamed:
        print(printable(f"player {old} is now named {new}; matches reported for {old} still count for them"))
    else:
        print(printable(f"player {old} is already named {new}; nothing changed"))


@app.command()
def merge(
    name: Name,
    into: Annotated[str, option("--into OTHER", "The player who remains.")],
    yes: Yes = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Merge two accounts into OTHER, as if OTHER had played all matches of both. This cannot be undone.

    Players who met in a match cannot be merged. A match that is reported with two of the player's names afterwards is
    recorded, but not rated.

    Example:
    evenmatch player merge ann_smurf --into ann
    """
    from evenmatch.players.players import NAMED_TWICE

    with opened(db) as service:
        service.player(name)
        service.player(into)
        ask(printable(f"{name} is merged into {into} on every ladder, permanently. Merge them?"), yes)
        with working("recalculating ratings"):
            touched = acting(service, "player.merged", target=name, body={"into": into}).merge(name, into)
    if json:
        print_json({"player": into, "merged": name, "ladders": touched, "note": NAMED_TWICE})
        return
    ladders = f"; rated again: {', '.join(touched)}" if touched else ""
    print(printable(f"{name} and {into} are now one player, {into}{ladders}"))
    print(NAMED_TWICE)


@app.command()
def export(
    name: Name,
    out: Annotated[Path, option("--out, -o FILE", "A .json file.")],
    whole: Annotated[bool, option("--all", "Also the ratings that a ladder does not show its players.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Export the data about a player: names, standings, matches with changes, past seasons, bans.

    The file is meant for the player: it contains what each ladder shows its players (setting `show`), or everything
    with --all.

    Example:
    evenmatch player export ann --out ann.json
    """
    from evenmatch.accounts.access import ANYONE, OPERATOR
    from evenmatch.players.profile import everything

    with opened(db) as service, working(f"collecting the data about {name}"):
        caller = OPERATOR if whole else ANYONE
        document = everything(service.database, name, service.clock(), caller=caller)
    write_json(document, out)
    if json:
        print_json({"player": document["player"], "file": str(out), "bytes": out.stat().st_size})
        return
    print(printable(f"{out}: the data about {name}" + (", with all ratings" if whole else "")))


Issuer = Annotated[str, argument("ISSUER", "discord, steam, or the URL of an OpenID Connect provider.")]
Subject = Annotated[str, argument("ID", "The id of the account there.")]


@app.command()
def link(name: Name, issuer: Issuer, subject: Subject, db: Db = DATABASE, json: options.Json = False) -> None:
    """Let the owner of an account log in as this player, who need not have played yet.

    The page that an unlinked account sees after logging in shows this command.

    Examples:
    evenmatch player link ann steam 76561197960287930
    evenmatch player link ann https://id.studio.example 4711
    """
    from evenmatch.accounts.linked_accounts import LinkedAccounts

    with opened(db) as service:
        linked = LinkedAccounts(service.database, service.clock).link(name, issuer, subject)
    if json:
        print_json(linked)
        return
    print(printable(f"the account {subject} of {issuer} now logs in as {linked.player}"))


@app.command()
def unlink(name: Name, issuer: Issuer, subject: Subject, db: Db = DATABASE, json: options.Json = False) -> None:
    """End the link between a player and an account, and the sessions begun with it.

    Example:
    evenmatch player unlink ann steam 76561197960287930
    """
    from evenmatch.accounts.linked_accounts import LinkedAccounts

    with opened(db) as service:
        unlinked = LinkedAccounts(service.database, service.clock).unlink(name, issuer, subject)
    if json:
        print_json(unlinked)
        return
    print(printable(f"the account {subject} of {issuer} is no longer linked to {unlinked.player}"))


@app.command(name="login-link")
def login_link(
    name: Name,
    site: Annotated[str, option("--site URL", "The address of the web site.")] = "http://127.0.0.1:8080",
    expires: Annotated[str, option("--expires SPAN", "How long the link can be used, such as 15m or 24h.")] = "15m",
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Print a link that logs a player in to the web site, once: for a site without an identity provider.

    Examples:
    evenmatch player login-link ann
    evenmatch player login-link ann --site https://ranks.example --expires 24h
    """
    from evenmatch.accounts.access import OPERATOR
    from evenmatch.accounts.keys import Keys
    from evenmatch.accounts.tokens import Tokens

    with opened(db) as service:
        now, clock = service.clock(), service.clock
        ends = options.end(expires, "--expires", now)
        assert ends is not None
        tokens = Tokens(service.database, clock, Keys(service.database, clock))
        link = tokens.issue_link(OPERATOR, name, lasts=(ends - now) // 1_000_000)
    url = site.rstrip("/") + link.text
    if json:
        print_json({"player": name, "url": url, "expires_at": iso_time(link.expires_at)})
        return
    print(url)


@app.command()
def erase(name: Name, yes: Yes = False, db: Db = DATABASE, json: options.Json = False) -> None:
    """Replace a player by a pseudonym everywhere. This cannot be undone.

    All their names are deleted, including those in team labels and ban reasons. Their matches stay under the pseudonym,
    so no other rating changes. They leave the standings. Exported files and backups are not changed.

    Example:
    evenmatch player erase ann --yes
    """
    from evenmatch.players.profile import dossier

    with opened(db) as service:
        player = dossier(service.database, name, service.clock(), matches=0)
        where = ", ".join(on.ladder.name for on in player.ladders)
        note(
            f"{', '.join(player.names)}: {counted(len(player.names), 'name')} will be deleted"
            + (f" on {counted(len(player.ladders), 'ladder')} ({where})" if where else "")
            + "; matches and ratings of others stay"
        )
        ask("This cannot be undone. Erase them?", yes)
        with working("erasing"):
            pseudonym = acting(service, "player.erased").erase(name)
    if json:
        print_json({"pseudonym": pseudonym, "ladders": [on.ladder.name for on in player.ladders]})
        return
    print(f"erased; their matches now belong to {pseudonym}")


def write_json(document: object, path: Path) -> None:
    """Write a .json file, completely or not at all. Raises UsageError if the path cannot be written."""
    if path.suffix.lower() != ".json":
        raise UsageError(f"{path}: suffix {path.suffix!r}; expected .json")
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
