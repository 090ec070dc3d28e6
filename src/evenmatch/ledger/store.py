"""Read and write the events of a ladder and the data derived from them, inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from evenmatch.errors import StoreError, UnknownNameError
from evenmatch.history import Floats
from evenmatch.ledger import schema
from evenmatch.ledger.codec import ID, Ids, unpack
from evenmatch.ledger.events import (
    Body,
    Correction,
    Event,
    Kind,
    correction_digest,
    correction_of,
    correction_seal,
    write_body,
)
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.replay import Block
from evenmatch.ledger.roster import TALLY, Roster
from evenmatch.ledger.rows import Row, Rows
from evenmatch.systems.system import Rules

BATCH = 20_000  # matches read at a time


class Head(NamedTuple):
    """The head of a ladder's ledger: its last position and the current generation of ratings.

    position   of the last event;  corrected  of the last correction
    due        position from which a rebuild is needed; None: no rebuild needed
    planned    the last correction included in the generation
    time       effective time of its last rated match; None: no rated match
    names      counter of renamed, merged and erased players
    engine     fingerprint of the kernels that started the generation
    """

    ladder: int
    name: str
    position: int
    generation: int
    corrected: int
    due: int | None
    settings: str
    divided_at: int
    system: str
    engine: str
    planned: int
    time: int | None
    names: int


_HEAD = (
    "SELECT l.ladder, l.name, l.position, l.generation, l.corrected, l.due, l.settings, l.divided_at, "
    "g.system, g.engine, g.planned, g.time, COALESCE((SELECT value FROM counter WHERE name = 'names'), 0) "
    "FROM ladder l JOIN generation g ON g.ladder = l.ladder AND g.generation = l.generation"
)
_MATCH = "SELECT position, played_at, duration, teams, players, slots, rated, id, generation, told, labels FROM event"


@dataclass(frozen=True)
class Store:
    """A connection inside a transaction, with the bulk operations of its database."""

    connection: sa.Connection
    rows: Rows

    def all(self, sql: str, *values: object) -> list[Row]:
        """Run a SELECT with `?` placeholders and return its rows."""
        return self.rows.all(self.connection, sql, *values)

    def run(self, sql: str, *values: object) -> None:
        """Run a statement with `?` placeholders."""
        self.rows.run(self.connection, sql, *values)

    def together(self, most: int) -> AbstractContextManager[object]:
        """Pipeline the writes inside the block: see Rows.together."""
        return self.rows.together(self.connection, most)

    # ladders

    def heads(self) -> list[Head]:
        """The heads of all ladders, by name."""
        return [Head(*row) for row in self.all(f"{_HEAD} ORDER BY l.name")]

    def head(self, name: str) -> Head:
        """The head of a ladder. Raises UnknownNameError for an unknown ladder."""
        return self._head(name, self.all(f"{_HEAD} WHERE l.name = ?", name))

    def _head(self, name: str, rows: list[Row]) -> Head:
        if not rows:
            raise UnknownNameError(
                "ladder", name, [row[0] for row in self.all("SELECT name FROM ladder ORDER BY name")]
            )
        return Head(*rows[0])

    def lock(self, name: str) -> Head:
        """Like `head`, and lock the ladder and names against other writers until the transaction ends."""
        return self._head(name, self.rows.lock(self.connection, name, f"{_HEAD} WHERE l.name = ?", name))

    def hold_names(self) -> None:
        """Block recording, renaming and merging by others; must be called before any ladder is locked."""
        self.rows.hold_names(self.connection)

    def add_generation(
        self, ladder: int, generation: int, system: str, engine: str, *, planned: int, ready: bool, now: int
    ) -> None:
        """Add a generation, without ratings yet."""
        columns = ("ladder", "generation", "system", "engine", "planned", "ready", "made_at")
        row = (ladder, generation, system, engine, planned, int(ready), now)
        self.rows.insert(self.connection, schema.generation, columns, [row])

    def add_season(self, ladder: int, season: int, title: str, *, position: int, now: int) -> None:
        """Add a season that begins after the event at a position."""
        columns = ("ladder", "season", "title", "position", "opened_at")
        self.rows.insert(self.connection, schema.season, columns, [(ladder, season, title, position, now)])

    def corrections(self, head: Head, upto: int) -> list[Correction]:
        """The corrections up to a position, in order."""
        rows = self.all(
            "SELECT e.position, e.kind, e.body, e.players, e.slots FROM correction c "
            "JOIN event e ON e.ladder = c.ladder AND e.position = c.position "
            "WHERE c.ladder = ? AND c.position <= ? ORDER BY c.position",
            head.ladder,
            upto,
        )
        return [correction_of(head.name, *row) for row in rows]

    def plan(self, head: Head, upto: int) -> Plan:
        """The plan from the corrections up to a position."""
        return plan_of(self.corrections(head, upto))

    def rules_of(self, head: Head, generation: int) -> Rules:
        """The last rules of a generation; it has a single system, but parameters may have changed within it."""
        rows = self.all("SELECT planned FROM generation WHERE ladder = ? AND generation = ?", head.ladder, generation)
        return self.plan(head, rows[0][0]).last_rules

    # matches

    def blocks(self, head: Head, after: int, upto: int) -> Iterator[tuple[Block, list[Row]]]:
        """The matches after a position in blocks of BATCH, with (id, generation, told, labels) of each."""
        while True:
            rows = self.all(
                f"{_MATCH} WHERE ladder = ? AND position > ? AND position <= ? AND kind = ? ORDER BY position LIMIT ?",
                head.ladder,
                after,
                upto,
                Kind.MATCH.value,
                BATCH,
            )
            if not rows:
                return
            after = rows[-1][0]
            yield self._block(head, rows), [row[7:] for row in rows]
            if len(rows) < BATCH:
                return

    def _block(self, head: Head, rows: list[Row]) -> Block:
        try:
            return block_of(rows)
        except ValueError as error:
            first, last = rows[0][0], rows[-1][0]
            message = f"a match of ladder {head.name!r} at one of the positions {first} to {last} is damaged ({error})"
            raise StoreError(f"{message}; `evenmatch verify` shows which one, restore it from a backup") from error

    def blocks_at(self, head: Head, positions: Sequence[int]) -> Iterator[tuple[Block, list[Row]]]:
        """Like `blocks`, for the matches at these positions, split in the order of the list."""
        for first in range(0, len(positions), BATCH):
            chosen = [int(position) for position in positions[first : first + BATCH]]
            sql = f"{_MATCH} WHERE ladder = ? AND position IN ({{}})"
            rows = sorted(self.rows.among(self.connection, sql, (head.ladder,), chosen))
            if rows:
                yield self._block(head, rows), [row[7:] for row in rows]

    def known(self, head: Head, ids: Sequence[str]) -> dict[str, tuple[int, bytes]]:
        """(position, digest) by event id, for those of these ids that exist in the ledger."""
        sql = "SELECT id, position, digest FROM event WHERE ladder = ? AND id IN ({})"
        return {row[0]: (row[1], bytes(row[2])) for row in self.rows.among(self.connection, sql, (head.ladder,), ids)}

    def lines(self, head: Head, positions: Sequence[int]) -> dict[int, tuple[bytes, int]]:
        """The current journal lines of matches by position: (lines, generation that determines their system)."""
        sql = (
            "SELECT e.position, COALESCE(j.lines, e.told), CASE WHEN j.lines IS NULL THEN e.generation ELSE ? END "
            "FROM event e LEFT JOIN journal j ON j.ladder = e.ladder AND j.generation = ? AND j.position = e.position "
            "WHERE e.ladder = ? AND e.position IN ({})"
        )
        rows = self.rows.among(
            self.connection, sql, (head.generation, head.generation, head.ladder), [int(number) for number in positions]
        )
        return {row[0]: (bytes(row[1]), row[2]) for row in rows if row[1] is not None}

    def events(self, head: Head) -> Iterator[Event]:
        """All events as stored, in order."""
        after = 0
        while True:
            rows = self.all(
                f"SELECT {', '.join(Event._fields)} FROM event "
                "WHERE ladder = ? AND position > ? ORDER BY position LIMIT ?",
                *(head.ladder, after, BATCH),
            )
            yield from (Event(*row) for row in rows)
            if len(rows) < BATCH:
                return
            after = rows[-1][0]

    def correction_positions(self, head: Head) -> list[int]:
        """The positions in the correction table, ascending."""
        return [
            row[0]
            for row in self.all("SELECT position FROM correction WHERE ladder = ? ORDER BY position", head.ladder)
        ]

    # states

    def roster(self, head: Head, rules: Rules, ids: Ids | None = None) -> Roster:
        """The roster of the current generation: all players (ids None) or those of `ids` that have a state."""
        sql = "SELECT player, matches, completed, last_played, last_completed, record FROM state"
        where = " WHERE ladder = ? AND generation = ?"
        if ids is None:
            rows = self.all(f"{sql}{where} ORDER BY player", head.ladder, head.generation)
        else:
            rows = self.rows.among(
                self.connection, f"{sql}{where} AND player IN ({{}})", (head.ladder, head.generation), ids.tolist()
            )
            rows.sort(key=lambda row: int(row[0]))
        kind = rules.system.state
        if any(len(row[5]) != kind.itemsize for row in rows):
            message = f"states of ladder {head.name!r} are damaged, or of another system than {rules.system.name}"
            raise StoreError(f"{message}; `evenmatch rebuild --whole` computes them again")
        records = np.frombuffer(b"".join([row[5] for row in rows]), kind).copy()
        tally = np.array([row[1:5] for row in rows], TALLY) if rows else np.zeros(0, TALLY)
        players = np.array([row[0] for row in rows], np.int64)
        return Roster(players, records, tally, head.position, head.time)

    def keep_states(self, ladder: int, generation: int, roster: Roster, *, new: bool = False) -> None:
        """Store all players of a roster; `new`: none of them is stored yet."""
        columns = ("ladder", "generation", "player", "rating", *TALLY.names, "record")  # type: ignore[misc]
        width = roster.records.dtype.itemsize
        joined = roster.records.tobytes()
        ratings, ids = roster.records["rating"].tolist(), roster.ids.tolist()
        rows = [
            (ladder, generation, player, rating, *tally, joined[index * width : (index + 1) * width])
            for index, (player, rating, tally) in enumerate(zip(ids, ratings, roster.tally.tolist(), strict=True))
        ]
        if new:
            self.rows.insert(self.connection, schema.state, columns, rows)
        else:
            self.rows.upsert(self.connection, schema.state, columns, rows)

    def checkpoint(self, ladder: int, generation: int, roster: Roster) -> None:
        """Store a checkpoint of a complete roster."""
        self.rows.upsert(
            self.connection,
            schema.checkpoint,
            ("ladder", "generation", "position", "time", "states"),
            [(ladder, generation, roster.position, roster.time, roster.pack())],
        )

    def last_checkpoint(self, head: Head, before: int) -> tuple[int, int | None, bytes] | None:
        """(position, time, states) of the latest checkpoint before a position; None if there is none."""
        rows = self.all(
            "SELECT position, time, states FROM checkpoint WHERE ladder = ? AND generation = ? AND position < ? "
            "ORDER BY position DESC LIMIT 1",
            head.ladder,
            head.generation,
            before,
        )
        return (rows[0][0], rows[0][1], bytes(rows[0][2])) if rows else None

    def checkpointed(self, head: Head) -> int:
        """Position of the latest checkpoint; 0 if there is none."""
        sql = "SELECT MAX(position) FROM checkpoint WHERE ladder = ? AND generation = ?"
        position: int | None = self.all(sql, head.ladder, head.generation)[0][0]
        return 0 if position is None else position

    def checkpoints(self, head: Head) -> list[int]:
        """The positions of all checkpoints, ascending."""
        sql = "SELECT position FROM checkpoint WHERE ladder = ? AND generation = ? ORDER BY position"
        return [row[0] for row in self.all(sql, head.ladder, head.generation)]

    def ratings(self, head: Head) -> list[float]:
        """The displayed ratings of all players, by player id."""
        sql = "SELECT rating FROM state WHERE ladder = ? AND generation = ? ORDER BY player"
        return [row[0] for row in self.all(sql, head.ladder, head.generation)]

    def appearances(self, head: Head) -> tuple[int, int, int]:
        """Checksum of the appearances: their number and the sums of their players and positions."""
        sql = "SELECT COUNT(*), COALESCE(SUM(player), 0), COALESCE(SUM(position), 0) FROM appearance WHERE ladder = ?"
        count, players, positions = self.all(sql, head.ladder)[0]
        return int(count), int(players), int(positions)

    # adding events

    def add_matches(self, rows: Sequence[Row]) -> None:
        """Insert match events with MATCH_COLUMNS."""
        self.rows.insert(self.connection, schema.event, MATCH_COLUMNS, rows)

    def add_appearances(self, ladder: int, ids: Ids, positions: Ids) -> None:
        """Insert which player appeared in which match."""
        order = np.lexsort((positions, ids))
        listed = zip([ladder] * len(ids), ids[order].tolist(), positions[order].tolist(), strict=True)
        self.rows.insert(self.connection, schema.appearance, ("ladder", "player", "position"), list(listed))

    def add_correction(
        self, head: Head, kind: Kind, event_id: str, digest: bytes, body: str, now: int, ids: Ids, ratings: Floats
    ) -> int:
        """Append a correction and return its position."""
        position = head.position + 1
        columns = ("ladder", "position", "id", "kind", "digest", "recorded_at", "body", "players", "slots", "seal")
        packed = (ids.astype(ID).tobytes(), ratings.astype("<f8").tobytes()) if len(ids) else (None, None)
        seal = correction_seal(position, event_id, kind.value, body, ids, ratings)
        row = (head.ladder, position, event_id, kind.value, digest, now, body, *packed, seal)
        self.rows.insert(self.connection, schema.event, columns, [row])
        self.rows.insert(self.connection, schema.correction, ("ladder", "position"), [(head.ladder, position)])
        self.run("UPDATE ladder SET position = ?, corrected = ? WHERE ladder = ?", position, position, head.ladder)
        return position

    def rewrite_body(self, head: Head, correction: Correction, body: Body) -> None:
        """Replace the body of a correction, to erase a name."""
        position, kind, _, ids, ratings = correction
        sql = "SELECT id FROM event WHERE ladder = ? AND position = ?"
        event_id: str = self.all(sql, head.ladder, position)[0][0]
        digest = correction_digest(kind, body, ids, ratings)
        seal = correction_seal(position, event_id, kind.value, write_body(body), ids, ratings)
        self.run(
            "UPDATE event SET body = ?, digest = ?, seal = ? WHERE ladder = ? AND position = ?",
            *(write_body(body), digest, seal, head.ladder, position),
        )

    def move_head(self, head: Head, position: int, time: int | None) -> None:
        """Set the last position and the effective time of the last rated match."""
        self.run("UPDATE ladder SET position = ? WHERE ladder = ?", position, head.ladder)
        self.run(
            "UPDATE generation SET time = ? WHERE ladder = ? AND generation = ?", time, head.ladder, head.generation
        )


MATCH_COLUMNS = (
    *("ladder", "position", "id", "kind", "digest", "recorded_at", "played_at", "duration", "rated"),
    *("teams", "players", "slots", "labels", "generation", "told", "seal"),
)


def block_of(rows: Iterable[Row]) -> Block:
    """Create a block from rows of position, played_at, duration, teams, players, slots, rated (and more)."""
    position, played_at, duration, teams, players, slots, rated = list(zip(*rows, strict=True))[:7]
    reported, columns, ids = unpack(played_at, duration, teams, players, slots)
    return Block(np.array(position, np.int64), reported, columns, ids, np.array(rated, np.bool_))
