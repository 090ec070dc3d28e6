"""evenmatch key: create, list and revoke the API keys of programs that use the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.accounts.access import SCOPES
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, counted, minutes_text, opened, typed
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import as_data, note, print_json, print_table, printable

if TYPE_CHECKING:
    from evenmatch.accounts.keys import Key

app = typer.Typer(help="Create, list and revoke the API keys of programs that use the service.", no_args_is_help=True)


@app.command()
def create(
    name: Annotated[str, argument("NAME", "A label, such as the name of the server that uses it.")],
    scope: Annotated[list[str], option("--scope, -s S", f"{', '.join(SCOPES)}; repeatable.")],
    ladder: Annotated[list[str] | None, option("--ladder, -l L", "Only for this ladder; repeatable.")] = None,
    expires: Annotated[str | None, option("--expires WHEN", "A span like 90d or 12h, or an ISO 8601 time.")] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Create an API key and print it. The key is not stored, so it cannot be printed again.

    Scopes: `report` reports matches, `queue` queues players and issues their tokens, `read` reads, `ratings` also reads
    ratings that a ladder hides from its players, `admin` does everything. All include read; report includes ratings.
    Without --ladder, a key is valid for all present and future ladders. Only such a key with scope admin can create
    ladders and keys. The key goes to standard output, everything else to standard error.

    Examples:
    evenmatch key create game-server --scope report --ladder duel
    evenmatch key create backend --scope queue --scope report --expires 90d
    """
    from evenmatch.accounts.keys import Keys

    with opened(db) as service:
        ends = options.end(expires, "--expires", service.clock())
        created, text = Keys(service.database, service.clock).create(name, scope, ladder or None, ends)
    if json:
        print_json({**as_data(created), "text": text})
        return
    print(text)
    until = "" if created.expires_at is None else f", until {minutes_text(created.expires_at)} UTC"
    note(f"key {created.key} ({created.name}): may {_scopes(created)} on {_ladders(created)}{until}")
    note(f"store it now; it cannot be shown again. To revoke it: {typed(db, 'key revoke', created.key)}")


@app.command(name="list")
def list_(db: Db = DATABASE, json: options.Json = False) -> None:
    """List the keys, including revoked and expired ones.

    Example:
    evenmatch key list
    """
    from evenmatch.accounts.keys import Keys

    with opened(db) as service:
        keys, now = Keys(service.database, service.clock).list(), service.clock()
    if json:
        print_json([{**as_data(key), "state": key.state(now)} for key in keys])
        return
    rows = [
        [key.key, key.name, _scopes(key), _ladders(key), minutes_text(key.created_at), _state(key, now)] for key in keys
    ]
    print_table(counted(len(rows), "key"), ("key", "name", "scopes", "ladders", "created (UTC)", "state"), rows)


@app.command()
def revoke(
    key: Annotated[str, argument("ID", "The key's id, em_ and 10 letters, as `key list` shows it.")],
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Revoke a key permanently, with the player tokens it issued; all processes refuse it within 2 seconds.

    Example:
    evenmatch key revoke em_k3x7qa2mzp
    """
    from evenmatch.accounts.keys import Keys

    with opened(db) as service:
        revoked = Keys(service.database, service.clock).revoke(key)
    if json:
        print_json(revoked)
        return
    assert revoked.revoked_at is not None
    print(printable(f"key {revoked.key} ({revoked.name}): revoked at {minutes_text(revoked.revoked_at)} UTC"))


def _scopes(key: Key) -> str:
    return ", ".join(key.scopes)


def _ladders(key: Key) -> str:
    return "all ladders" if key.ladders is None else ", ".join(key.ladders)


def _state(key: Key, now: int) -> str:
    ended_at = {"revoked": key.revoked_at, "expired": key.expires_at}.get(key.state(now))
    if ended_at is not None:
        return f"{key.state(now)} {minutes_text(ended_at)}"
    return "good" if key.expires_at is None else f"good until {minutes_text(key.expires_at)}"
