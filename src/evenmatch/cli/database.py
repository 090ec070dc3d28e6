"""Options of the commands that work on a database of ladders, and what they stand for."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.service.service import Service

DATABASE = "evenmatch.db"
VARIABLE = "EVENMATCH_DB"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Db = Annotated[
    str,
    typer.Option(
        "--db", metavar="URL", envvar=VARIABLE, help="An SQLite file, or a URL as postgresql://user@host/name."
    ),
]
OnLadder = Annotated[
    str | None,
    typer.Option("--ladder", "-l", metavar="L", help="The ladder; may be left out where there is only one."),
]
Reason = Annotated[
    str | None, typer.Option("--reason", "-r", metavar="TEXT", help="Why; kept in the ledger with the correction.")
]
Preview = Annotated[bool, typer.Option("--preview", help="Only show who would move and by how much; change nothing.")]


def _not_blank(text: str | None) -> str | None:
    """The id of --id; an empty one would be taken for none."""
    if text is not None and not text.strip():
        raise UsageError(f"--id {shlex.quote(text)}: accepted is any text with a letter, or no --id")
    return text


Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="An id of your choice: sending the same again changes nothing.",
        callback=_not_blank,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class _NoLadderError(Exception):
    """There is no ladder yet: `opened` knows on which database to make one."""


@contextmanager
def opened(db: str) -> Iterator[Service]:
    """The database of --db, which must be there."""
    from evenmatch.service.opening import open_existing

    make = f"To make it: {typed(db, 'ladder create NAME --system S')}"
    if db.strip() and "://" not in db and not Path(db).exists():
        raise UsageError(
            f"{db}: there is no such database; accepted is one that is there, by --db or {VARIABLE}. {make}"
        )
    with open_existing(db) as service:
        try:
            yield service
        except _NoLadderError:
            raise UsageError(f"{shown_database(service)} holds no ladder yet. {make}") from None


def shown_database(service: Service) -> str:
    """The database as a person would type it, without its password."""
    return service.database.shown


def typed(db: str, command: str, *words: object, names: Sequence[str] = ()) -> str:
    """A command that works as it stands when it is typed into a shell, on the same database.

    words  options with their values, and arguments that cannot be taken for an option;  names  other arguments
    --db stands there only where the command would not find the database without it, and never with a password.
    """
    line = ["evenmatch", *command.split(), *map(str, words)]
    if db != (os.environ.get(VARIABLE) or DATABASE):
        from evenmatch.service.opening import without_password

        line += ["--db", without_password(db)]
    if any(name.startswith("-") for name in names):
        line.append("--")
    return shlex.join([*line, *names])


def ladder_of(service: Service, told: str | None) -> str:
    """The ladder of --ladder, or the only one. Raises UsageError where there are none or several."""
    if told is not None:
        return service.ladder(told).name
    names = [ladder.name for ladder in service.ladders()]
    if len(names) == 1:
        return names[0]
    if not names:
        raise _NoLadderError
    raise UsageError(f"there are the ladders {', '.join(names)}; name one with --ladder")


def ask(question: str, yes: bool) -> None:
    """Go on only if the person agrees, or has agreed by --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here; accepted is --yes, which says that it is meant")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)


def minutes_text(micros: int) -> str:
    """A time in UTC to the minute, for tables."""
    return (EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M")


def check_unlike(*files: Path | None) -> None:
    """Raise UsageError now where two of these are the same file."""
    named = [path.resolve() for path in files if path is not None]
    if len(set(named)) < len(named):
        raise UsageError("two of the files are the same; accepted are different ones")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things: 1 match, 2 matches."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
