"""The odds and the stakes of a possible match, by a ladder's current ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, player_states
from evenmatch.ledger.text import check_texts
from evenmatch.online import MatchOdds, check_line_up, odds
from evenmatch.service.queries.lineup_stakes import check_stakes, ids_of, records_of
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.stakes import Stakes, check_players, stakes


class LineupMember(NamedTuple):
    """A player of a line-up; a newcomer has no rating on the ladder, and gets the system's initial rating."""

    player: str
    rating: float
    newcomer: bool


class StakesQuery(NamedTuple):
    """The stakes that are asked for with the odds: of these players of the line-up (None: all)."""

    assumptions: StakeAssumptions
    players: Sequence[str] | None


class LineUpOdds(NamedTuple):
    """The teams with their current ratings, their odds, and the stakes that were asked for."""

    teams: tuple[tuple[LineupMember, ...], ...]
    odds: MatchOdds
    stakes: Stakes | None


def prospects(
    store: Store, head: Head, now: int, teams: Sequence[Sequence[str]], query: StakesQuery | None = None
) -> LineUpOdds:
    """The odds of a line-up, and the stakes that are asked for, of a match that ends now (microseconds).

    Raises InputError if the ladder's system cannot rate such teams, or a player appears twice; for stakes, too, if a
    player is banned, is not in the line-up, or they take too long to compute.
    """
    plan = corrections.read_plan(store, head, head.planned)
    rules = plan.last_rules
    names = check_line_up(rules, teams)
    check_texts("a player's name", names)
    ids = ids_of(store, head, plan, names)
    state, newcomer = records_of(store, head, rules, ids)
    latest, sizes = now if head.time is None else max(now, head.time), [len(team) for team in teams]
    shown = rules.system.as_of(state, latest, rules.parameters)["rating"].tolist()
    members = iter(map(LineupMember, names, shown, newcomer))
    listed = tuple(tuple(next(members) for _ in team) for team in teams)
    ladders = player_states.read_ladders(head, rules)
    computed = None
    if query is not None:
        chosen = check_players(names, query.players)
        check_stakes(plan, ids, names, latest, len(chosen))
        computed = stakes(rules, state, names, sizes, latest, query.assumptions, chosen, ladders)
    return LineUpOdds(listed, odds(rules, state, sizes, latest, ladders), computed)
