"""The plan: how to rate the matches of a ledger, a pure function of its corrections in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from evenmatch import systems
from evenmatch.errors import BadParameterError, DamageError, UnknownNameError
from evenmatch.history import Flags, Floats
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import Body, Correction, Kind
from evenmatch.ledger.idle_decay import PlannedDecay
from evenmatch.systems.system import Rules, System


class PlannedBan(NamedTuple):
    """A ban of a player.

    since   only matches that ended at or after this time (microseconds) are affected; None: all
    refund  False: the player's matches are void; True: they count, but players who finished behind keep their rating
    """

    since: int | None
    refund: bool


class PlannedSeason(NamedTuple):
    """A season that opens after `position`: distances from the mean are multiplied by `factor` (1: unchanged)."""

    position: int
    factor: float


class PlannedStart(NamedTuple):
    """Imported starting ratings of one system, for players without a match up to `position`."""

    position: int
    system: str
    ids: Ids
    ratings: Floats


Turn = PlannedSeason | PlannedStart | PlannedDecay
Counting = Literal["all", "season", "reset"]


@dataclass(frozen=True)
class Plan:
    """How to rate a ladder's matches.

    upto    the position of the last correction included
    rules   (position, rules): apply to the matches after the position; the first apply from the beginning
    all_turns  season starts, and starting ratings and decays of all systems, by position; they change states between
            matches
    void    positions of voided matches
    bans    by player id;  merged  the player id that a merged id belongs to now
    systems  the name of the system in force after each correction, by position
    files   systems that come from a file, by its path
    """

    upto: int
    rules: tuple[tuple[int, Rules], ...]
    all_turns: tuple[Turn, ...] = ()
    void: frozenset[int] = frozenset()
    bans: Mapping[int, PlannedBan] = field(default_factory=dict)
    merged: Mapping[int, int] = field(default_factory=dict)
    systems: Mapping[int, str] = field(default_factory=dict)
    files: Mapping[str, System] = field(default_factory=dict)

    def is_current(self) -> bool:
        """Whether the files of its systems are unchanged. Raises UsageError if one is missing."""
        return all(systems.find(path) is system for path, system in self.files.items())

    @property
    def last_rules(self) -> Rules:
        """The rules for the next match."""
        return self.rules[-1][1]

    def rules_at(self, position: int) -> Rules:
        """The rules for the event at this position."""
        return next(rules for since, rules in reversed(self.rules) if since < position or since == 0)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns that count: starting ratings and decays belong to one system and change only its ratings."""
        system = self.last_rules.system.name
        return tuple(turn for turn in self.all_turns if isinstance(turn, PlannedSeason) or turn.system == system)

    @property
    def counting(self) -> Counting:
        """Which matches a player's numbers count: all, those of this season, or those since an earlier reset."""
        resets = [turn.factor != 1 for turn in self.all_turns if isinstance(turn, PlannedSeason)]
        return "season" if resets[-1:] == [True] else "reset" if any(resets) else "all"

    @cached_property
    def turn_at(self) -> Mapping[int, Turn]:
        """The turns by position."""
        return {turn.position: turn for turn in self.turns}

    def borders(self, first: int, last: int) -> list[int]:
        """Positions from `first` to `last` after which rules or states change."""
        positions = {since for since, _ in self.rules} | {turn.position for turn in self.turns}
        return sorted(position for position in positions if first <= position <= last)

    def identity(self, ids: Ids) -> Ids:
        """The present ids of these players, after merges."""
        if not self.merged:
            return ids
        old, new = self._merged_arrays
        row = np.minimum(np.searchsorted(old, ids), len(old) - 1)
        return np.where(old[row] == ids, new[row], ids)

    @cached_property
    def _merged_arrays(self) -> tuple[Ids, Ids]:
        old = np.array(sorted(self.merged), np.int64)
        return old, np.array([self.merged[player] for player in old.tolist()], np.int64)

    def voided(self, positions: Ids) -> Flags:
        """Mask of the matches that were voided individually."""
        return np.isin(positions, np.array(sorted(self.void), np.int64))


