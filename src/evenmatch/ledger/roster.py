"""The players of a ladder as a replay holds them: their records, and what placement and activity are judged by."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns, Flags
from evenmatch.ledger.codec import ID, Ids, same_bits
from evenmatch.standings.activity import NEVER
from evenmatch.systems.system import Records, Rules

TALLY = np.dtype(
    [("matches", "<i8"), ("completed", "<i8"), ("last_played", "<i8"), ("last_completed", "<i8")], align=True
)


@dataclass(eq=False)
class Roster:
    """Players in ascending order of id, with a record and a tally each. Changed in place as matches are rated.

    tally     counted matches, those not quit, and the times of the latest of each (NEVER where there is none)
    position  of the last event that is in it
    time      effective time of the last rated match; None before the first
    """

    ids: Ids
    records: Records
    tally: NDArray[np.void]
    position: int = 0
    time: int | None = None

    @classmethod
    def empty(cls, rules: Rules) -> Roster:
        """Nobody."""
        return cls(np.empty(0, np.int64), rules.newcomers(0), _blank(0))

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, ids: Ids) -> Roster:
        """Those of these players (ascending) who are here, as copies."""
        rows = np.searchsorted(self.ids, ids)
        here = rows < len(self.ids)
        here[here] = self.ids[rows[here]] == ids[here]
        rows = rows[here]
        return Roster(self.ids[rows], self.records[rows], self.tally[rows], self.position, self.time)

    def admit(self, ids: Ids, rules: Rules) -> NDArray[np.int64]:
        """The row of each of these players; who is not here yet comes as a newcomer."""
        known = np.unique(ids)
        rows = np.searchsorted(self.ids, known)
        here = rows < len(self.ids)
        here[here] = self.ids[rows[here]] == known[here]
        if not here.all():
            new = known[~here]
            order = np.argsort(np.concatenate((self.ids, new)), kind="stable")
            self.ids = np.concatenate((self.ids, new))[order]
            self.records = np.concatenate((self.records, rules.newcomers(len(new))))[order]
            self.tally = np.concatenate((self.tally, _blank(len(new))))[order]
        return np.searchsorted(self.ids, ids)

    def count(self, c: Columns, rows: NDArray[np.int64], counted: Flags) -> None:
        """Add the slots that are counted to the tallies; `rows` is each slot's player."""
        slot_match = np.repeat(np.arange(len(c.time)), np.diff(c.slot_start[c.team_start]))
        for number, latest, which in (
            ("matches", "last_played", counted),
            ("completed", "last_completed", counted & ~c.quit),
        ):
            players = rows[which]
            if len(players):
                np.add.at(self.tally[number], players, 1)
                np.maximum.at(self.tally[latest], players, c.time[slot_match[which]])

    def reset(self, rules: Rules, factor: float) -> None:
        """Begin a season: everybody starts at their distance from the mean times `factor`; 0 makes all newcomers.

        The mean is that of the shown ratings of those who played in the season that ends. Who sat it out moves as well,
        who never played nor was started with a rating of their own does not. Placement begins anew.
        """
        played = self.tally["matches"] > 0
        own = (self.tally["last_played"] != NEVER) | ~same_bits(self.records, rules.newcomers(len(self)))
        rating = self.records["rating"]
        among = rating[played if played.any() else own]
        records = rules.newcomers(len(self))
        if factor and len(among):
            mean = math.fsum(among.tolist()) / len(among)  # the same in whatever order the players come
            records[own] = rules.starting(mean + factor * (rating[own] - mean))
        self.records = records
        self.tally["matches"] = self.tally["completed"] = 0

    def pack(self) -> bytes:
        """All of it, for a checkpoint."""
        return zlib.compress(self.ids.astype(ID).tobytes() + self.tally.tobytes() + self.records.tobytes(), 1)

    @classmethod
    def unpack(cls, packed: bytes, rules: Rules, position: int, time: int | None) -> Roster:
        """What `pack` made. Raises zlib.error or ValueError where it is not that."""
        whole = zlib.decompress(packed)
        state = rules.system.state
        count, rest = divmod(len(whole), ID.itemsize + TALLY.itemsize + state.itemsize)
        if rest:
            raise ValueError("of another size than this system's states")
        middle, end = count * ID.itemsize, count * (ID.itemsize + TALLY.itemsize)
        return cls(
            np.frombuffer(whole[:middle], ID).astype(np.int64),
            np.frombuffer(whole[end:], state).copy(),
            np.frombuffer(whole[middle:end], TALLY).copy(),
            position,
            time,
        )


def _blank(count: int) -> NDArray[np.void]:
    return np.full(count, np.array((0, 0, NEVER, NEVER), TALLY))
