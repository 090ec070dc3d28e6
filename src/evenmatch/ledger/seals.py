"""Seals of events: each covers the event and the seal of the event before it, so that a ladder's events form a chain.

An event that was altered, removed, inserted or moved does not match the seals next to it. The last seal, together with
its position, identifies the whole ledger up to there. Seals do not cover text that may contain names to be erased:
labels of teams and reasons of corrections. A match's digest covers the names as reported. Its seal also covers its
receipt.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct

from evenmatch.history import Floats
from evenmatch.ledger.codec import Ids

FIRST = bytes(16)  # stands for the seal before the first event
# The letter distinguishes matches from corrections; the lengths of the following parts make their borders unambiguous.
_MATCH = struct.Struct("<c16sqqqqqdBIIIIqI")
ABSENT = -(2**63)  # stands for a time or position that the event does not have
_CORRECTION = struct.Struct("<c16sqqIIII")


def match_seal(
    previous: bytes,
    position: int,
    event_id: str,
    recorded_at: int,
    played_at: int,
    counted_at: int | None,
    counts_before: int | None,
    duration: float | None,
    rated: int,
    teams: bytes,
    players: bytes,
    slots: bytes,
    digest: bytes,
    context: str | None,
    *,
    generation: int,
    told: bytes,
) -> bytes:
    """The seal of a match, 16 bytes; `previous` is the seal of the event before it, FIRST if there is none."""
    name = event_id.encode()
    head = _MATCH.pack(
        b"m",
        previous,
        position,
        recorded_at,
        played_at,
        ABSENT if counted_at is None else counted_at,
        ABSENT if counts_before is None else counts_before,
        math.nan if duration is None else duration,
        rated,
        len(name),
        len(teams),
        len(players),
        len(slots),
        generation,
        len(told),
    )
    whole = b"".join((head, told, name, teams, players, slots, digest, (context or "").encode()))
    return hashlib.blake2b(whole, digest_size=16).digest()


def correction_seal(
    previous: bytes, position: int, event_id: str, recorded_at: int, kind: str, body: str, ids: Ids, ratings: Floats
) -> bytes:
    """The seal of a correction, 16 bytes; `body` is JSON; its reason is not covered.

    Raises ValueError if the body is not an object in JSON.
    """
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("the body is not an object")  # noqa: TRY004 - a damaged row, not a caller's mistake
    content.pop("reason", None)
    kept = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts = [text.encode() for text in (event_id, kind, kept)]
    head = _CORRECTION.pack(b"c", previous, position, recorded_at, *map(len, parts), len(ids))
    whole = b"".join((head, *parts, ids.tobytes(), ratings.tobytes()))
    return hashlib.blake2b(whole, digest_size=16).digest()
