"""The events of a ledger: matches and corrections."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.history import Floats
from evenmatch.ledger.codec import ID, Ids
from evenmatch.ledger.seals import correction_seal, match_seal

Body = Mapping[str, object]
NO_IDS: Ids = np.empty(0, np.int64)
NO_RATINGS: Floats = np.empty(0)


class Kind(StrEnum):
    """The kinds of events."""

    MATCH = "match-recorded"
    VOIDED = "match-voided"
    UNVOIDED = "match-reinstated"
    BANNED = "player-banned"
    REINSTATED = "player-reinstated"
    MERGED = "player-merged"
    RENAMED = "player-renamed"
    ERASED = "player-erased"
    CHANGED = "ladder-changed"
    SEASON = "season-opened"
    STARTED = "ratings-started"
    DECAYED = "ratings-decayed"
    INSERTED = "matches-inserted"


class Correction(NamedTuple):
    """An event other than a match. ids, ratings: the players of `ratings-started`, otherwise empty."""

    position: int
    kind: Kind
    body: Body
    ids: Ids = NO_IDS
    ratings: Floats = NO_RATINGS


def write_body(body: Body) -> str:
    """Serialize a body as canonical JSON: equal content gives equal text."""
    return json.dumps(body, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def correction_digest(kind: Kind, body: Body, ids: Ids, ratings: Floats) -> bytes:
    """Content digest of a correction, 16 bytes, over what was requested; resulting settings are excluded."""
    requested = {name: value for name, value in body.items() if name != "settings"}
    whole = f"{kind}\0{write_body(requested)}".encode() + ids.tobytes() + ratings.tobytes()
    return hashlib.blake2b(whole, digest_size=16).digest()


def correction_of(
    ladder: str, position: int, kind: str, body: str | None, players: bytes | None, ratings: bytes | None
) -> Correction:
    """Create a correction from its row. Raises DamageError if it is damaged."""
    try:
        content = None if body is None else json.loads(body)
        if not isinstance(content, dict):
            raise ValueError("its body is not a JSON object")  # noqa: TRY004, TRY301 - one message for all kinds of damage
        ids = NO_IDS if players is None else np.frombuffer(players, ID).astype(np.int64)
        values = NO_RATINGS if ratings is None else np.frombuffer(ratings, "<f8").astype(np.float64)
        return Correction(position, Kind(kind), content, ids, values)
    except (ValueError, RecursionError) as error:
        message = f"the event of ladder {ladder!r} at position {position} is damaged ({error})"
        raise DamageError(f"{message}; restore it from a backup") from error


class Event(NamedTuple):
    """An event as stored; fields that its kind does not have are None."""

    position: int
    id: str
    kind: str
    recorded_at: int
    played_at: int | None
    counted_at: int | None
    counts_before: int | None
    duration: float | None
    rated: int | None
    teams: bytes | None
    players: bytes | None
    slots: bytes | None
    digest: bytes
    seal: bytes | None
    body: str | None
    generation: int | None
    told: bytes | None

    def is_whole(self, previous: bytes) -> bool:
        """Whether the stored event is intact and was recorded after the event with the seal `previous`."""
        try:
            return self.seal is not None and self.seal == self.seal_after(previous)
        except (TypeError, ValueError, RecursionError, struct.error):  # a field is missing, torn or out of range
            return False

    def seal_after(self, previous: bytes) -> bytes | None:
        """The seal of this event after one with the seal `previous`; None if its digest does not match its content.

        Raises TypeError, ValueError or struct.error for a torn event.
        """
        if self.kind != Kind.MATCH:
            return self._correction_seal(previous)
        if self.body is not None:
            return None
        times = (self.recorded_at, self.played_at, self.counted_at, self.counts_before)
        content = (self.duration, self.rated, self.teams, self.players, self.slots, self.digest)
        receipt = {"generation": self.generation, "told": self.told}
        return match_seal(previous, self.position, self.id, *times, *content, **receipt)  # type: ignore[arg-type]

    def _correction_seal(self, previous: bytes) -> bytes | None:  # which leaves out the reason, unlike the digest
        times = (self.played_at, self.counted_at, self.counts_before)
        of_matches = (*times, self.duration, self.rated, self.teams, self.generation, self.told)
        if any(value is not None for value in of_matches) or b"" in (self.players, self.slots):
            return None
        ids = NO_IDS if self.players is None else np.frombuffer(self.players, ID).astype(np.int64)
        ratings = NO_RATINGS if self.slots is None else np.frombuffer(self.slots, "<f8").astype(np.float64)
        body = str(self.body)
        content = json.loads(body)
        if not isinstance(content, dict) or write_body(content) != body:
            return None
        if self.digest != correction_digest(Kind(self.kind), content, ids, ratings):
            return None
        return correction_seal(previous, self.position, self.id, self.recorded_at, self.kind, body, ids, ratings)
