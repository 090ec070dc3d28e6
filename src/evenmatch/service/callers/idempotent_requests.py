"""Requests with an Idempotency-Key: each is carried out once, and its answer is repeated for a day."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.errors import ConflictError, EvenmatchError, RateLimitError, StillRunningError, StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import audit_entries, idempotent_requests
from evenmatch.ledger.tables.idempotent_requests import Attempt, RequestId
from evenmatch.service.callers.access import Caller
from evenmatch.service.callers.kept_requests import COUNTED_EVERY, KEPT, KeptRequests

LEASE = 30 * SECOND  # a process that has not extended the lease of its request for so long is considered dead
PRUNE_EVERY = 60 * SECOND
MOST_OF_PLAYER = 1_000  # requests of a player that are kept
AGAIN = 1.0  # seconds after which to send a request again that is still running

log = logging.getLogger(__name__)

__all__ = ["Answer", "Attempt", "EndedRequest", "IdempotentRequest", "IdempotentRequests"]


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


EndedRequest = tuple[Attempt, Answer | None]


class IdempotentRequest(NamedTuple):
    """A request that a caller identified by a key of their choice.

    content  SHA-256 of what is requested;  request  id in the log and the audit trail
    """

    caller: Caller
    key: str
    content: bytes
    request: str


class IdempotentRequests:
    """The requests of a database that have an Idempotency-Key. Thread-safe, and any number of processes may take part.

    No transaction here is durable by itself: if the power fails, what was done after it is lost with it.
    """

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._kept = KeptRequests(database, clock)

    def begin(self, requests: Sequence[IdempotentRequest]) -> list[Answer | Attempt | EvenmatchError]:
        """For each request: its answer, or an attempt that the caller must now carry out and end.

        Or an error: StillRunningError; ConflictError if the key was used for other content, or the request was carried
        out and its answer lost; RateLimitError for a caller with too many kept requests.
        """
        now = self._clock()
        attempts = [_attempt(request, now) for request in requests]
        first: dict[RequestId, Attempt] = {}
        for attempt in attempts:
            first.setdefault(attempt.id, attempt)
        with self._database.write(durable=False) as store:
            full = {
                caller.key: reason
                for caller in {request.caller.key: request.caller for request in requests}.values()
                if (reason := self._refusal(store, caller)) is not None
            }
            allowed = [attempt for attempt in first.values() if attempt.id.caller not in full]
            new = idempotent_requests.insert_new(store, allowed)
            inserted = frozenset(new)
            outcomes: list[Answer | Attempt | EvenmatchError] = []
            for request, attempt in zip(requests, attempts, strict=True):
                if attempt.id in new:
                    outcomes.append(attempt)
                    new.remove(attempt.id)
                else:
                    outcomes.append(_again(store, request, attempt, full.get(request.caller.key)))
        for outcome in outcomes:
            if isinstance(outcome, Attempt) and outcome.id in inserted:
                self._kept.add(outcome, 1)
        return outcomes

    def _refusal(self, store: Store, caller: Caller) -> RateLimitError | None:
        """Why no further request of a caller is kept; None: it is."""
        reason = self._kept.refusal(caller)
        if reason is not None:
            return RateLimitError(reason, COUNTED_EVERY / SECOND)
        if caller.player is None or idempotent_requests.count(store, caller.key, MOST_OF_PLAYER) < MOST_OF_PLAYER:
            return None
        return RateLimitError(
            f"{caller.actor} has used {MOST_OF_PLAYER:,} Idempotency-Keys within a day, which is the limit; send the "
            "request without one",
            KEPT / SECOND,
        )

    def run(self, stop: threading.Event) -> None:
        """Count the kept requests and delete old ones until `stop` is set. Safe to run in many processes."""
        while True:
            try:
                self._kept.count()
                with self._database.write(durable=False) as store:
                    idempotent_requests.delete_begun_before(store, self._clock() - KEPT)
            except StoreError as error:
                log.warning("counting and deleting old requests failed and will be tried again: %s", error)
            if stop.wait(PRUNE_EVERY / SECOND):
                return

    def end(self, ended: Sequence[EndedRequest]) -> list[None]:
        """Store the answers of attempts; None: forget the attempt, which was refused before it changed anything."""
        answers = [(attempt, answer.status, _packed(answer)) for attempt, answer in ended if answer is not None]
        with self._database.write(durable=False) as store:
            if answers:
                idempotent_requests.set_answers(store, answers)
            for attempt, answer in ended:
                if answer is None:
                    idempotent_requests.delete(store, attempt)
        for attempt, _, packed in answers:
            self._kept.add(attempt, 0, len(packed))
        for attempt, answer in ended:
            if answer is None:
                self._kept.add(attempt, -1)
        return [None] * len(ended)

    def extend(self, attempt: Attempt) -> None:
        """Extend the lease of an attempt that still runs, at least once in half of LEASE."""
        with self._database.write(durable=False) as store:
            idempotent_requests.set_lease(store, attempt, self._clock() + LEASE)

    def release(self, attempt: Attempt) -> None:
        """End the lease of an attempt that failed: the request can be sent again, unless the audit trail has it."""
        with self._database.write(durable=False) as store:
            idempotent_requests.set_lease(store, attempt, self._clock())


def _attempt(request: IdempotentRequest, now: int) -> Attempt:
    digest = hashlib.sha256(request.key.encode()).digest()
    return Attempt(RequestId(request.caller.key, digest), request.content, request.request, now, now + LEASE)


def _again(
    store: Store, request: IdempotentRequest, attempt: Attempt, refusal: RateLimitError | None
) -> Answer | Attempt | EvenmatchError:
    """The outcome for a request whose key is stored, or else is refused; None: it is not."""
    stored, shown = idempotent_requests.read(store, attempt.id), f"the Idempotency-Key {request.key[:80]!r}"
    running = StillRunningError(f"the request with {shown} is running", AGAIN)
    if stored is None:
        return running if refusal is None else refusal
    before = stored.attempt
    if before.begun_at > attempt.begun_at - KEPT:
        if before.content != attempt.content:
            return ConflictError(
                f"{shown} was used for another request; expected a new key for each request, and the same method, "
                "address and body when it is sent again"
            )
        if stored.answer is not None:
            return _unpacked(stored.answer)
        if before.held_until > attempt.begun_at:
            return running
        if audit_entries.contains(store, request.caller.actor, before.request, before.begun_at):
            return ConflictError(
                f"the request with {shown} was carried out, and its answer was lost with the process that ran it; read "
                "what it has changed"
            )
    return attempt if idempotent_requests.replace(store, before, attempt) else running


def _packed(answer: Answer) -> bytes:
    head = json.dumps([answer.status, answer.headers]).encode()
    return zlib.compress(head + b"\n" + answer.body)


def _unpacked(packed: bytes) -> Answer:
    head, _, body = zlib.decompress(packed).partition(b"\n")
    status, headers = json.loads(head)
    return Answer(status, tuple((name, value) for name, value in headers), body)
