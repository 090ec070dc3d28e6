"""Requests with an Idempotency-Key: each is carried out once, and its answer is repeated for a day.

The requests kept for each API key and its players are limited. Beyond the limit, new ones are refused. Dropping the
oldest instead would break the promise: a dropped request that is sent again would be carried out twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from evenmatch.accounts import account_sql, request_sql
from evenmatch.accounts.access import Caller
from evenmatch.accounts.request_sql import Attempt, RequestId
from evenmatch.durations import SECOND
from evenmatch.errors import ConflictError, EvenmatchError, RateLimitError, StillRunningError, StoreError
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store

__all__ = (
    "Answer",
    "Attempt",
    "EndedRequest",
    "IdempotentRequest",
    "IdempotentRequests",
)


KEPT = 86_400 * SECOND  # how long an answer is repeated
COUNTED_EVERY = 3600 * SECOND  # between two counts of what is stored, also by other processes
ROW = 256  # bytes of a request beside its answer


class KeptLimit(NamedTuple):
    """The most requests that are kept, and the most bytes of their rows."""

    requests: int
    size: int


_Counts = dict[tuple[str, bool], KeptLimit]  # by API key, and whether they are of its players
OF_KEY = KeptLimit(10_000_000, 4 * 2**30)


class KeptRequests:
    """The kept requests by the last call of `count`, and by what this process has added since. Thread-safe."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._guard = threading.Lock()
        self._counted_at: int | None = None
        self._kept: _Counts = {}
        self._added: _Counts = {}  # since the present or last count began

    def refusal(self, caller: Caller) -> str | None:
        """Why no further request of a caller is kept; None: it is."""
        with self._guard:
            kept = self._kept.get((caller.issuer, caller.player is not None), KeptLimit(0, 0))
        whose = f"key {caller.issuer}" if caller.player is None else "all players of this game together"
        if kept.requests >= OF_KEY.requests:
            what = f"{whose} has {kept.requests:,} requests"
        elif kept.size >= OF_KEY.size:
            what = f"{whose} has {kept.size:,} bytes of answers to requests"
        else:
            return None
        return f"{what} with an Idempotency-Key of the last 24 hours, which is the limit; send the request without one"

    def add(self, attempt: Attempt, requests: int, answer: int = 0) -> None:
        """Count requests that were stored (negative: deleted), and the bytes of their answers."""
        issuer, _, player = attempt.id.caller.partition("/")
        with self._guard:
            for counts in (self._kept, self._added):
                _add(counts, (issuer, bool(player)), requests, answer)

    def count(self) -> None:
        """Count what is stored, unless that was done within the hour. Reads all rows: for one worker of the process.

        Until it returns, the last count holds. What is added while it reads may count twice until the next one.
        Raises StoreError.
        """
        now = self._clock()
        if self._counted_at is not None and now - self._counted_at < COUNTED_EVERY:
            return
        with self._guard:
            self._added = {}
        with self._database.read() as store:
            rows = request_sql.sizes(store, now - KEPT)
        kept: _Counts = {}
        for issuer, is_player, requests, answers in rows:
            _add(kept, (issuer, is_player), requests, answers)
        with self._guard:
            for whose, (requests, size) in self._added.items():
                _add(kept, whose, requests, size - requests * ROW)
            self._kept = kept
        self._counted_at = now


def _add(counts: _Counts, whose: tuple[str, bool], requests: int, answers: int) -> None:
    before = counts.get(whose, KeptLimit(0, 0))
    counts[whose] = KeptLimit(before.requests + requests, before.size + requests * ROW + answers)


LEASE = 30 * SECOND  # a process that has not extended the lease of its request for so long is considered dead
PRUNE_EVERY = 60 * SECOND
MOST_OF_PLAYER = 1_000  # requests of a player that are kept
AGAIN = 1.0  # seconds after which to send a request again that is still running

log = logging.getLogger(__name__)


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
            new = request_sql.insert_new(store, allowed)
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
        if caller.player is None or request_sql.count(store, caller.key, MOST_OF_PLAYER) < MOST_OF_PLAYER:
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
                    request_sql.delete_begun_before(store, self._clock() - KEPT)
            except StoreError as error:
                log.warning("counting and deleting old requests failed and will be tried again: %s", error)
            if stop.wait(PRUNE_EVERY / SECOND):
                return

    def end(self, ended: Sequence[EndedRequest]) -> list[None]:
        """Store the answers of attempts; None: forget the attempt, which was refused before it changed anything."""
        answers = [(attempt, answer.status, _packed(answer)) for attempt, answer in ended if answer is not None]
        with self._database.write(durable=False) as store:
            if answers:
                request_sql.set_answers(store, answers)
            for attempt, answer in ended:
                if answer is None:
                    request_sql.delete(store, attempt)
        for attempt, _, packed in answers:
            self._kept.add(attempt, 0, len(packed))
        for attempt, answer in ended:
            if answer is None:
                self._kept.add(attempt, -1)
        return [None] * len(ended)

    def extend(self, attempt: Attempt) -> None:
        """Extend the lease of an attempt that still runs, at least once in half of LEASE."""
        with self._database.write(durable=False) as store:
            request_sql.set_lease(store, attempt, self._clock() + LEASE)

    def release(self, attempt: Attempt) -> None:
        """End the lease of an attempt that failed: the request can be sent again, unless the audit trail has it."""
        with self._database.write(durable=False) as store:
            request_sql.set_lease(store, attempt, self._clock())


def _attempt(request: IdempotentRequest, now: int) -> Attempt:
    digest = hashlib.sha256(request.key.encode()).digest()
    return Attempt(RequestId(request.caller.key, digest), request.content, request.request, now, now + LEASE)


def _again(
    store: Store, request: IdempotentRequest, attempt: Attempt, refusal: RateLimitError | None
) -> Answer | Attempt | EvenmatchError:
    """The outcome for a request whose key is stored, or else is refused; None: it is not."""
    stored, shown = request_sql.read(store, attempt.id), f"the Idempotency-Key {request.key[:80]!r}"
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
        if account_sql.has_audit_entry(store, request.caller.actor, before.request, before.begun_at):
            return ConflictError(
                f"the request with {shown} was carried out, and its answer was lost with the process that ran it; read "
                "what it has changed"
            )
    return attempt if request_sql.replace(store, before, attempt) else running


def _packed(answer: Answer) -> bytes:
    head = json.dumps([answer.status, answer.headers]).encode()
    return zlib.compress(head + b"\n" + answer.body)


def _unpacked(packed: bytes) -> Answer:
    head, _, body = zlib.decompress(packed).partition(b"\n")
    status, headers = json.loads(head)
    return Answer(status, tuple((name, value) for name, value in headers), body)