def plan_of(corrections: Iterable[Correction], before: Plan | None = None) -> Plan:
    """Build the plan from corrections in order of position; the first one has the ladder's initial rules.

    before  the plan from the corrections before these; None: there are none
    Raises DamageError if a correction is malformed, UnknownNameError if a system is not installed.
    """
    draft = _Draft() if before is None else _Draft.of(before)
    for correction in corrections:
        try:
            draft.add(correction)
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError, BadParameterError) as error:
            raise _damaged(correction, error) from error
        except UnknownNameError as error:
            if draft.is_installed(correction):
                raise _damaged(correction, error) from error
            raise
    if not draft.rules:
        raise DamageError(
            "the ladder's first event, which has its rules, is missing; `evenmatch verify` shows what is damaged"
        )
    return draft.plan()


def _damaged(correction: Correction, error: Exception) -> DamageError:
    reason = str(error) or type(error).__name__
    return DamageError(
        f"the event {correction.kind} at position {correction.position} is damaged, or from a newer evenmatch "
        f"({reason}); `evenmatch verify` shows which, restore it from a backup"
    )


@dataclass
class _Draft:
    """A plan while corrections are added to it, in order."""

    upto: int = 0
    rules: list[tuple[int, Rules]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    void: set[int] = field(default_factory=set)
    bans: dict[int, PlannedBan] = field(default_factory=dict)
    merged: dict[int, int] = field(default_factory=dict)
    systems: dict[int, str] = field(default_factory=dict)
    files: dict[str, System] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> _Draft:
        """A draft with the corrections of a plan."""
        return cls(
            plan.upto,
            [*plan.rules],
            [*plan.all_turns],
            {*plan.void},
            dict(plan.bans),
            dict(plan.merged),
            dict(plan.systems),
            dict(plan.files),
        )

    def add(self, correction: Correction) -> None:
        position, kind, body, ids, ratings = correction
        self.upto = position
        if kind == Kind.CHANGED and body.get("system") is not None:
            changed, name = read_rules(body), str(body["system"])
            if systems.is_file(name):
                self.files[name] = changed.system
            self.rules = [(0, changed)] if body["start"] else [*self.rules, (position, changed)]
        elif kind == Kind.VOIDED:
            self.void.add(_integer(body, "match"))
        elif kind == Kind.UNVOIDED:
            self.void.discard(_integer(body, "match"))
        elif kind == Kind.BANNED:
            since = body["since"]
            assert since is None or isinstance(since, int)
            self.bans[_integer(body, "player")] = PlannedBan(since, body["rule"] == "refund")
        elif kind == Kind.REINSTATED:
            self.bans.pop(_integer(body, "player"), None)
        elif kind == Kind.MERGED:
            old, new = _integer(body, "player"), _integer(body, "into")
            self.merged = {source: new if to == old else to for source, to in self.merged.items()} | {old: new}
        elif kind == Kind.SEASON:
            factor = body["factor"]
            assert isinstance(factor, int | float)
            self.turns.append(PlannedSeason(position, float(factor)))
        elif kind == Kind.STARTED:
            self.turns.append(PlannedStart(position, str(body["system"]), ids, ratings))
        elif kind == Kind.DECAYED:
            self.turns.append(read_decay(position, body))
        if self.rules:
            self.systems[position] = self.rules[-1][1].system.name

    def is_installed(self, correction: Correction) -> bool:
        """Whether the system of these rules is installed; if so, another name is unknown."""
        try:
            systems.find(str(correction.body["system"]))
        except UnknownNameError:
            return False
        return True

    def plan(self) -> Plan:
        rules, turns, void = tuple(self.rules), tuple(self.turns), frozenset(self.void)
        return Plan(self.upto, rules, turns, void, self.bans, self.merged, self.systems, self.files)


def _integer(body: Body, name: str) -> int:
    value = body[name]
    assert isinstance(value, int)
    return value


def read_decay(position: int, body: Body) -> PlannedDecay:
    """The decay of an event at this position."""
    values = {name: body[name] for name in PlannedDecay._fields if name != "position"}
    return PlannedDecay(position, **values)  # type: ignore[arg-type]


def write_rules(rules: Rules, name: str) -> dict[str, object]:
    """Serialize rules for an event, with every parameter, so that changed defaults do not affect existing ladders.

    name  the name of the system for systems.find
    """
    return {"system": name, "preset": rules.preset, "parameters": rules.values()}


def read_rules(body: Body) -> Rules:
    """Deserialize rules from `write_rules`. Raises UnknownNameError if the system is no longer installed."""
    parameters = body["parameters"]
    assert isinstance(parameters, dict)
    preset = body["preset"]
    assert preset is None or isinstance(preset, str)
    return Rules.of(systems.find(str(body["system"])), preset, **parameters)
