"""Options and helpers of the commands that work on a database of ladders."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared.options import option
from evenmatch.errors import DamageError, UsageError
from evenmatch.times import EPOCH

if TYPE_CHECKING:
    from evenmatch.accounts.audit_trail import AuditEntry
    from evenmatch.operations.service import Service

DATABASE = "evenmatch.db"
VARIABLE = "EVENMATCH_DB"
Db = Annotated[str, option("--db URL", "An SQLite file, or a URL like postgresql://user@host/name.", envvar=VARIABLE)]
OnLadder = Annotated[str | None, option("--ladder, -l L", "The ladder; may be omitted if there is only one.")]
Reason = Annotated[str | None, option("--reason, -r TEXT", "Why; stored in the ledger with the correction.")]
Preview = Annotated[bool, option("--preview", "Only show how ratings would change; change nothing.")]


def _not_blank(text: str | None) -> str | None:
    """Return the id of --id. Raises UsageError for a blank one."""
    if text is not None and not text.strip():
        raise UsageError(f"--id {shlex.quote(text)}: expected text that is not blank, or no --id")
    return text


Id = Annotated[
    str | None, option("--id ID", "An id of your choice; repeating it changes nothing.", callback=_not_blank)
]
Yes = Annotated[bool, option("--yes, -y", "Do not ask for confirmation.")]


class _NoLadderError(Exception):
    """The database has no ladder yet; `opened` turns this into a UsageError that names the database."""


@contextmanager
def opened(db: str) -> Iterator[Service]:
    """Open the database of --db. Raises UsageError if it does not exist."""
    from evenmatch.operations.open_database import open_existing

    create = f"To create it: {typed(db, 'ladder create NAME --system S')}"
    if db.strip() and "://" not in db and not Path(db).exists():
        raise UsageError(f"{db}: there is no such database; give an existing one by --db or {VARIABLE}. {create}")
    with open_existing(db) as service:
        try:
            yield service
        except _NoLadderError:
            raise UsageError(f"{shown_database(service)} has no ladder yet. {create}") from None


def shown_database(service: Service) -> str:
    """Return the name of the database as the user would type it, without its password."""
    return service.database.shown


def typed(db: str, command: str, *words: object, names: Sequence[str] = ()) -> str:
    """A command line for the same database, quoted so that it can be pasted into a shell.

    words  options with their values, and arguments that cannot be mistaken for an option;  names  other arguments
    --db is included only if the command would not find the database without it, and never with a password.
    """
    line = ["evenmatch", *command.split(), *map(str, words)]
    if db != (os.environ.get(VARIABLE) or DATABASE):
        from evenmatch.operations.open_database import without_password

        line += ["--db", without_password(db)]
    if any(name.startswith("-") for name in names):
        line.append("--")
    return shlex.join([*line, *names])


def ladder_of(service: Service, given: str | None) -> str:
    """The ladder of --ladder, or the only one. Raises UsageError if it is omitted and there are none or several."""
    if given is not None:
        return service.ladder(given).name
    names = [ladder.name for ladder in service.ladders()]
    if len(names) == 1:
        return names[0]
    if not names:
        raise _NoLadderError
    raise UsageError(f"there are the ladders {', '.join(names)}; name one with --ladder")


def ask(question: str, yes: bool) -> None:
    """Ask for confirmation unless --yes was given; exit with 1 if it is refused."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("standard input is not a terminal, so confirmation is not possible; give --yes to confirm")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)


def minutes_text(micros: int) -> str:
    """A time in UTC to the minute, for tables. Raises DamageError for a stored time that no calendar has."""
    try:
        return (EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M")
    except OverflowError as error:
        raise DamageError(
            f"a stored time is {micros} microseconds after 1970, expected one before the year 10000; "
            "`evenmatch verify` shows what is damaged"
        ) from error


def counted(number: int, noun: str, plural: str = "") -> str:
    """A count with its noun: 1 match, 2 matches."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def audit_entry(
    action: str, ladder: str | None = None, target: str | None = None, body: Mapping[str, object] | None = None
) -> AuditEntry:
    """Make the audit entry of an operator's command. Actions have the same names as in the HTTP API."""
    from evenmatch.accounts.access import OPERATOR
    from evenmatch.accounts.audit_trail import AuditEntry

    return AuditEntry(OPERATOR, action, ladder, target, {} if body is None else body)


def acting(
    service: Service,
    action: str,
    ladder: str | None = None,
    target: str | None = None,
    body: Mapping[str, object] | None = None,
) -> Service:
    """The same service, recording its changes with this audit entry."""
    return service.noting(audit_entry(action, ladder, target, body))
