"""What is kept of every player while a history passes: the state, and what standings need to know."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenmatch.errors import RatingRangeError
from evenmatch.history import Flags
from evenmatch.partitioned.chunk import Chunk
from evenmatch.partitioned.shape import count_activity
from evenmatch.rating import RatedPlayers
from evenmatch.standings.activity import NEVER, Activity
from evenmatch.systems import loop
from evenmatch.systems.loop import Replay
from evenmatch.systems.system import Records, Rules

SEEN = np.dtype(  # 32 bytes, half a line of the cache
    [(name, "i4") for name in ("appearances", "matches", "completed", "unused")]
    + [(name, "i8") for name in ("last_played", "last_completed")]
)
_ROOM = 1 << 12  # players


class PlayerRecords:
    """The states of the players of one stream, and the records of its ladders; rates chunk by chunk."""

    def __init__(self, by: Rules) -> None:
        """Begin with newcomers."""
        self.by = by
        self._state, self._seen = by.newcomers(_ROOM), _unseen(_ROOM)
        self._learned = by.ladders()
        self._last = np.empty(0, np.int64)
        self._matches = np.empty(0, np.int64)
        self.ladders: tuple[str, ...] = ()

    def rate(self, chunk: Chunk, *, journal: bool) -> Replay:
        """Rate the matches of a chunk, which must be the next one.

        Raises RatingRangeError, naming player and rows, if a rating leaves the range of the system.
        """
        self._make_room(chunk)
        c = chunk.history.columns
        state = self._state[: chunk.players]
        result = loop.replay(self.by, chunk.history, state, self._learned, journal=journal, in_place=True)
        count_activity(chunk.history.match_slots, c.time, c.player, c.quit, c.keep, self._seen)
        self._last[chunk.ladder] = c.time  # ascending: of equal indices the last counts
        self._matches += np.bincount(chunk.ladder, minlength=len(self._matches))
        self._check_range(chunk)
        return result

    def _make_room(self, chunk: Chunk) -> None:
        if chunk.players > len(self._state):
            more = max(len(self._state), chunk.players - len(self._state))
            self._state = np.concatenate((self._state, self.by.newcomers(more)))
            self._seen = np.concatenate((self._seen, _unseen(more)))
        more = len(chunk.ladders) - len(self._last)
        if more:
            self._last = np.concatenate((self._last, np.zeros(more, np.int64)))
            self._matches = np.concatenate((self._matches, np.zeros(more, np.int64)))
            lacking = 1 + len(chunk.ladders) - len(self._learned)
            self._learned = np.concatenate((self._learned, self.by.ladders(lacking)[1:])) if lacking else self._learned
        self.ladders = chunk.ladders

    def _check_range(self, chunk: Chunk) -> None:
        player = chunk.history.columns.player
        if np.isfinite(self._state["rating"][: chunk.players]).all():
            return
        slot = int(np.flatnonzero(~np.isfinite(self._state["rating"][player]))[0])
        low = chunk.rows.first
        raise RatingRangeError(
            f"the rating of {chunk.player[slot].as_py()!r} leaves the range of {self.by.system.name} in "
            f"{chunk.rows.partition.address}, rows {low + 1:,} to {low + len(chunk.rows.rows):,}; nothing was rated"
        )

    def matches_of(self) -> list[int]:
        """The number of matches rated on each ladder."""
        counts: list[int] = self._matches.tolist()
        return counts

    def rated(self, names: pa.ChunkedArray, ladder: np.ndarray) -> RatedPlayers:
        """All who played, with these names and ladders (of all players by number)."""
        played = self._played(len(names))
        kept = np.flatnonzero(played)
        is_whole = len(kept) == len(names)
        seen = self._seen[: len(names)] if is_whole else self._seen[kept]
        return RatedPlayers(
            rules=self.by,
            state=self._state[: len(names)] if is_whole else self._state[kept],
            activity=Activity(
                *(seen[name].astype(np.int64) for name in ("matches", "completed", "last_played", "last_completed"))
            ),
            player=names if is_whole else names.take(pa.array(kept)),
            player_ladder=ladder if is_whole else ladder[kept],
            ladders=self.ladders,
            last=self._last,
        )

    def _played(self, count: int) -> Flags:
        played: Flags = self._seen["appearances"][:count] > 0
        return played


def _unseen(count: int) -> Records:
    return np.full(count, np.array((0, 0, 0, 0, NEVER, NEVER), SEEN))
