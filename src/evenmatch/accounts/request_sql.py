"""Rows of table `idempotent_request`: requests with an Idempotency-Key, and their sealed answers."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.ledger import secret_rows
from evenmatch.ledger.store import Store

_TABLE = "idempotent_request"
_OF_ATTEMPT = "WHERE caller = ? AND digest = ? AND begun_at = ? AND answer IS NULL"


class Attempt(NamedTuple):
    """An attempt of a process to carry out a request.

    digest    SHA-256 of the Idempotency-Key, in hexadecimal;  content  SHA-256 of what was requested
    request   id in the log and the audit trail
    begun_at  microseconds since the epoch; identifies the attempt among those of the same request
    """

    caller: str
    digest: str
    content: bytes
    request: str
    begun_at: int


def insert(store: Store, attempt: Attempt, held_until: int) -> bool:
    """Insert an attempt; return False if the request is stored already."""
    sql = (
        "INSERT INTO idempotent_request (caller, digest, content, request, begun_at, held_until) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"
    )
    return bool(store.all(sql, *attempt, held_until))


def read(store: Store, caller: str, digest: str) -> tuple[Attempt, int, bytes | None] | None:
    """Return the last attempt of a request, the end of its lease, and its answer (None while it runs).

    Raises SecretError.
    """
    sql = (
        "SELECT content, request, begun_at, held_until, answer FROM idempotent_request WHERE caller = ? AND digest = ?"
    )
    for content, request, begun_at, held_until, sealed in store.all(sql, caller, digest):
        attempt = Attempt(caller, digest, bytes(content), request, begun_at)
        opened = None if sealed is None else store.master.sealer().open(bytes(sealed), _TABLE, caller, digest)
        return attempt, held_until, opened
    return None


def replace(store: Store, before: Attempt, by: Attempt, held_until: int) -> bool:
    """Replace an unanswered attempt by a new one; return False if another process was faster."""
    sql = f"UPDATE idempotent_request SET request = ?, begun_at = ?, held_until = ? {_OF_ATTEMPT} RETURNING 1"
    return bool(store.all(sql, by.request, by.begun_at, held_until, before.caller, before.digest, before.begun_at))


def count(store: Store, caller: str, most: int) -> int:
    """Count the requests of a caller, up to `most`."""
    sql = "SELECT COUNT(*) FROM (SELECT 1 FROM idempotent_request WHERE caller = ? LIMIT ?) AS counted"
    number: int = store.all(sql, caller, most)[0][0]
    return number


def set_answer(store: Store, attempt: Attempt, answer: bytes) -> None:
    """Store the answer of an attempt, unless another attempt has replaced it. Raises SecretError."""
    sealed = secret_rows.sealer(store).seal(answer, _TABLE, attempt.caller, attempt.digest)
    sql = f"UPDATE idempotent_request SET answer = ? {_OF_ATTEMPT}"
    store.run(sql, sealed, attempt.caller, attempt.digest, attempt.begun_at)


def set_lease(store: Store, attempt: Attempt, held_until: int) -> None:
    """Extend or end the lease of an unanswered attempt."""
    sql = f"UPDATE idempotent_request SET held_until = ? {_OF_ATTEMPT}"
    store.run(sql, held_until, attempt.caller, attempt.digest, attempt.begun_at)


def delete(store: Store, attempt: Attempt) -> None:
    """Delete an unanswered attempt."""
    sql = f"DELETE FROM idempotent_request {_OF_ATTEMPT}"
    store.run(sql, attempt.caller, attempt.digest, attempt.begun_at)


def delete_begun_before(store: Store, time: int) -> None:
    """Delete the requests that began before a time in microseconds."""
    store.run("DELETE FROM idempotent_request WHERE begun_at < ?", time)


def delete_all(store: Store) -> None:
    """Delete all requests."""
    store.run("DELETE FROM idempotent_request")
