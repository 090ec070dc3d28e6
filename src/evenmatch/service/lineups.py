"""What is to be expected of teams that might play, as a ladder's ratings are now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenmatch.errors import InputError
from evenmatch.ledger import people
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_texts
from evenmatch.online import Odds, check_line_up, odds
from evenmatch.systems.system import Records, Rules


class Member(NamedTuple):
    """A player of a line-up; a newcomer has no rating on the ladder, and counts as the system has newcomers begin."""

    player: str
    rating: float
    newcomer: bool


class Prospects(NamedTuple):
    """The teams as they stand now, and their odds."""

    teams: tuple[tuple[Member, ...], ...]
    odds: Odds


def prospects(store: Store, head: Head, now: int, teams: Sequence[Sequence[str]]) -> Prospects:
    """The odds of a line-up as of now (microseconds).

    Raises InputError where the ladder's system rates no such teams, or a player is there twice.
    """
    rules = store.plan(head, head.planned).last_rules
    names = check_line_up(rules, teams)
    check_texts("a player's name", names)
    state, newcomer = _states(store, head, rules, names)
    latest = now if head.time is None else max(now, head.time)
    shown = rules.system.as_of(state, latest, rules.parameters)["rating"].tolist()
    members = iter(map(Member, names, shown, newcomer))
    listed = tuple(tuple(next(members) for _ in team) for team in teams)
    return Prospects(listed, odds(rules, state, [len(team) for team in teams], latest))


def _states(store: Store, head: Head, rules: Rules, names: Sequence[str]) -> tuple[Records, list[bool]]:
    """The records of these players, and which of them are newcomers."""
    known = people.ids_of(store, names)
    if len(set(known.values())) < len(known):
        ids = list(known.values())
        twice = next(name for name, player in known.items() if ids.count(player) > 1)
        raise InputError(f"{twice!r} and another name of the line-up are the same player's; accepted is each once")
    roster = store.roster(head, rules, np.array(sorted(known.values()), np.int64))
    rows = {player: row for row, player in enumerate(roster.ids.tolist())}
    state = rules.newcomers(len(names))
    newcomer = [True] * len(names)
    for at, name in enumerate(names):
        if name in known and known[name] in rows:
            state[at], newcomer[at] = roster.records[rows[known[name]]], False
    return state, newcomer
