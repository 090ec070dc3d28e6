"""Requests with an Idempotency-Key: each is carried out once, and its answer is repeated for a day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import NamedTuple

from evenmatch.accounts import account_sql, request_sql
from evenmatch.accounts.access import Caller
from evenmatch.accounts.request_sql import Attempt
from evenmatch.durations import SECOND
from evenmatch.errors import ConflictError, RateLimitError, StillRunningError
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store

__all__ = ["LEASE", "Answer", "Attempt", "IdempotentRequests"]

KEPT = 86_400 * SECOND  # how long an answer is stored
PRUNE_EVERY = 60 * SECOND
LEASE = 30 * SECOND  # a process that has not extended the lease of its request for this long is considered dead
PER_PLAYER = 1_000  # most requests stored for a player's token
RETRY_AFTER = 1.0  # seconds


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class IdempotentRequests:
    """The stored requests with an Idempotency-Key. Safe to share between threads and processes.

    These transactions are not durable by themselves: a power failure loses them only together with the change.
    """

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._pruned_at = 0

    def begin(self, caller: Caller, key: str, content: bytes, request: str) -> Answer | Attempt:
        """Return the answer of an earlier request, or an attempt that the caller must now carry out and end.

        content  SHA-256 of what is requested;  request  id in the log and the audit trail
        Raises StillRunningError; ConflictError if the key was used for other content, or the request was carried out
        and its answer lost; RateLimitError for a player with too many requests.
        """
        now = self._clock()
        attempt = Attempt(caller.key, hashlib.sha256(key.encode()).hexdigest(), content, request, now)
        with self._database.write(durable=False) as store:
            if now - self._pruned_at >= PRUNE_EVERY:
                request_sql.delete_begun_before(store, now - KEPT)
                self._pruned_at = now
            is_full = caller.player is not None and request_sql.count(store, caller.key, PER_PLAYER) >= PER_PLAYER
            if not is_full and request_sql.insert(store, attempt, now + LEASE):
                return attempt
            outcome = _repeated(store, caller, attempt, f"the Idempotency-Key {key[:80]!r}")
        if outcome is None and is_full:
            raise RateLimitError(
                f"{caller.actor} has used {PER_PLAYER:,} Idempotency-Keys within a day, which is the limit; send the "
                "request without one",
                KEPT / SECOND,
            )
        if outcome is None:
            raise StillRunningError(f"the request with the Idempotency-Key {key[:80]!r} is running", RETRY_AFTER)
        return outcome

    def end(self, attempt: Attempt, answer: Answer | None) -> None:
        """Store the answer of an attempt; None: the attempt changed nothing, and the request can be sent again."""
        with self._database.write(durable=False) as store:
            if answer is None:
                request_sql.delete(store, attempt)
            else:
                head = json.dumps([answer.status, answer.headers]).encode()
                request_sql.set_answer(store, attempt, head + b"\n" + answer.body)

    def extend(self, attempt: Attempt) -> None:
        """Extend the lease of a running attempt. Call it more often than every LEASE / 2."""
        with self._database.write(durable=False) as store:
            request_sql.set_lease(store, attempt, self._clock() + LEASE)

    def release(self, attempt: Attempt) -> None:
        """End the lease of a failed attempt. The request can then be sent again, unless it is in the audit trail."""
        with self._database.write(durable=False) as store:
            request_sql.set_lease(store, attempt, self._clock())


def _repeated(store: Store, caller: Caller, attempt: Attempt, shown: str) -> Answer | Attempt | None:
    """Return the outcome of a stored request; None if it is running or has been deleted."""
    stored = request_sql.read(store, attempt.caller, attempt.digest)
    if stored is None:
        return None
    before, held_until, answer = stored
    if before.content != attempt.content:
        raise ConflictError(
            f"{shown} was used for another request; use a new key for each request, and the same method, address and "
            "body to repeat one"
        )
    if answer is not None:
        head, _, body = answer.partition(b"\n")
        status, headers = json.loads(head)
        return Answer(status, tuple((name, value) for name, value in headers), body)
    if held_until > attempt.begun_at:
        return None
    if account_sql.has_audit_entry(store, caller.actor, before.request, before.begun_at):
        raise ConflictError(
            f"the request with {shown} was carried out, but its answer was lost with the process that ran it; read "
            "what it changed"
        )
    is_first = request_sql.replace(store, before, attempt, attempt.begun_at + LEASE)
    return attempt if is_first else None
