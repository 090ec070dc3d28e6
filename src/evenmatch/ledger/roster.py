"""The players of a ladder during a replay: rating records, match counts and times."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns, Flags, Floats, team_results
from evenmatch.ledger.codec import ID, Ids, same_bits
from evenmatch.ledger.contexts import Contexts
from evenmatch.standings.activity import NEVER
from evenmatch.standings.placement import UNKNOWN, RatingSample, follow
from evenmatch.systems.ladder_records import copy_records, join_records
from evenmatch.systems.loop import Journal
from evenmatch.systems.system import Records, Rules

TALLY = np.dtype(
    [
        ("matches", "<i8"),
        ("won", "<i8"),
        ("drew", "<i8"),
        ("completed", "<i8"),
        ("last_played", "<i8"),
        ("last_completed", "<i8"),
        ("recent_change", "<f8"),
        ("expected_move", "<f8"),
    ],
    align=True,
)
MOVES = ("recent_change", "expected_move")


@dataclass(eq=False)
class Roster:
    """Players in ascending order of id, each with a record and a tally; updated in place as matches are rated.

    tally     numbers of counted, won, drawn and completed matches, the times of the latest counted and the latest
              completed one (NEVER: none), the mean of recent rating changes, and the lowest expected move of the
              percentile (see standings.placement)
    position  of the last event included
    ladders   what the system has learned about the ladder: the records of its pool and its own
    time      effective time of the last rated match; None before the first
    sample    of the ratings of the season's players
    contexts  what context columns have taught; None: the ladder is rated without them
    others    reads the ratings of this season's players who are not in the roster; None: there are none
    """

    ids: Ids
    records: Records
    tally: NDArray[np.void]
    ladders: Records
    position: int = 0
    time: int | None = None
    sample: RatingSample = field(default_factory=RatingSample.none)
    others: Callable[[], Floats] | None = None
    contexts: Contexts | None = None

    @classmethod
    def empty(cls, rules: Rules, *, in_context: bool = False) -> Roster:
        """Create a roster without players. in_context: context columns are in use."""
        contexts = Contexts.empty(rules) if in_context else None
        return cls(np.empty(0, np.int64), rules.newcomers(0), _blank(0), rules.ladders(), contexts=contexts)

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, ids: Ids) -> Roster:
        """Return a copy with only the given players (ascending ids); unknown ids are ignored."""
        rows = np.searchsorted(self.ids, ids)
        present = rows < len(self.ids)
        present[present] = self.ids[rows[present]] == ids[present]
        rows = rows[present]
        own = self.ids[rows], self.records[rows], self.tally[rows]
        return Roster(*own, self.ladders, self.position, self.time, self.sample)

    def admit(self, ids: Ids, rules: Rules) -> NDArray[np.int64]:
        """Return the row of each of these players; unknown players are added as newcomers."""
        rows = np.searchsorted(self.ids, ids)
        if len(self.ids) and np.array_equal(self.ids[np.minimum(rows, len(self.ids) - 1)], ids):
            return rows
        wanted = np.unique(ids)
        rows = np.searchsorted(self.ids, wanted)
        present = rows < len(self.ids)
        present[present] = self.ids[rows[present]] == wanted[present]
        if not present.all():
            new = wanted[~present]
            order = np.argsort(np.concatenate((self.ids, new)), kind="stable")
            self.ids = np.concatenate((self.ids, new))[order]
            self.records = join_records(self.records, rules.newcomers(len(new))).take(order)
            self.tally = join_records(self.tally, _blank(len(new))).take(order)
        return np.searchsorted(self.ids, ids)

    def take_sample(self, position: int) -> None:
        """Sample the ratings of the season's players before the match at this position."""
        own = self.records["rating"][self.tally["matches"] > 0]
        ratings = own if self.others is None else np.concatenate((own, self.others()))
        self.sample = self.sample.taken(position, ratings)

    def knows_the_same(self, other: Roster) -> bool:
        """True if context columns have taught both the same, bit for bit."""
        return self.contexts is None or (other.contexts is not None and self.contexts.equals(other.contexts))

    def count(self, c: Columns, rows: NDArray[np.int64], counted: Flags, journal: Journal) -> None:
        """Add the counted slots to the tallies; `rows` has the row of each slot's player."""
        slot_match = np.repeat(np.arange(len(c.time)), np.diff(c.slot_start[c.team_start]))
        completed = counted & ~c.quit
        for latest, which in (("last_played", counted), ("last_completed", completed)):
            np.maximum.at(self.tally[latest], rows[which], c.time[slot_match[which]])
        score = np.repeat(team_results(c.team_start, c.place), np.diff(c.slot_start))
        for name, which in (("matches", counted), ("won", counted & (score > 0.5)), ("drew", counted & (score == 0.5))):
            np.add.at(self.tally[name], rows[which], 1)
        after = journal.after[completed]
        follow(
            rows[completed],
            after,
            np.abs(after - journal.before[completed]),
            self.tally["completed"],
            self.tally["recent_change"],
            self.tally["expected_move"],
            self.sample,
        )

    def reset(self, rules: Rules, factor: float) -> None:
        """Begin a season: multiply every player's distance from the mean by `factor`; 0 resets all to newcomers.

        The mean is over the displayed ratings of the players of the season that ends. Players without a match in it
        move too; players who never played and had no starting rating do not. Placement restarts. What was learned
        about the ladder is kept; what was learned about players under context values, unless all become newcomers.
        """
        played = self.tally["matches"] > 0
        own = (self.tally["last_played"] != NEVER) | ~same_bits(self.records, rules.newcomers(len(self)))
        rating = self.records["rating"]
        among = rating[played if played.any() else own]
        records = rules.newcomers(len(self))
        if factor and len(among):
            mean = math.fsum(among.tolist()) / len(among)  # independent of the order of the players
            records[own] = rules.starting(mean + factor * (rating[own] - mean))
        self.records = records
        if not factor and self.contexts is not None:
            self.contexts.forget_players()
        for name in ("matches", "won", "drew", "completed", *MOVES):
            self.tally[name] = _BLANK[name]

    def pack(self) -> bytes:
        """Serialize the roster for a checkpoint."""
        sample = self.sample.pack()
        contexts = b"" if self.contexts is None else self.contexts.pack()
        arrays = (self.ladders, self.ids.astype(ID), self.tally, self.records)
        parts = (contexts, np.array(len(sample), ID), sample, *arrays)
        return zlib.compress(b"".join(part if isinstance(part, bytes) else part.tobytes() for part in parts), 1)

    @classmethod
    def unpack(
        cls, packed: bytes, rules: Rules, position: int, time: int | None, *, in_context: bool = False
    ) -> Roster:
        """Restore a roster from `pack`. Raises zlib.error or ValueError for damaged data.

        in_context  context columns were in use
        """
        whole, contexts = zlib.decompress(packed), None
        if in_context:
            contexts, whole = Contexts.unpack(whole, rules)
        if len(whole) < ID.itemsize:
            raise ValueError("the size of the sample is missing")
        start = ID.itemsize + int(np.frombuffer(whole[: ID.itemsize], ID)[0])
        state = rules.system.state
        learned = start + rules.ladders().nbytes
        ladders = unpack_ladders(rules, whole[start:learned])
        sample, whole = whole[ID.itemsize : start], whole[learned:]
        count, rest = divmod(len(whole), ID.itemsize + TALLY.itemsize + state.itemsize)
        if rest:
            raise ValueError("the size does not match the states of this system")
        middle, end = count * ID.itemsize, count * (ID.itemsize + TALLY.itemsize)
        return cls(
            np.frombuffer(whole[:middle], ID).astype(np.int64),
            np.frombuffer(whole[end:], state).copy(),
            np.frombuffer(whole[middle:end], TALLY).copy(),
            ladders,
            position,
            time,
            RatingSample.unpack(sample),
            contexts=contexts,
        )


def unpack_ladders(rules: Rules, packed: bytes | None) -> Records:
    """Unpack the records of a ladder's pool and its own; None: as before the first match.

    Raises ValueError for bytes from another system.
    """
    if packed is None:
        return rules.ladders()
    records = copy_records(np.frombuffer(packed, rules.system.ladder_type))
    if len(records) != 2:
        raise ValueError("the size does not match what this system learns about a ladder")
    return records


_BLANK = np.array((0, 0, 0, 0, NEVER, NEVER, 0.0, UNKNOWN), TALLY)


def _blank(count: int) -> NDArray[np.void]:
    return np.full(count, _BLANK)
