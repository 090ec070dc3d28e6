"""Matches of a ledger as they count now: what was reported, what it did to whom, or why it did nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenmatch.errors import UnknownNameError
from evenmatch.history import Columns, History
from evenmatch.ledger import people
from evenmatch.ledger.events import Correction, Kind
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.replay import Block, counts
from evenmatch.ledger.rows import Row
from evenmatch.ledger.store import Head, Store
from evenmatch.match import Appearance
from evenmatch.service.exporting import positions_of_player
from evenmatch.service.receipts import Line, Receipt, Told, receipts
from evenmatch.service.settings import Settings
from evenmatch.service.stories import Finish, known_number, movement, outcome, standing_of

SCAN = 50_000  # events that one question about times may look at
State = Literal["rated", "unrated", "void", "waits"]
Part = tuple[Appearance, Line | None]  # as it was reported, and what the match did, where it is rated


@dataclass(frozen=True)
class Side:
    """A team of a recorded match."""

    finish: Finish
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Recorded:
    """A match as it counts now.

    state    rated; unrated: as it was sent, or since the system cannot rate it; void: itself, or by a player's ban;
             waits: for a rebuild that is due
    reason   why it is not rated
    reasons  of every player's change, team by team, as a person would tell it
    """

    match_id: str
    position: int
    played_at: int
    duration: float | None
    state: State
    reason: str | None
    sides: tuple[Side, ...]
    reasons: tuple[tuple[str, ...], ...] = ()

    def sentences(self) -> list[str]:
        """The match as a person would tell it: who won, how each team did, what became of it."""
        told = [outcome([side.finish for side in self.sides])]
        told += [f"{standing_of(side.finish)}." for side in self.sides]
        return told if self.reason is None else [*told, f"It changed no rating: {self.reason}."]


def sentences_of(part: Part, reason: str) -> list[str]:
    """What a match did to one player, and why."""
    appearance, line = part
    if line is None:
        return []
    change = line.change
    return [movement(change.before, change.after, quit_early=appearance.quit), reason]


@dataclass(frozen=True)
class Verdicts:
    """What a ladder's corrections say about its matches.

    plan    what its ratings account for;  latest  with the corrections that wait for a rebuild
    voided  the reasons why matches were voided, by position;  banned  why players were, by id
    """

    plan: Plan
    latest: Plan
    voided: Mapping[int, str]
    banned: Mapping[int, str]
    due: bool

    @classmethod
    def of(cls, store: Store, head: Head) -> Verdicts:
        """Those of a ladder."""
        corrections = store.corrections(head, head.corrected)
        plan = plan_of(one for one in corrections if one.position <= head.planned)
        return cls(
            plan,
            plan if head.planned == head.corrected else plan_of(corrections),
            _reasons(corrections, Kind.VOIDED, "match"),
            _reasons(corrections, Kind.BANNED, "player"),
            head.due is not None,
        )

    def on(
        self, block: Block, at: int, counted: bool, rated: bool, names: Mapping[int, str]
    ) -> tuple[State, str | None]:
        """The state of a match of a block whose players are who they are now, and why it is not rated."""
        position, c = int(block.positions[at]), block.columns
        if position in self.latest.void:
            return "void", f"the match was voided{_because(self.voided.get(position))}"
        if not block.rated[at]:
            return "unrated", "it was sent as a match that is not rated"
        if not counted:
            there = block.ids[c.slot_start[c.team_start[at]] : c.slot_start[c.team_start[at + 1]]].tolist()
            who = next(one for one in there if one in self.latest.bans and not self.latest.bans[one].refund)
            return "void", f"{names[who]} is banned{_because(self.banned.get(who))}"
        if rated:
            return "rated", None
        if self.due:
            return "waits", "the ladder's ratings are being made anew"
        rules = self.latest.rules_at(position)
        alone = History(c._replace(player=np.zeros(len(block.ids), np.int32))).take(slice(at, at + 1)).columns
        refused = next((told for _, told in rules.system.refusals(alone, rules.parameters)), "it cannot be rated")
        return "unrated", refused


def recorded(store: Store, head: Head, positions: Sequence[int]) -> list[Recorded]:
    """The matches at these positions, the latest first."""
    if not positions:
        return []
    verdicts = Verdicts.of(store, head)
    divisions = [one.name for one in Settings.read(head.settings).standings.divisions]
    lines = store.lines(head, positions)
    found = [
        one
        for block, rows in store.blocks_at(head, positions)
        for one in _told(store, head, verdicts, block, rows, lines, divisions)
    ]
    return sorted(found, key=lambda one: -one.position)


def find(store: Store, head: Head, match_id: str) -> Recorded:
    """The match of this id. Raises UnknownNameError where there is none."""
    sql = "SELECT position FROM event WHERE ladder = ? AND id = ? AND kind = ?"
    found = store.all(sql, head.ladder, match_id, Kind.MATCH.value)
    if not found:
        raise UnknownNameError(f"match of ladder {head.name!r}", match_id, ())
    return recorded(store, head, [found[0][0]])[0]


def positions_of(
    store: Store,
    head: Head,
    *,
    before: int | None,
    limit: int,
    player: int | None = None,
    since: int | None = None,
    until: int | None = None,
) -> tuple[list[int], int | None]:
    """The positions of so many matches, the latest first, and before which one to go on; None: there are no more.

    player  of this one alone;  since, until  ended at or after, and before (microseconds)
    Where times are asked for, so many events are looked at and no more: there may be fewer matches than the limit, or
    none, and yet more to come.
    """
    first = head.position + 1 if before is None else before
    if player is not None:
        asked = positions_of_player(
            store, head, store.plan(head, head.corrected), player, before=first, limit=_reach(limit, since, until)
        )
        lowest = asked[-1] if len(asked) == _reach(limit, since, until) else 1
        found = asked if since is until is None else _between(store, head, asked, since, until)
    else:
        lowest = 1 if since is until is None else max(1, first - SCAN)
        found = _latest(store, head, first, lowest, limit + 1, since, until)
    if len(found) > limit:
        return found[:limit], found[limit - 1]
    return found, lowest if lowest > 1 else None


def _reach(limit: int, since: int | None, until: int | None) -> int:
    return limit + 1 if since is until is None else SCAN


def _latest(
    store: Store, head: Head, before: int, lowest: int, limit: int, since: int | None, until: int | None
) -> list[int]:
    """Positions of matches in a stretch of the ledger, the latest first."""
    times, values = _bounds(since, until)
    sql = f"SELECT position FROM event WHERE ladder = ? AND position >= ? AND position < ? AND kind = ?{times}"
    listed = (head.ladder, lowest, before, Kind.MATCH.value, *values)
    return [row[0] for row in store.all(f"{sql} ORDER BY position DESC LIMIT ?", *listed, limit)]


def _between(store: Store, head: Head, positions: list[int], since: int | None, until: int | None) -> list[int]:
    """Those of these matches that ended within the times, in the same order."""
    times, values = _bounds(since, until)
    sql = f"SELECT position FROM event WHERE ladder = ?{times} AND position IN ({{}})"
    found = {row[0] for row in store.rows.among(store.connection, sql, (head.ladder, *values), positions)}
    return [one for one in positions if one in found]


def _bounds(since: int | None, until: int | None) -> tuple[str, list[int]]:
    bounds = [(" AND played_at >= ?", since), (" AND played_at < ?", until)]
    asked = [(sql, value) for sql, value in bounds if value is not None]
    return "".join(sql for sql, _ in asked), [value for _, value in asked]


def _told(
    store: Store,
    head: Head,
    verdicts: Verdicts,
    block: Block,
    rows: list[Row],
    lines: Mapping[int, tuple[bytes, int]],
    divisions: Sequence[str],
) -> Iterator[Recorded]:
    """The matches of a block."""
    told = [lines.get(position, (b"", 0))[0] for position in block.positions.tolist()]
    now = replace(block, ids=verdicts.latest.identity(block.ids))
    names = people.names_of(store, np.unique(now.ids).tolist())
    counted = counts(verdicts.latest, now).tolist()
    states = [verdicts.on(now, at, counted[at], bool(told[at]), names) for at in range(len(block))]
    shown = [one if state == "rated" else b"" for one, (state, _) in zip(told, states, strict=True)]
    ids = [row[0] for row in rows]
    made = receipts(head.name, ids, Told(verdicts.plan.last_rules, now, shown, names, divisions))
    for at, (receipt, (state, reason)) in enumerate(zip(made, states, strict=True)):
        sides = _sides(now.columns, at, [names[one] for one in now.ids.tolist()], rows[at][3], receipt)
        yield Recorded(
            receipt.match_id,
            receipt.position,
            int(block.played_at[at]),
            known_number(float(block.columns.duration[at])),
            state,
            reason,
            sides,
            _why(verdicts.plan, receipt),
        )


def _sides(c: Columns, match: int, names: list[str], labels: str | None, receipt: Receipt) -> tuple[Side, ...]:
    first, end = c.team_start[match : match + 2].tolist()
    called = [str(at) for at in range(end - first)] if labels is None else json.loads(labels)
    made = []
    for at, team in enumerate(range(first, end)):
        slots = range(*c.slot_start[team : team + 2].tolist())
        lines = receipt.teams[at] if receipt.teams else (None,) * len(slots)
        expected = receipt.teams[at][0].change.expected if receipt.teams else None
        finish = Finish(called[at], int(c.place[team]), known_number(float(c.team_score[team])), expected)
        made.append(
            Side(finish, tuple((_appearance(c, one, names[one]), line) for one, line in zip(slots, lines, strict=True)))
        )
    return tuple(made)


def _appearance(c: Columns, slot: int, name: str) -> Appearance:
    score, seconds, performance = (known_number(float(column[slot])) for column in (c.score, c.seconds, c.performance))
    return Appearance(name, score, seconds, bool(c.quit[slot]), performance, bool(c.keep[slot]))


def _why(plan: Plan, receipt: Receipt) -> tuple[tuple[str, ...], ...]:
    """Every change as the system tells it, by the rules that were in force."""
    if not receipt.teams:
        return ()
    rules = plan.rules_at(receipt.position)
    return tuple(tuple(rules.system.tell(line.change, rules.parameters) for line in team) for team in receipt.teams)


def _reasons(corrections: Sequence[Correction], kind: Kind, about: str) -> dict[int, str]:
    """The reasons that were given for corrections of a kind, by what they are about; the last one counts."""
    told = {one.body[about]: one.body.get("reason") for one in corrections if one.kind == kind}
    return {at: reason for at, reason in told.items() if isinstance(at, int) and isinstance(reason, str) and reason}


def _because(reason: str | None) -> str:
    return "" if reason is None else f": {reason}"
