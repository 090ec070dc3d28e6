"""evenmatch secret: the master secret, with which a database is sealed that signs for keys, tokens and webhooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, Yes, ask, counted, opened, shown_database
from evenmatch.cli.shared.output import note, print_json, printable

app = typer.Typer(help="The master secret, with which secrets in a database are sealed.", no_args_is_help=True)


@app.command()
def new() -> None:
    """Print a new master secret.

    It seals what a database contains that could sign: keys, tokens, sessions and webhooks. So a copy of the database
    opens nothing. Give it to all processes as EVENMATCH_SECRET, or as a file that EVENMATCH_SECRET_FILE names, and keep
    a copy apart from backups. An SQLite database gets one by itself, in a file beside it, unless one is set.

    [bold]Example[/bold]

    evenmatch secret new > /etc/evenmatch/secret
    """
    from evenmatch.operations.master_secret import new_secret

    print(new_secret())


@app.command()
def rotate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file with the new master secret.")],
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Seal everything in a database with another master secret, in one transaction.

    The present one is that of the environment, or of the file beside an SQLite database, which is replaced. Keys,
    tokens, sessions and webhooks stay valid. Stop the processes of the service first, and start them with the new one.

    [bold]Example[/bold]

    evenmatch secret rotate /etc/evenmatch/secret-2027
    """
    from evenmatch.operations import master_secret

    with opened(db) as service:
        shown = shown_database(service)
        place = master_secret.rotate(service.database, file, service.clock)
    if json:
        print_json({"database": shown, "file": None if place is None else str(place)})
        return
    print(printable(f"{shown}: sealed with the master secret of {file}"))
    note("start all processes with it" if place is None else f"it is in {place} now, where processes find it")


@app.command()
def reset(db: Db = DATABASE, yes: Yes = False, json: options.Json = False) -> None:
    """Replace everything that is sealed, because the master secret is lost, or others have seen what it sealed.

    Set another master secret first; an SQLite database gets one in a new file. All players' tokens and sessions end,
    existing keys cannot sign requests any more, and webhooks get new secrets, which are printed. Keys that are sent as
    they are stay valid. Stop the processes of the service first.

    [bold]Example[/bold]

    evenmatch secret reset
    """
    from evenmatch.operations import master_secret

    ask("Replace the secrets of tokens, sessions and webhooks, and let no existing key sign any more?", yes)
    with opened(db) as service:
        shown = shown_database(service)
        replaced = master_secret.reset(service.database, service.clock)
    if json:
        print_json({"database": shown, "webhooks": [hook._asdict() for hook in replaced]})
        return
    for hook in replaced:
        print(printable(f"webhook {hook.webhook} ({hook.url}): {hook.secret}"))
    note(f"{shown}: tokens and sessions have ended, keys that sign must be replaced")
    if replaced:
        note(f"give {counted(len(replaced), 'webhook')} the secret that is shown; it cannot be shown again")
