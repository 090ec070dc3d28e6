"""Add matches to the end of a ladder: event, states and journal in the transaction that the caller opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.history import Columns, Floats, History, Integers, Times, fill_duration
from evenmatch.ledger import people
from evenmatch.ledger.codec import Ids, Packed, digests, pack, pack_players, seal_of
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.replay import Block, Rated, advance
from evenmatch.ledger.roster import Roster
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_texts
from evenmatch.service.memory import Draft
from evenmatch.service.sheet import Sheet
from evenmatch.tables.columns import datetime_text

# Told player, rating and completed matches of each slot: percentile and division as shown, UNSHOWN for none.
Show = Callable[[Ids, Floats, NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]


AHEAD = 86_400_000_000  # microseconds that a match may end after now: clocks differ, a wrong year is an error


@dataclass(frozen=True, eq=False)
class Batch:
    """Matches to add, in this order. Players are numbered within the batch; `names` are theirs.

    played_at  as the sender told it;  labels: JSON of the teams' labels, None where they are 0, 1, 2 …
    """

    ids: Sequence[str]
    history: History
    names: Sequence[str] | NDArray[np.object_]
    played_at: Times
    rated: Sequence[bool]
    labels: Sequence[str | None]
    packed: Packed
    digests: Sequence[bytes]

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        history: History,
        names: Sequence[str] | NDArray[np.object_],
        played_at: Times,
        rated: Sequence[bool],
        labels: Sequence[str | None],
    ) -> Batch:
        """A batch of these matches. Raises InputError for an id that a database cannot hold."""
        check_texts("match id", ids)
        packed = pack(history, played_at)
        slot_names = np.asarray(names, object)[history.columns.player].tolist() if len(names) else []
        told = digests(packed, slot_names, history.match_slots, rated)
        return cls(ids, history, names, played_at, rated, labels, packed, told)

    @classmethod
    def of_sheet(cls, sheet: Sheet) -> Batch:
        """The matches of a sheet; one that ended before those ahead of it counts as ended with them."""
        names = list(dict.fromkeys(sheet.player))
        numbers = dict(zip(names, range(len(names)), strict=True))
        played_at = np.array(sheet.played_at, np.int64)
        team_start, slot_start = _starts(sheet.teams), _starts(sheet.sizes)
        seconds = np.array(sheet.seconds, np.float64)
        columns = Columns(
            time=np.maximum.accumulate(played_at),
            team_start=team_start,
            place=np.array(sheet.place, np.int32),
            team_score=np.array(sheet.team_score, np.float64),
            slot_start=slot_start,
            player=np.array([numbers[name] for name in sheet.player], np.int32),
            score=np.array(sheet.score, np.float64),
            seconds=seconds,
            performance=np.array(sheet.performance, np.float64),
            quit=np.array(sheet.quit, np.bool_),
            duration=fill_duration(np.array(sheet.duration, np.float64), seconds, slot_start[team_start]),
            keep=np.array(sheet.keep, np.bool_),
        )
        return cls.of(sheet.ids, History(columns), names, played_at, sheet.rated, [None] * len(sheet))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: Sequence[int]) -> Batch:
        """Some of the matches, by ascending number."""
        if len(chosen) == len(self):
            return self
        p = self.packed
        packed = Packed(
            [p.played_at[at] for at in chosen],
            [p.duration[at] for at in chosen],
            [p.teams[at] for at in chosen],
            [p.slots[at] for at in chosen],
        )
        return Batch(
            [self.ids[at] for at in chosen],
            self.history.take(np.array(chosen, np.int64)),
            self.names,
            self.played_at[list(chosen)],
            [self.rated[at] for at in chosen],
            [self.labels[at] for at in chosen],
            packed,
            [self.digests[at] for at in chosen],
        )


class Appended(NamedTuple):
    """What became of a batch: its block, how it was rated, and the present name of everybody in it by id."""

    block: Block
    rated: Rated
    names: dict[int, str]


class Live(NamedTuple):
    """What recording adds to an import: what players are told of their standing, and what is remembered of them."""

    show: Show
    draft: Draft


def append(store: Store, head: Head, plan: Plan, batch: Batch, now: int, live: Live | None = None) -> Appended:
    """Add a batch after the ladder's head, which the caller holds locked; none of its ids may be there yet.

    plan   what the live generation accounts for
    live   None in an import: nobody is told anything
    Raises RatingRangeError where a rating leaves its system's range; then the transaction must end without a commit.
    """
    history = batch.history
    present = np.unique(history.columns.player)
    reported = [batch.names[number] for number in present.tolist()]
    known, names = people.admit(store, reported) if live is None else live.draft.admit(store, reported)
    ids = np.zeros(len(batch.names), np.int64)
    ids[present] = [known[name] for name in reported]
    _refuse_twice(batch, ids)
    positions = head.position + 1 + np.arange(len(batch), dtype=np.int64)
    slot_ids = ids[history.columns.player]
    block = Block(positions, batch.played_at, history.columns, slot_ids, np.array(batch.rated, np.bool_))
    rules, there = plan.last_rules, np.unique(slot_ids)
    roster = store.roster(head, rules, there) if live is None else live.draft.roster(store, rules, there)
    rated = advance(roster, plan, block, lambda one: names[one], lambda at: batch.ids[at - head.position - 1])
    if live is not None and len(rated.lines):
        _show(live.show, block, rated, roster)
    told = rated.told()
    players = pack_players(history, ids)
    p = batch.packed
    what, when, generation = repeat(Kind.MATCH.value), repeat(now), repeat(head.generation)
    who = (repeat(head.ladder), positions.tolist(), batch.ids, what, batch.digests, when)
    wished = list(map(int, batch.rated))
    content = (p.played_at, p.duration, wished, p.teams, players, p.slots)
    seals = map(seal_of, positions.tolist(), batch.ids, *content, batch.digests)
    rows = zip(*who, *content, batch.labels, generation, told, seals, strict=False)  # repeat has no end
    with store.rows.together(store.connection, len(slot_ids)):
        store.add_matches(list(rows))
        store.add_appearances(head.ladder, slot_ids, np.repeat(positions, np.diff(history.match_slots)))
        store.keep_states(head.ladder, head.generation, roster)
        store.move_head(head, int(positions[-1]), roster.time)
    return Appended(block, rated, names)


def _starts(sizes: list[int]) -> Integers:
    starts = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _refuse_twice(batch: Batch, ids: Ids) -> None:
    """Raise InputError where two names in one match are the same player's."""
    c = batch.history.columns
    pair = np.stack((batch.history.slot_match.astype(np.int64), ids[c.player]), axis=1)
    order = np.lexsort((pair[:, 1], pair[:, 0]))
    again = np.flatnonzero((pair[order][1:] == pair[order][:-1]).all(axis=1))
    if len(again):
        one, other = (batch.names[c.player[order[at]]] for at in (again[0], again[0] + 1))
        match_id = batch.ids[int(pair[order[again[0]], 0])]
        raise InputError(f"match {match_id!r}: {one!r} and {other!r} are the same player; accepted is each once")


def _show(show: Show, block: Block, rated: Rated, roster: Roster) -> None:
    """Note in the lines what each player is told of their standing."""
    slots = np.repeat(rated.counted, np.diff(block.columns.slot_start[block.columns.team_start]))
    ids = block.ids[slots]
    rows = np.searchsorted(roster.ids, ids)
    percentile, division = show(ids, rated.lines["after"], roster.tally["completed"][rows])
    rated.lines["percentile"], rated.lines["division"] = percentile, division


def to_come(played_at: int, now: int) -> str:
    """Why a match that ends so long after now is refused."""
    told, limit = (datetime_text(at) for at in (played_at, now + AHEAD))
    return f"played_at is {told}, which is to come; accepted is at most a day from now, {limit}"


def labels_of(texts: Sequence[str]) -> str | None:
    """The labels of a match's teams as they are kept; None where they say nothing but the order."""
    return None if list(texts) == [str(at) for at in range(len(texts))] else json.dumps(list(texts), ensure_ascii=False)
