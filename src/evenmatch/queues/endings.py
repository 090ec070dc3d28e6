"""Why tickets end without a match: the sentences that are stored with them, and their reading."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evenmatch.sentences import Sentence

LEFT = "left the queue"
LEFT_OFFER = "{players} left while a match was offered"
DECLINED = "{players} declined an offered match"
SILENT = "{players} did not answer an offered match in time"
NO_HEARTBEAT = "no heartbeat for {seconds} s"
NO_MATCH = "no match was found in {seconds} s, the longest wait that its queue allows"
MATCHED_ELSEWHERE = "its party got a match on another ladder of the playlist"
QUEUE_REMOVED = "queue {queue} was removed"
ARCHIVED = "the ladder was archived"
BANNED = "{player} is banned from the ladder"
SEVERAL_BANNED = "{players} are banned from the ladder"
ENDINGS = (
    *(LEFT, LEFT_OFFER, DECLINED, SILENT, NO_HEARTBEAT, NO_MATCH, MATCHED_ELSEWHERE),
    *(QUEUE_REMOVED, ARCHIVED, BANNED, SEVERAL_BANNED),
)


def banned(names: Sequence[str]) -> str:
    """Return why a ticket with these banned players ended."""
    listed = ", ".join(map(repr, names))
    return BANNED.format(player=listed) if len(names) == 1 else SEVERAL_BANNED.format(players=listed)


def ending(reason: str) -> Sentence | None:
    """Return the sentence of a stored reason, which pages translate; None if it is not one of ENDINGS."""
    for template in ENDINGS:
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(template))
        if found := re.fullmatch(pattern, reason, re.DOTALL):
            return Sentence(template, found.groupdict())
    return None
