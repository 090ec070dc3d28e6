"""The odds and the stakes of a possible match, by a ladder's current ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_texts
from evenmatch.match_context import NO_CONTEXT, Context
from evenmatch.online import MatchOdds, check_line_up, odds, with_entry
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import PlayerStakes, Stakes, check_players, stakes
from evenmatch.systems.forecasts import LineUpContext
from evenmatch.systems.system import Records, Rules

MOST_WORK = 2**23  # chosen players times the square of all players: about a second with the slowest system


def stakes_by_id(
    store: Store, head: Head, now: int, teams: Sequence[Sequence[int]], assumptions: StakeAssumptions
) -> dict[int, PlayerStakes]:
    """The stakes of a line-up of player ids in a match that ends now (microseconds), by player id.

    Raises InputError as `check_stakes` does, or if the ladder's system cannot rate such teams.
    """
    plan = event_rows.read_plan(store, head, head.planned)
    given, sizes = [player for team in teams for player in team], [len(team) for team in teams]
    present = player_rows.names_of(store, given)
    names = check_line_up(plan.last_rules, [[present[player] for player in team] for team in teams])
    # Names are resolved as in a report of the match: a merged player's names belong to the other player.
    ids = ids_of(store, head, plan, names)
    latest = now if head.time is None else max(now, head.time)
    check_stakes(plan, ids, names, latest, len(ids))
    state, _ = records_of(store, head, plan.last_rules, ids)
    ladders = rating_rows.read_ladder_records(head, plan.last_rules)
    computed = stakes(plan.last_rules, state, names, sizes, latest, assumptions, range(len(ids)), ladders)
    return dict(zip(given, computed.players, strict=True))


def check_stakes(plan: Plan, ids: Sequence[int | None], names: Sequence[str], time: int, chosen: int) -> None:
    """Raise InputError if a line-up has no stakes: matches with a banned player are not rated as usual.

    chosen  the number of players to compute stakes for; also raises InputError if that would take too long
    ids     None for unknown players;  time  when the match ends, in microseconds
    """
    for player, name in zip(ids, names, strict=True):
        ban = None if player is None else plan.bans.get(player)
        if ban is not None and ban.rule != "keep" and (ban.since is None or ban.since <= time):
            raise InputError(f"{name!r} is banned from this ladder, so there are no stakes in a match with them")
    most = MOST_WORK // len(names) ** 2
    if chosen > most:
        expected = f"expected at most {most:,} players to compute stakes for" if most else "expected fewer players"
        raise InputError(f"stakes of {chosen:,} players in a line-up of {len(names):,} take too long; {expected}")


def ids_of(store: Store, head: Head, plan: Plan, names: Sequence[str]) -> list[int | None]:
    """The ids of these players, or None for each who is neither rated on the ladder nor banned from it.

    Players of other ladders count as unknown, so the answer reveals nothing about their names. Raises InputError if two
    names belong to one player of the ladder.
    """
    known = player_rows.ids_on(store, head, names)
    if plan.bans:
        every = player_rows.ids_of(store, [name for name in names if name not in known])
        known |= {name: player for name, player in every.items() if player in plan.bans}
    if len(set(known.values())) < len(known):
        times = Counter(known.values())
        twice = next(name for name, player in known.items() if times[player] > 1)
        raise InputError(f"{twice!r} and another name in the line-up belong to the same player")
    return [known.get(name) for name in names]


def records_of(store: Store, head: Head, rules: Rules, ids: Sequence[int | None]) -> tuple[Records, list[bool]]:
    """The records of these players, and whether each is a newcomer; unknown players (None) are."""
    known = np.array(sorted({player for player in ids if player is not None}), np.int64)
    roster = rating_rows.read_roster(store, head, rules, known)
    rows = {player: row for row, player in enumerate(roster.ids.tolist())}
    state = rules.newcomers(len(ids))
    newcomer = [player not in rows for player in ids]
    for index, player in enumerate(ids):
        if player in rows:
            state[index] = roster.records[rows[player]]
    return state, newcomer


class LineupMember(NamedTuple):
    """A player of a line-up.

    newcomer  true: the player is not on the ladder and counts with the system's starting rating
    """

    player: str
    rating: float
    newcomer: bool


class StakesQuery(NamedTuple):
    """A request for stakes in addition to odds, for these players of the line-up (None: all)."""

    assumptions: StakeAssumptions
    players: Sequence[str] | None


class LineUpOdds(NamedTuple):
    """The teams with their current ratings and odds, and the requested stakes."""

    teams: tuple[tuple[LineupMember, ...], ...]
    odds: MatchOdds
    stakes: Stakes | None


def prospects(
    store: Store,
    head: Head,
    now: int,
    teams: Sequence[Sequence[str]],
    query: StakesQuery | None = None,
    context: Context = NO_CONTEXT,
    entry: Mapping[str, float] = MappingProxyType({}),
) -> LineUpOdds:
    """The odds of a line-up, and the requested stakes, for a match that ends now (microseconds).

    context  what it is played on; a column that is left out, and a value that no match had, are unknown
    entry    a number known about newcomers before their first match, see match.Appearance
    Raises UnknownNameError for a column that the ladder does not declare, or a name outside the line-up; InputError
    if the ladder's system cannot rate such teams, or a player appears twice; for stakes, also if a player is banned or
    not in the line-up, or if they would take too long to compute.
    """
    plan = event_rows.read_plan(store, head, head.planned)
    rules = plan.last_rules
    names = check_line_up(rules, teams)
    check_texts("a player's name", names)
    ids = ids_of(store, head, plan, names)
    state, newcomer = records_of(store, head, rules, ids)
    latest, sizes = now if head.time is None else max(now, head.time), [len(team) for team in teams]
    shown = rules.system.as_of(state, latest, rules.parameters)["rating"].tolist()
    members = iter(map(LineupMember, names, shown, newcomer))
    listed = tuple(tuple(next(members) for _ in team) for team in teams)
    ladders, known = in_context(store, head, plan, ids, context)
    known = with_entry(rules, known, names, entry)
    computed = None
    if query is not None:
        chosen = check_players(names, query.players)
        check_stakes(plan, ids, names, latest, len(chosen))
        computed = stakes(rules, state, names, sizes, latest, query.assumptions, chosen, ladders, known)
    return LineUpOdds(listed, odds(rules, state, sizes, latest, ladders, known), computed)


def in_context(
    store: Store, head: Head, plan: Plan, ids: Sequence[int | None], context: Context
) -> tuple[Records, LineUpContext | None]:
    """The records of a ladder and of the values of a context, and what is known about players under them.

    Raises UnknownNameError for a column that the ladder does not declare.
    """
    rules = plan.last_rules
    ladders = rating_rows.read_ladder_records(head, rules)
    check_declared(plan, context)
    if not context or not plan.context_columns:
        return ladders, None
    players = np.array([-1 if player is None else player for player in ids], np.int64)
    wanted = {(column, value) for column, value in context.items()}
    contexts = rating_rows.read_contexts(store, head, rules, players, wanted)
    return contexts.of_line_up(plan.context_columns, context, players, rules, ladders)


def check_declared(plan: Plan, context: Context) -> None:
    """Raise UnknownNameError for a column that the ladder does not declare."""
    for column in context:
        if column not in plan.context:
            raise UnknownNameError("context column", column, plan.context)
