"""evenmatch key: make, list and revoke the keys by which programs use the service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.database import DATABASE, Db, counted, minutes_text, opened, typed
from evenmatch.cli.output import note, print_json, print_table, printable
from evenmatch.errors import UsageError
from evenmatch.service.callers.access import SCOPES

if TYPE_CHECKING:
    from evenmatch.service.callers.keys import Key

UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds

app = typer.Typer(help="Make, list and revoke the keys by which programs use the service.", no_args_is_help=True)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people know the key by, as the server it is for.")],
    scope: Annotated[
        list[str],
        typer.Option("--scope", "-s", metavar="S", help=f"{', '.join(SCOPES)}; may be given several times."),
    ],
    ladder: Annotated[
        list[str] | None,
        typer.Option("--ladder", "-l", metavar="L", help="For this ladder alone; may be given several times."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="WHEN", help="After 90d, 12h or the like, or at a time, ISO 8601."),
    ] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Make a key, and show it: this once, since only its hash is kept.

    The scopes: report matches; queue players and issue tokens to them; read; admin, which may do everything. Report and
    queue may read too. Without --ladder a key is for all ladders, those to come too; as an admin, such a key alone may
    make ladders and keys. The key goes to standard output, all else to standard error.

    [bold]Examples[/bold]

    evenmatch key create game-server --scope report --ladder duel

    evenmatch key create backend --scope queue --scope report --expires 90d
    """
    from evenmatch.service.callers.keys import Keys

    with opened(db) as service:
        ends = _moment(expires, service.clock())
        made, text = Keys(service.database, service.clock).create(name, scope, ladder or None, ends)
    if json:
        print_json({**plain_key(made), "text": text})
        return
    print(text)
    until = "" if made.expires_at is None else f", until {minutes_text(made.expires_at)} UTC"
    note(f"key {made.key} ({made.name}): may {_scopes(made)} on {_ladders(made)}{until}")
    note(f"keep it now, it cannot be shown again; to end it: {typed(db, 'key revoke', made.key)}")


@app.command(name="list")
def list_(db: Db = DATABASE, json: options.Json = False) -> None:
    """List the keys, those that were revoked or have expired among them.

    [bold]Example[/bold]

    evenmatch key list
    """
    from evenmatch.service.callers.keys import Keys

    with opened(db) as service:
        keys, now = Keys(service.database, service.clock).list(), service.clock()
    if json:
        print_json([{**plain_key(one), "state": one.state(now)} for one in keys])
        return
    rows = [
        [one.key, one.name, _scopes(one), _ladders(one), minutes_text(one.created_at), _state(one, now)] for one in keys
    ]
    print_table(counted(len(rows), "key"), ("key", "name", "scopes", "ladders", "made (UTC)", "state"), rows)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, em_ and 10 letters, as `key list` shows it.")],
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """End a key, and the players' tokens it issued, for ever; every process heeds it within two seconds.

    [bold]Example[/bold]

    evenmatch key revoke em_k3x7qa2mzp
    """
    from evenmatch.service.callers.keys import Keys

    with opened(db) as service:
        revoked = Keys(service.database, service.clock).revoke(key)
    if json:
        print_json(plain_key(revoked))
        return
    assert revoked.revoked_at is not None
    print(printable(f"key {revoked.key} ({revoked.name}): revoked at {minutes_text(revoked.revoked_at)} UTC"))


def plain_key(key: Key) -> dict[str, object]:
    """A key as data."""
    from evenmatch.service.times import iso_time

    times = {"created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at}
    told = {name: None if at is None else iso_time(at) for name, at in times.items()}
    ladders = None if key.ladders is None else list(key.ladders)
    return {"key": key.key, "name": key.name, "scopes": list(key.scopes), "ladders": ladders, **told}


def _moment(text: str | None, now: int) -> int | None:
    """The time of --expires, in microseconds: so long after now, or as it says."""
    if text is None:
        return None
    span = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text)
    if span is not None:
        return now + int(span[1]) * UNITS[span[2]] * 1_000_000
    try:
        moment = options.moment(text, "--expires")
    except UsageError:
        moment = None
    if moment is None or moment <= now:
        raise UsageError(f"--expires {text}: accepted is a span, as 90d, 12h, 30m or 4w, or a time to come, ISO 8601")
    return moment


def _scopes(key: Key) -> str:
    return ", ".join(key.scopes)


def _ladders(key: Key) -> str:
    return "all ladders" if key.ladders is None else ", ".join(key.ladders)


def _state(key: Key, now: int) -> str:
    at = {"revoked": key.revoked_at, "expired": key.expires_at}.get(key.state(now))
    if at is not None:
        return f"{key.state(now)} {minutes_text(at)}"
    return "good" if key.expires_at is None else f"good until {minutes_text(key.expires_at)}"
