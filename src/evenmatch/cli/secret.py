"""evenmatch secret: the master secret that encrypts the secrets in a database."""

from __future__ import annotations

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, Yes, ask, counted, opened, shown_database
from evenmatch.cli.shared.output import note, print_json, printable

app = typer.Typer(help="The master secret, which encrypts the secrets in a database.", no_args_is_help=True)


@app.command()
def new() -> None:
    """Print a new master secret.

    It encrypts the signing keys and webhook secrets in a database, and signs tokens and sessions, so a copy of the
    database is worth nothing to a thief. Give it to all processes as EVENMATCH_SECRET, or in a file named by
    EVENMATCH_SECRET_FILE, and keep a copy apart from backups. An SQLite database creates one in a file beside it.

    Examples:
    evenmatch secret new > /etc/evenmatch/secret
    """
    from evenmatch.operations.master_secret import new_secret

    print(new_secret())


@app.command()
def rotate(db: Db = DATABASE, json: options.Json = False) -> None:
    """Encrypt all secrets again with the newest key of the master secret.

    First put a new key above the old one in the secret and restart all processes: the first key encrypts, all keys
    decrypt. Then run this command, and remove the old key a day later, when the last token signed with it has expired.

    Examples:
    evenmatch secret rotate
    """
    from evenmatch.operations import master_secret

    with opened(db) as service:
        shown = shown_database(service)
        master_secret.rotate(service.database, service.clock)
    if json:
        print_json({"database": shown})
        return
    print(printable(f"{shown}: everything is encrypted with the first key of the master secret"))
    note("remove the old key a day from now, when the last token signed with it has expired")


@app.command()
def reset(db: Db = DATABASE, yes: Yes = False, json: options.Json = False) -> None:
    """Replace all secrets in a database, because the master secret is lost or was stolen.

    Set a new master secret first; an SQLite database creates one. Players' tokens and sessions end, existing keys can
    no longer sign requests, and webhooks get new secrets, which are printed. Bearer keys stay valid. Stop the processes
    of the service first.

    Examples:
    evenmatch secret reset
    """
    from evenmatch.operations import master_secret

    ask("End all tokens and sessions, replace webhook secrets, and stop existing keys from signing?", yes)
    with opened(db) as service:
        shown = shown_database(service)
        replaced = master_secret.reset(service.database, service.clock)
    if json:
        print_json({"database": shown, "webhooks": [hook._asdict() for hook in replaced]})
        return
    for hook in replaced:
        print(printable(f"webhook {hook.webhook} ({hook.url}): {hook.secret}"))
    note(f"{shown}: tokens and sessions have ended; replace the keys that sign")
    if replaced:
        note(f"give {counted(len(replaced), 'receiver')} the secret shown above; it cannot be shown again")
