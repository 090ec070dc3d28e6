"""What a recorded match did to its players, as they are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.history import History
from evenmatch.ledger.codec import line_type
from evenmatch.ledger.replay import Block
from evenmatch.rating import changes
from evenmatch.systems.loop import Journal
from evenmatch.systems.system import Change, Rules


@dataclass(frozen=True)
class Line:
    """One player's part of a receipt.

    change      what the match did to the rating, and why
    percentile  1..100 as shown when the match was recorded; None: not shown (not placed, not active, no rebuild yet)
    division    likewise
    """

    change: Change
    percentile: int | None
    division: str | None


@dataclass(frozen=True)
class Receipt:
    """What recording a match did.

    position  its place in the ladder's ledger
    rated     False: it changed no rating (the sender wished so, or it is void)
    teams     the lines of its players, team by team, as they were sent; without lines where it was not rated
    """

    match_id: str
    ladder: str
    position: int
    rated: bool
    teams: tuple[tuple[Line, ...], ...]


def receipts(
    ladder: str,
    rules: Rules,
    block: Block,
    match_ids: Sequence[str],
    told: Sequence[bytes],
    names: Mapping[int, str],
    divisions: Sequence[str],
) -> list[Receipt]:
    """The receipts of a block's matches from the lines that were told.

    names  of players by id;  divisions  by the index that lines hold
    """
    c = block.columns
    ids, number = np.unique(block.ids, return_inverse=True)
    known = [names[player] for player in ids.tolist()]
    history = History(c._replace(player=number.astype(np.int32)))
    slots = history.match_slots.tolist()
    lines = np.zeros(len(block.ids), line_type(rules.system))
    for at, one in enumerate(told):
        if one:
            lines[slots[at] : slots[at + 1]] = np.frombuffer(one, lines.dtype)
    journal = Journal(lines["before"], lines["after"], lines["factors"])
    expected = lines["expected"][c.slot_start[:-1]]
    shown = list(zip(lines["percentile"].tolist(), lines["division"].tolist(), strict=True))
    made = []
    for at, (match_id, position) in enumerate(zip(match_ids, block.positions.tolist(), strict=True)):
        teams: tuple[tuple[Line, ...], ...] = ()
        if told[at]:
            beside = iter(shown[slots[at] : slots[at + 1]])
            teams = tuple(
                tuple(_line(change, *next(beside), divisions) for change in team)
                for team in changes(rules, history, expected, journal, at, known)
            )
        made.append(Receipt(match_id, ladder, position, bool(told[at]), teams))
    return made


def _line(change: Change, percentile: int, division: int, divisions: Sequence[str]) -> Line:
    named = divisions[division] if 0 <= division < len(divisions) else None
    return Line(change, percentile if percentile > 0 else None, named)
