"""The odds of a possible match, by a ladder's current ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenmatch.errors import InputError
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, player_identities, player_states
from evenmatch.ledger.text import check_texts
from evenmatch.online import MatchOdds, check_line_up, odds
from evenmatch.systems.system import Records, Rules


class LineupMember(NamedTuple):
    """A player of a line-up; a newcomer has no rating on the ladder, and gets the system's initial rating."""

    player: str
    rating: float
    newcomer: bool


class LineUpOdds(NamedTuple):
    """The teams with their current ratings, and their odds."""

    teams: tuple[tuple[LineupMember, ...], ...]
    odds: MatchOdds


def prospects(store: Store, head: Head, now: int, teams: Sequence[Sequence[str]]) -> LineUpOdds:
    """The odds of a line-up as of now (microseconds).

    Raises InputError if the ladder's system cannot rate such teams, or a player appears twice.
    """
    rules = corrections.read_plan(store, head, head.planned).last_rules
    names = check_line_up(rules, teams)
    check_texts("a player's name", names)
    state, newcomer = _states(store, head, rules, names)
    latest = now if head.time is None else max(now, head.time)
    shown = rules.system.as_of(state, latest, rules.parameters)["rating"].tolist()
    members = iter(map(LineupMember, names, shown, newcomer))
    listed = tuple(tuple(next(members) for _ in team) for team in teams)
    return LineUpOdds(listed, odds(rules, state, [len(team) for team in teams], latest))


def _states(store: Store, head: Head, rules: Rules, names: Sequence[str]) -> tuple[Records, list[bool]]:
    """The records of these players, and whether each is a newcomer."""
    known = player_identities.ids_of(store, names)
    if len(set(known.values())) < len(known):
        ids = list(known.values())
        twice = next(name for name, player in known.items() if ids.count(player) > 1)
        raise InputError(f"{twice!r} and another name in the line-up belong to the same player")
    roster = player_states.read_roster(store, head, rules, np.array(sorted(known.values()), np.int64))
    rows = {player: row for row, player in enumerate(roster.ids.tolist())}
    state = rules.newcomers(len(names))
    newcomer = [True] * len(names)
    for index, name in enumerate(names):
        if name in known and known[name] in rows:
            state[index], newcomer[index] = roster.records[rows[known[name]]], False
    return state, newcomer
