"""The plan: how to rate the matches of a ledger, a pure function of its corrections in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from evenmatch import systems
from evenmatch.errors import BadParameterError, DamageError, UnknownNameError
from evenmatch.history import Flags
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.events import (
    Body,
    Correction,
    MatchReinstated,
    MatchVoided,
    PlayerBanned,
    PlayerMerged,
    PlayerReinstated,
    RatingsDecayed,
    RatingsStarted,
    RulesChanged,
    SeasonOpened,
    SettingsChanged,
    damaged,
)
from evenmatch.match_context import read_declared
from evenmatch.systems.system import Rules, System

Counting = Literal["all", "season", "reset"]


@dataclass(frozen=True)
class Plan:
    """How to rate a ladder's matches.

    upto    the position of the last correction included
    rules   (position, rules): apply to the matches after the position; the first apply from the beginning
    all_turns  season starts, and starting ratings and decays of all systems, by position; they change states between
            matches
    void    positions of voided matches
    bans    the latest of each player, by player id, even if it has ended
    merged  the player id that a merged id belongs to now
    systems  the name of the system in force after each correction, by position
    files   systems that come from a file, by its path
    context  the context columns that the ladder declares
    """

    upto: int
    rules: tuple[tuple[int, Rules], ...]
    all_turns: tuple[Correction, ...] = ()
    void: frozenset[int] = frozenset()
    bans: Mapping[int, PlayerBanned] = field(default_factory=dict)
    merged: Mapping[int, int] = field(default_factory=dict)
    systems: Mapping[int, str] = field(default_factory=dict)
    files: Mapping[str, System] = field(default_factory=dict)
    context: tuple[str, ...] = ()

    def is_current(self) -> bool:
        """True if the files of its systems are unchanged. Raises UsageError if one is missing."""
        return all(systems.find(path) is system for path, system in self.files.items())

    @property
    def last_rules(self) -> Rules:
        """The rules for the next match."""
        return self.rules[-1][1]

    @property
    def context_columns(self) -> tuple[str, ...]:
        """The context columns by which the ladder is rated; empty for systems that do not use them."""
        return () if self.last_rules.system.offset is None else self.context

    def rules_at(self, position: int) -> Rules:
        """The rules for the event at this position."""
        return next(rules for since, rules in reversed(self.rules) if since < position or since == 0)

    def banned(self, now: int) -> dict[int, PlayerBanned]:
        """The bans in force at a time (microseconds), by player id: these players are not listed and cannot queue."""
        return {player: ban for player, ban in self.bans.items() if ban.until is None or now < ban.until}

    @cached_property
    def turns(self) -> tuple[Correction, ...]:
        """The turns that count: starting ratings and decays belong to one system and change only its ratings."""
        system = self.last_rules.system.name
        return tuple(turn for turn in self.all_turns if getattr(turn.change, "system", system) == system)

    @property
    def openings(self) -> tuple[tuple[int, SeasonOpened], ...]:
        """The openings of seasons, each with its position."""
        return tuple((turn.position, turn.change) for turn in self.all_turns if isinstance(turn.change, SeasonOpened))

    @property
    def counting(self) -> Counting:
        """The matches that a player's numbers cover: all, this season's, or all since an earlier reset."""
        resets = [opening.factor != 1 for _, opening in self.openings]
        return "season" if resets[-1:] == [True] else "reset" if any(resets) else "all"

    @cached_property
    def turn_at(self) -> Mapping[int, Correction]:
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
        except (TypeError, ValueError, BadParameterError) as error:
            raise damaged("", correction.position, correction.change.kind, error) from error
    if not draft.rules:
        raise DamageError(
            "the ladder's first event, which has its rules, is missing; `evenmatch verify` shows what is damaged"
        )
    return draft.plan()


@dataclass
class _Draft:
    """A plan while corrections are added to it, in order."""

    upto: int = 0
    rules: list[tuple[int, Rules]] = field(default_factory=list)
    turns: list[Correction] = field(default_factory=list)
    void: set[int] = field(default_factory=set)
    bans: dict[int, PlayerBanned] = field(default_factory=dict)
    merged: dict[int, int] = field(default_factory=dict)
    systems: dict[int, str] = field(default_factory=dict)
    files: dict[str, System] = field(default_factory=dict)
    context: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> _Draft:
        """A draft that begins with the corrections of a plan."""
        return cls(
            plan.upto,
            [*plan.rules],
            [*plan.all_turns],
            {*plan.void},
            dict(plan.bans),
            dict(plan.merged),
            dict(plan.systems),
            dict(plan.files),
            plan.context,
        )

    def add(self, correction: Correction) -> None:
        position, change = correction.position, correction.change
        self.upto = position
        if isinstance(change, RulesChanged | SettingsChanged):
            self.context = read_declared(change.settings.get("context", ()))
        match change:
            case RulesChanged():
                rules = read_rules(change.system, change.preset, change.parameters)
                if systems.is_file(change.system):
                    self.files[change.system] = rules.system
                self.rules = [(0, rules)] if change.start else [*self.rules, (position, rules)]
            case MatchVoided(match):
                self.void.add(match)
            case MatchReinstated(match):
                self.void.discard(match)
            case PlayerBanned(player):
                self.bans[player] = change
            case PlayerReinstated(player):
                self.bans.pop(player, None)
            case PlayerMerged(old, new):
                self.merged = {source: new if to == old else to for source, to in self.merged.items()} | {old: new}
            case SeasonOpened() | RatingsStarted() | RatingsDecayed():
                self.turns.append(correction)
        if self.rules:
            self.systems[position] = self.rules[-1][1].system.name

    def plan(self) -> Plan:
        rules, turns, void = tuple(self.rules), tuple(self.turns), frozenset(self.void)
        return Plan(self.upto, rules, turns, void, self.bans, self.merged, self.systems, self.files, self.context)


def read_rules(system: str, preset: str | None, parameters: Body) -> Rules:
    """The rules of an event. Raises UnknownNameError if the system is no longer installed, ValueError for damage."""
    found = systems.find(system)
    try:
        return Rules.of(found, preset, **parameters)
    except UnknownNameError as error:
        raise ValueError(str(error)) from error
