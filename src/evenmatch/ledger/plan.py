"""What the corrections in a ledger say about how to rate its matches. A plan is a pure function of them, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evenmatch import systems
from evenmatch.history import Flags, Floats
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Body, Correction, Kind
from evenmatch.systems.system import Rules


class Ban(NamedTuple):
    """since: matches that ended before (microseconds) stay as they are; None: all count as the rule says.

    refund  False: the player's matches are void; True: they stay, and who finished behind them keeps their rating
    """

    since: int | None
    refund: bool


class Season(NamedTuple):
    """Opens after the event at `position`: distances from the mean times `factor`; 1 leaves all as it is."""

    position: int
    factor: float


class Start(NamedTuple):
    """Ratings from elsewhere, for players who have not played at `position`; numbers of this system alone."""

    position: int
    system: str
    ids: Ids
    ratings: Floats


@dataclass(frozen=True)
class Plan:
    """How to rate a ladder's matches.

    upto    the position of the last correction in it
    rules   (position, rules): in force for the matches after it; the first is in force from the beginning
    turns   what changes states between two matches, in order of position
    void    positions of matches that count for nothing
    bans    by player id;  merged  the id of whom a player is part of now
    """

    upto: int
    rules: tuple[tuple[int, Rules], ...]
    turns: tuple[Season | Start, ...] = ()
    void: frozenset[int] = frozenset()
    bans: Mapping[int, Ban] = field(default_factory=dict)
    merged: Mapping[int, int] = field(default_factory=dict)

    @property
    def last_rules(self) -> Rules:
        """What the next match is rated by."""
        return self.rules[-1][1]

    def rules_at(self, position: int) -> Rules:
        """What the event at this position is rated by."""
        return next(rules for since, rules in reversed(self.rules) if since < position or since == 0)

    def borders(self, first: int, last: int) -> list[int]:
        """Positions after which something changes, of those from `first` up to `last`."""
        found = {since for since, _ in self.rules} | {turn.position for turn in self.turns}
        return sorted(at for at in found if first <= at <= last)

    def identity(self, ids: Ids) -> Ids:
        """Who these players are now."""
        if not self.merged:
            return ids
        old, new = self._merged_arrays
        at = np.minimum(np.searchsorted(old, ids), len(old) - 1)
        return np.where(old[at] == ids, new[at], ids)

    @cached_property
    def _merged_arrays(self) -> tuple[Ids, Ids]:
        old = np.array(sorted(self.merged), np.int64)
        return old, np.array([self.merged[one] for one in old.tolist()], np.int64)

    def voided(self, positions: Ids) -> Flags:
        """Which of these matches were voided one by one."""
        return np.isin(positions, np.array(sorted(self.void), np.int64))


def plan_of(corrections: Iterable[Correction]) -> Plan:
    """The plan after these corrections, which are in order of position and begin with the ladder's first rules."""
    rules: list[tuple[int, Rules]] = []
    turns: list[Season | Start] = []
    void: set[int] = set()
    bans: dict[int, Ban] = {}
    merged: dict[int, int] = {}
    upto = 0
    for position, kind, body, ids, ratings in corrections:
        upto = position
        if kind == Kind.CHANGED and body.get("system") is not None:
            now = read_rules(body)
            rules = [(0, now)] if body["start"] else [*rules, (position, now)]
        elif kind == Kind.VOIDED:
            void.add(_whole(body, "match"))
        elif kind == Kind.UNVOIDED:
            void.discard(_whole(body, "match"))
        elif kind == Kind.BANNED:
            since = body["since"]
            assert since is None or isinstance(since, int)
            bans[_whole(body, "player")] = Ban(since, body["rule"] == "refund")
        elif kind == Kind.REINSTATED:
            bans.pop(_whole(body, "player"), None)
        elif kind == Kind.MERGED:
            old, new = _whole(body, "player"), _whole(body, "into")
            merged = {one: new if other == old else other for one, other in merged.items()} | {old: new}
        elif kind == Kind.SEASON:
            factor = body["factor"]
            assert isinstance(factor, int | float)
            turns.append(Season(position, float(factor)))
        elif kind == Kind.STARTED:
            turns.append(Start(position, str(body["system"]), ids, ratings))
    system = rules[-1][1].system.name
    turns = [turn for turn in turns if isinstance(turn, Season) or turn.system == system]
    return Plan(upto, tuple(rules), tuple(turns), frozenset(void), bans, merged)


def _whole(body: Body, name: str) -> int:
    value = body[name]
    assert isinstance(value, int)
    return value


def write_rules(rules: Rules, name: str) -> dict[str, object]:
    """Rules as an event keeps them: every parameter, so that a default that changes later changes no ladder.

    name  by which systems.find finds the system
    """
    return {"system": name, "preset": rules.preset, "parameters": rules.values()}


def read_rules(body: Body) -> Rules:
    """What `write_rules` wrote. Raises UnknownNameError where the system is not installed any more."""
    parameters = body["parameters"]
    assert isinstance(parameters, dict)
    preset = body["preset"]
    assert preset is None or isinstance(preset, str)
    return Rules.of(systems.find(str(body["system"])), preset, **parameters)
