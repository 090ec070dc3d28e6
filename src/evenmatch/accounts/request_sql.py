"""Rows of table `idempotent_request`: requests with an Idempotency-Key, who runs them, and their sealed answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from evenmatch.ledger import secret_checks
from evenmatch.ledger.secrets import Sealer
from evenmatch.ledger.store import Store

_TABLE = "idempotent_request"
KEY_LENGTH = 13  # characters of an API key's id, with which the id of a player's caller begins
_TOGETHER = 100  # rows per statement


class RequestId(NamedTuple):
    """The caller, and the SHA-256 of the Idempotency-Key that they chose."""

    caller: str
    digest: bytes

    @property
    def row(self) -> str:
        """The name of the row for which its answer is sealed."""
        return f"{self.caller} {self.digest.hex()}"


class Attempt(NamedTuple):
    """A request that a process runs.

    content     SHA-256 of what was requested;  request  id in the log and the audit trail
    begun_at    identifies the attempt among those of the same request;  held_until  end of its lease
    """

    id: RequestId
    content: bytes
    request: str
    begun_at: int
    held_until: int


class StoredRequest(NamedTuple):
    """A request as it is stored. status and answer: None while it runs."""

    attempt: Attempt
    status: int | None
    answer: bytes | None


def insert_new(store: Store, attempts: Sequence[Attempt]) -> set[RequestId]:
    """Insert those whose request is not stored; return their ids. At most one attempt of each request."""
    new: set[RequestId] = set()
    ordered = sorted(attempts)
    for first in range(0, len(ordered), _TOGETHER):
        batch = [(*attempt.id, *attempt[1:]) for attempt in ordered[first : first + _TOGETHER]]
        values = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(batch))
        sql = (
            "INSERT INTO idempotent_request (caller, digest, content, request, begun_at, held_until) "
            f"VALUES {values} ON CONFLICT DO NOTHING RETURNING caller, digest"
        )
        new |= {RequestId(row[0], bytes(row[1])) for row in store.all(sql, *chain.from_iterable(batch))}
    return new


def read(store: Store, request: RequestId) -> StoredRequest | None:
    """A stored request, its answer opened; None if there is none. Raises SecretError."""
    sql = (
        "SELECT content, request, begun_at, held_until, status, answer FROM idempotent_request "
        "WHERE caller = ? AND digest = ?"
    )
    rows = store.all(sql, *request)
    if not rows:
        return None
    content, name, begun_at, held_until, status, sealed = rows[0]
    answer = None if sealed is None else store.master.sealer().open(bytes(sealed), _TABLE, request.row)
    return StoredRequest(Attempt(request, bytes(content), name, begun_at, held_until), status, answer)


def replace(store: Store, before: Attempt, by: Attempt) -> bool:
    """Replace an attempt and its answer by a new attempt; False: another one was faster."""
    sql = (
        "UPDATE idempotent_request SET content = ?, request = ?, begun_at = ?, held_until = ?, "
        "status = NULL, answer = NULL WHERE caller = ? AND digest = ? AND begun_at = ? RETURNING 1"
    )
    return bool(store.all(sql, *by[1:], *before.id, before.begun_at))


def count(store: Store, caller: str, most: int) -> int:
    """The number of requests of a caller; counts up to `most`."""
    sql = "SELECT COUNT(*) FROM (SELECT 1 FROM idempotent_request WHERE caller = ? LIMIT ?) AS counted"
    number: int = store.all(sql, caller, most)[0][0]
    return number


def sizes(store: Store, begun_after: int) -> list[tuple[str, bool, int, int]]:
    """(API key, whether of its players, number, bytes of answers) of the requests after a time. Reads all rows."""
    sql = (
        "SELECT SUBSTR(caller, 1, ?), LENGTH(caller) > ?, COUNT(*), COALESCE(SUM(LENGTH(answer)), 0) "
        "FROM idempotent_request WHERE begun_at > ? GROUP BY 1, 2"
    )
    rows = store.all(sql, KEY_LENGTH, KEY_LENGTH, begun_after)
    return [(key, bool(is_player), int(number), int(size)) for key, is_player, number, size in rows]


def set_answers(store: Store, answers: Iterable[tuple[Attempt, int, bytes]]) -> None:
    """Store status and answer of these attempts, unless others have replaced them. Raises SecretError."""
    sealer = secret_checks.sealer(store)
    sql = (
        "UPDATE idempotent_request SET status = ?, answer = ? "
        "WHERE caller = ? AND digest = ? AND begun_at = ? AND status IS NULL"
    )
    for attempt, status, answer in sorted(answers):
        sealed = sealer.seal(answer, _TABLE, attempt.id.row)
        store.run(sql, status, sealed, *attempt.id, attempt.begun_at)


def set_lease(store: Store, attempt: Attempt, held_until: int) -> None:
    """Extend or end the lease of an attempt that has no answer."""
    sql = (
        "UPDATE idempotent_request SET held_until = ? "
        "WHERE caller = ? AND digest = ? AND begun_at = ? AND status IS NULL"
    )
    store.run(sql, held_until, *attempt.id, attempt.begun_at)


def delete(store: Store, attempt: Attempt) -> None:
    """Delete an attempt that has no answer, so that the request can be sent again."""
    sql = "DELETE FROM idempotent_request WHERE caller = ? AND digest = ? AND begun_at = ? AND status IS NULL"
    store.run(sql, *attempt.id, attempt.begun_at)


def delete_begun_before(store: Store, time: int) -> None:
    """Delete requests that began before a time in microseconds."""
    store.run("DELETE FROM idempotent_request WHERE begun_at < ?", time)


def delete_all(store: Store) -> None:
    """Delete all requests, since their answers cannot be opened any more."""
    store.run("DELETE FROM idempotent_request")


def reseal(store: Store, old: Sealer, new: Sealer) -> None:
    """Seal all answers with another master secret."""
    for caller, digest, sealed in store.all(
        "SELECT caller, digest, answer FROM idempotent_request WHERE answer IS NOT NULL"
    ):
        row = RequestId(caller, bytes(digest)).row
        answer = new.seal(old.open(bytes(sealed), _TABLE, row), _TABLE, row)
        store.run("UPDATE idempotent_request SET answer = ? WHERE caller = ? AND digest = ?", answer, caller, digest)
