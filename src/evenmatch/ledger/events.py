"""What may stand in a ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from evenmatch.history import Floats
from evenmatch.ledger.codec import Ids

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


class Correction(NamedTuple):
    """An event that is no match. ids, ratings: of the players of `ratings-started`, else empty."""

    position: int
    kind: Kind
    body: Body
    ids: Ids = NO_IDS
    ratings: Floats = NO_RATINGS


def write_body(body: Body) -> str:
    """JSON that is the same for the same content."""
    return json.dumps(body, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def correction_digest(kind: Kind, body: Body, ids: Ids, ratings: Floats) -> bytes:
    """What tells one correction's content from another's, 16 bytes."""
    whole = f"{kind}\0{write_body(body)}".encode() + ids.tobytes() + ratings.tobytes()
    return hashlib.blake2b(whole, digest_size=16).digest()
