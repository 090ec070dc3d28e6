"""Signed writes that were accepted, so that each is accepted once, by whichever process and after any restart."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from evenmatch.durations import SECOND
from evenmatch.errors import AccessError
from evenmatch.ledger.database import Database
from evenmatch.ledger.tables import seen_signatures
from evenmatch.service.callers.signing import SKEW, SignedRequest

PRUNE_EVERY = 60  # seconds


class SeenSignatures:
    """The signatures of a database that were accepted and whose timestamps are still valid. Thread-safe."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self._pruned_at = 0

    def accept(self, requests: Sequence[SignedRequest]) -> list[AccessError | None]:
        """Remember signatures that fit their requests; for each the error if it was seen before.

        The transaction is not durable by itself: if the power fails, what was done with the signature is lost with it.
        """
        now = self._clock() // SECOND
        rows = [(signed.timestamp + SKEW, _digest(signed)) for signed in requests]
        with self._database.write(durable=False) as store:
            new = seen_signatures.insert_new(store, rows)
            if now - self._pruned_at >= PRUNE_EVERY:
                seen_signatures.delete_past(store, now - SKEW)  # SKEW: other processes may have slower clocks
                self._pruned_at = now
        outcomes: list[AccessError | None] = []
        for _, digest in rows:
            outcomes.append(None if digest in new else AccessError(SEEN))
            new.discard(digest)  # the same signature twice in one batch
        return outcomes


SEEN = (
    "the signature was seen before: a signed write is accepted once. To send it again, sign it again with the present "
    "time and a new nonce"
)


def _digest(signed: SignedRequest) -> bytes:
    return hashlib.sha256(f"{signed.key} {signed.signature.lower()}".encode()).digest()
