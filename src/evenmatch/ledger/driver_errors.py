"""Translate errors of the database drivers into clear messages; time limits that some messages name."""

from __future__ import annotations

import sqlite3

from evenmatch.errors import DamageError, EvenmatchError, StoreError, TransactionTimeoutError

IDLE_TIMEOUT = "25P03"  # the SQLSTATE idle_in_transaction_session_timeout
PATIENCE = 60.0  # seconds to wait for another writer
LOCK_LIMIT = 10.0  # seconds that a statement waits for a lock
STATEMENT_LIMIT = 60.0  # seconds that a statement runs
DAMAGED = ("not a database", "malformed", "could not decode to utf-8")  # messages of SQLite in lower case


def translated(shown: str, error: BaseException) -> StoreError:
    """The StoreError for a driver's error."""
    if _is_timeout(error):
        return TransactionTimeoutError(
            f"{shown}: the server ended a transaction because this process kept it waiting for too long; "
            "nothing in it was saved, and it can be sent again"
        )
    text = _explained(error)
    is_damage = isinstance(error, sqlite3.Error) and any(words in text.lower() for words in DAMAGED)
    return (DamageError if is_damage else StoreError)(f"{shown}: {text}")


def _is_timeout(error: BaseException | None) -> bool:
    """True if the server ended an idle transaction; the rollback then fails on the lost connection, too."""
    while error is not None and not isinstance(error, EvenmatchError):
        if getattr(error, "sqlstate", None) == IDLE_TIMEOUT:
            return True
        error = error.__context__
    return False


def _explained(error: BaseException) -> str:
    """Explain a driver error and what to do about it."""
    message = (str(error).strip() or type(error).__name__).splitlines()[0]
    lower = message.lower()
    causes = {
        ("disk is full", "no space left", "disk full", "could not extend file"): "the disk is full; nothing was "
        "saved. Free some space and try again",
        ("read-only transaction",): "the server is not accepting writes: it is a standby, or set to read-only",
        ("readonly", "read-only"): "the file or its folder is not writable; allow writing and try again",
        ("database is locked",): f"another process has been writing for {PATIENCE:.0f} s; nothing was saved, try again",
        DAMAGED: "the file is not an evenmatch database, or it is damaged",
        (
            "disk i/o error",
            "file too large",
        ): "the disk failed, or the file reached a size limit; nothing was saved",
        ("lock timeout",): f"another process has held a lock for {LOCK_LIMIT:g} s; nothing was saved, try again",
        ("statement timeout",): f"a statement took longer than {STATEMENT_LIMIT:g} s; nothing was saved, try again",
        ("unable to open",): "the file cannot be opened; expected a file in a writable folder",
        ("authentication", "role "): "the server refused the login",
    }
    for words, meaning in causes.items():
        if any(word in lower for word in words):
            return f"{meaning} ({message})"
    if "psycopg" in type(error).__module__ and type(error).__name__ in (
        "OperationalError",
        "InterfaceError",
        "AdminShutdown",
        "CrashShutdown",
        "CannotConnectNow",
    ):
        return f"the connection was lost or refused; everything that was not acknowledged can be sent again ({message})"
    return message
