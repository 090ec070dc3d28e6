"""What a ladder has learned about the values of its context columns, and about its players under them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import History
from evenmatch.ledger.codec import ID, Ids, same_bits
from evenmatch.match_context import Context, read_context
from evenmatch.systems.forecasts import LineUpContext
from evenmatch.systems.ladder_records import join_records
from evenmatch.systems.system import Records, Rules

ROOM = 2**20  # for values; ids of players are below 2^43
Value = tuple[str, str]  # a column and one of its values; "": the match has none


def values_in(columns: Sequence[str], text: str | None) -> list[Value]:
    """The value of each of these columns in a context, see match_context.write_context."""
    context = read_context(text)
    return [(column, context.get(column, "")) for column in columns]


def values_of(columns: Sequence[str], texts: Iterable[str | None]) -> set[Value]:
    """The values of these columns in several contexts."""
    return {value for text in set(texts) for value in values_in(columns, text)}


@dataclass(eq=False)
class Contexts:
    """The records of context values and of players under them; updated in place as matches are rated.

    rows     the row in `values` of each value
    pairs    who has met which value, ascending: the player's id times ROOM, plus the value's row
    offsets  the records of these pairs
    """

    rows: dict[Value, int]
    values: Records
    pairs: Ids
    offsets: Records

    @classmethod
    def empty(cls, rules: Rules) -> Contexts:
        """Nothing has been learned."""
        return cls({}, rules.ladders(0)[:0], np.empty(0, np.int64), rules.offsets(0))

    @classmethod
    def of(
        cls, values: Sequence[tuple[str, str, bytes]], offsets: Sequence[tuple[int, str, str, bytes]], rules: Rules
    ) -> Contexts:
        """The stored records: (column, value, record), and (player, column, value, record).

        Raises ValueError for records of another system, or of a player under a value that has none.
        """
        rows = {(column, value): row for row, (column, value, _) in enumerate(values)}
        if any((column, value) not in rows for _, column, value, _ in offsets):
            raise ValueError("a player has met a value that has no record")
        pairs = np.array([player * ROOM + rows[column, value] for player, column, value, _ in offsets], np.int64)
        order = np.argsort(pairs)
        records = np.frombuffer(b"".join([bytes(row[3]) for row in offsets]), rules.system.offset_type)
        learned = np.frombuffer(b"".join([bytes(row[2]) for row in values]), rules.system.ladder_type)
        if len(records) != len(pairs) or len(learned) != len(rows):
            raise ValueError("the sizes do not match what this system learns about context values")
        return cls(rows, learned.copy(), pairs[order], records.take(order))

    def placed(
        self, history: History, columns: Sequence[str], texts: Sequence[str | None], ids: Ids, rules: Rules
    ) -> History:
        """The history with indices of the records of each match's values, from 2, and of its players under them.

        texts  the context of each match, see match_context.write_context;  ids  the player of each slot
        """
        distinct = dict.fromkeys(texts)
        found = np.array([self._admit_values(columns, text, rules) for text in distinct], np.int64)
        number = {text: index for index, text in enumerate(distinct)}
        context = found[[number[text] for text in texts]]
        offset = self._admit_pairs((ids[:, None] * ROOM + context[history.slot_match]).ravel(), rules)
        placed = (2 + context).ravel().astype(np.int32), offset.astype(np.int32)
        return History(history.columns._replace(context=placed[0], offset=placed[1]))

    def _admit_values(self, columns: Sequence[str], text: str | None, rules: Rules) -> list[int]:
        """The rows of the values in a context; new values get records."""
        wanted = values_in(columns, text)
        new = [value for value in wanted if value not in self.rows]
        if new:
            self.rows |= {value: len(self.rows) + index for index, value in enumerate(new)}
            self.values = join_records(self.values, rules.values_of_context([value for _, value in new]))
        return [self.rows[value] for value in wanted]

    def _admit_pairs(self, pairs: Ids, rules: Rules) -> NDArray[np.int64]:
        """The index in `offsets` of each of these pairs; new pairs get records."""
        wanted = np.unique(pairs)
        new = np.setdiff1d(wanted, self.pairs, assume_unique=True)
        if len(new):
            order = np.argsort(np.concatenate((self.pairs, new)), kind="stable")
            self.pairs = np.concatenate((self.pairs, new))[order]
            self.offsets = join_records(self.offsets, rules.offsets(len(new))).take(order)
        return np.searchsorted(self.pairs, pairs)

    def among(self, players: Ids) -> Contexts:
        """The same values, with the records of these players only."""
        chosen = np.flatnonzero(np.isin(self.pairs // ROOM, players))
        return Contexts(self.rows, self.values, self.pairs[chosen], self.offsets.take(chosen))

    def of_line_up(
        self, columns: Sequence[str], context: Context, players: Ids, rules: Rules, ladders: Records
    ) -> tuple[Records, LineUpContext]:
        """The records of pool, ladder and context values, and what is known about these players under the values.

        players  -1 for an unknown player;  ladders  of pool and ladder
        """
        new = len(self.offsets)  # a newcomer's
        rows = [self.rows.get((column, context[column]), -1) if column in context else -1 for column in columns]
        pairs = players[:, None] * ROOM + np.array(rows)
        place = np.minimum(np.searchsorted(self.pairs, pairs), max(len(self.pairs) - 1, 0))
        is_known = (np.array(rows) >= 0) & (players[:, None] >= 0)
        if new:
            is_known &= self.pairs[place] == pairs
        offset = np.where(is_known & (new > 0), place, new).astype(np.uint32).ravel()
        for row, column in zip(rows, columns, strict=True):
            value = self.values[row : row + 1] if row >= 0 else rules.values_of_context([context.get(column, "")])
            ladders = join_records(ladders, value)
        offsets = join_records(self.offsets, rules.offsets(1))
        return ladders, LineUpContext(np.arange(2, 2 + len(columns), dtype=np.uint32), offsets, offset)

    def forget_players(self) -> None:
        """Delete what is known about players; what is known about values is kept."""
        self.pairs, self.offsets = self.pairs[:0], self.offsets[:0]

    def in_order(self) -> Contexts:
        """The same with the values in order, so that equal knowledge gives equal arrays."""
        ordered = sorted(self.rows)
        former = np.array([self.rows[value] for value in ordered], np.int64)
        number = np.empty(len(ordered), np.int64)
        number[former] = np.arange(len(ordered))
        pairs = self.pairs // ROOM * ROOM + number[self.pairs % ROOM]
        order = np.argsort(pairs)
        rows = {value: row for row, value in enumerate(ordered)}
        return Contexts(rows, self.values.take(former), pairs[order], self.offsets.take(order))

    def equals(self, other: Contexts) -> bool:
        """True if the same was learned, bit for bit."""
        a, b = self.in_order(), other.in_order()
        same = a.rows == b.rows and np.array_equal(a.pairs, b.pairs)
        return bool(same and same_bits(a.values, b.values).all() and same_bits(a.offsets, b.offsets).all())

    def named_pairs(self) -> Iterator[tuple[int, str, str]]:
        """(player, column, value) of each pair."""
        names = list(self.rows)
        return ((pair // ROOM, *names[pair % ROOM]) for pair in self.pairs.tolist())

    def pack(self) -> bytes:
        """Serialize for a checkpoint."""
        names = json.dumps(list(self.rows)).encode()
        sizes = np.array([len(names), len(self.pairs)], ID)
        parts = (sizes, self.values, self.pairs.astype(ID), self.offsets)
        return b"".join((parts[0].tobytes(), names, *(part.tobytes() for part in parts[1:])))

    @classmethod
    def unpack(cls, packed: bytes, rules: Rules) -> tuple[Contexts, bytes]:
        """Restore what `pack` serialized, and return what follows it. Raises ValueError for damaged data."""
        size, count = np.frombuffer(packed[: 2 * ID.itemsize], ID).tolist()
        start = 2 * ID.itemsize
        rows = {(column, value): row for row, (column, value) in enumerate(json.loads(packed[start : start + size]))}
        kinds = ((len(rows), rules.system.ladder_type), (count, ID), (count, rules.system.offset_type))
        parts: list[NDArray[Any]] = []
        start += size
        for length, kind in kinds:
            parts.append(np.frombuffer(packed[start : start + length * kind.itemsize], kind).copy())
            start += length * kind.itemsize
        values, pairs, offsets = parts
        if (len(values), len(pairs), len(offsets)) != (len(rows), count, count):
            raise ValueError("the records of context values are cut off")
        return cls(rows, values, pairs.astype(np.int64), offsets), packed[start:]
