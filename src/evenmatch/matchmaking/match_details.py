"""Details of the created matches, such as spreads, rematches and roles, and their conversion to proposals."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.attributes import Fields, fields_of
from evenmatch.matchmaking.conflict import worth
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import KernelRules, QueueView, compiled, lean
from evenmatch.matchmaking.roles import assign
from evenmatch.matchmaking.tickets import ANYWHERE, Masks, Whole, rows_of, starts
from evenmatch.matchmaking.view import rules_of
from evenmatch.policy import Policy

MEASURES = np.dtype(
    [
        ("spread", "f8"),
        ("rating_spread", "f8"),
        ("waited", "f8"),
        ("unlike", "i8"),  # the largest difference in largest party size between two teams
        ("mixed", "?"),  # whether newcomers play with placed players
    ],
    align=True,
)


@compiled
def rematch_costs(v: QueueView, rules: KernelRules, start: Whole, ticket: Whole) -> Floats:
    """The highest cost of a rematch in each match, in seconds; float64 (M,)."""
    costs = np.zeros(len(start) - 1)
    for match in range(len(start) - 1):
        players, names = np.uint64(0), np.uint64(0)
        for i in range(start[match], start[match + 1]):
            players, names = players | v.t[ticket[i]].players, names | v.t[ticket[i]].names
        if not players & names:
            continue
        for i in range(start[match], start[match + 1]):
            for other in range(i + 1, start[match + 1]):
                costs[match] = max(costs[match], worth(v, rules, ticket[i], ticket[other]))
    return costs


@lean
def by_team(start: Whole, ticket: Whole, team: Whole) -> None:
    """Sort the tickets of each match by team, then by place."""
    for match in range(len(start) - 1):
        for i in range(start[match] + 1, start[match + 1]):
            own, side, at = ticket[i], team[i], i
            while at > start[match] and (team[at - 1] > side or (team[at - 1] == side and ticket[at - 1] > own)):
                ticket[at], team[at] = ticket[at - 1], team[at - 1]
                at -= 1
            ticket[at], team[at] = own, side


@lean
def measure(v: QueueView, start: Whole, ticket: Whole, team: Whole, out: Any) -> None:  # noqa: ANN401
    """Write the measures of each match to `out`, MEASURES (M,). Tickets must be sorted by team."""
    for match in range(len(start) - 1):
        low, high, rating_low, rating_high, waited = np.inf, -np.inf, np.inf, -np.inf, 0.0
        largest, smallest, own, fresh, placed = 0, 1 << 30, 0, False, False
        for i in range(start[match], start[match + 1]):
            t = v.t[ticket[i]]
            low, high = min(low, t.low), max(high, t.high)
            rating_low, rating_high = min(rating_low, t.rating_low), max(rating_high, t.rating_high)
            waited = max(waited, t.waited)
            fresh, placed = fresh or t.newcomers > 0, placed or t.newcomers == 0
            own = max(own, t.size)
            if i + 1 == start[match + 1] or team[i + 1] != team[i]:
                largest, smallest, own = max(largest, own), min(smallest, own), 0
        m = out[match]
        m.spread, m.rating_spread, m.waited = high - low, rating_high - rating_low, waited
        m.unlike, m.mixed = largest - smallest, fresh and placed


@compiled
def line_ups(
    v: QueueView, teams: int, start: Whole, ticket: Whole, team: Whole, good: Whole
) -> tuple[Whole, Whole, Floats]:
    """The columns of `odds.LineUps` for the matches that were divided into teams (`good` is not 0)."""
    matches, players = 0, 0
    for match in range(len(good)):
        if good[match]:
            matches += 1
            for i in range(start[match], start[match + 1]):
                players += v.t[ticket[i]].size
    team_start = np.zeros(matches * teams + 1, np.int64)
    player, rating = np.empty(players, np.int64), np.empty(players)
    number, filled = 0, 0
    for match in range(len(good)):
        if not good[match]:
            continue
        for side in range(teams):
            for i in range(start[match], start[match + 1]):
                if team[i] == side:
                    t = v.t[ticket[i]]
                    for m in range(t.first, t.first + t.size):
                        player[filled], rating[filled] = v.members[m].player, v.members[m].rating
                        filled += 1
            number += 1
            team_start[number] = filled
    return team_start, player, rating


@compiled
def assigned_roles(v: QueueView, start: Whole, ticket: Whole, team: Whole, need: Whole) -> Whole:
    """The role of each player, or -1 for any; int64 (S,). Tickets must be sorted by team.

    need  int64 (R,)  required number of each role in a team
    """
    players = 0
    for j in ticket:
        players += v.t[j].size
    role = np.full(players, -1, np.int64)
    if not len(need):
        return role
    masks = np.empty(players, np.int64)
    first, at = 0, 0
    for match in range(len(start) - 1):
        for i in range(start[match], start[match + 1]):
            j = ticket[i]
            for m in range(v.t[j].first, v.t[j].first + v.t[j].size):
                masks[at] = v.role[m]
                at += 1
            if i + 1 == start[match + 1] or team[i + 1] != team[i]:
                assign(masks[first:at], need, role[first:at])
                first = at
    return role


Made = tuple[Whole, Whole, Whole, Floats]  # start, ticket, team, odds


def proposals_of(queue: Queue, v: QueueView, policy: Policy, now: int, made: Made, expired: Whole) -> Proposals:
    """The proposals for the matches in `made`, whose tickets are places in the view."""
    start, ticket, team, odds = made
    if len(start) == 1:
        return no_matches(queue, policy, expired)
    by_team(start, ticket, team)
    measures = np.zeros(len(start) - 1, MEASURES)
    measure(v, start, ticket, team, measures)
    first, size = v.t["first"][ticket], v.t["size"][ticket]
    region, ping = _regions(queue, v, start, ticket)
    fields = fields_of(policy)
    accepts = _common(v, start, ticket) if fields else np.empty(0, np.uint64)
    return Proposals(
        start=start,
        ticket=v.t["id"][ticket],
        team=team,
        member_start=starts(size),
        player=v.members["player"][rows_of(first, size)],
        role=assigned_roles(v, start, ticket, team, np.array(list(policy.roles.values()), np.int64)),
        region=region,
        ping=ping,
        odds=odds,
        spread=measures["spread"].copy(),
        rating_spread=measures["rating_spread"].copy(),
        waited=measures["waited"].copy(),
        costs=np.stack(
            (
                policy.spread_cost * measures["spread"],
                policy.odds_cost * 100 * np.nan_to_num(np.abs(odds - 0.5)),
                rematch_costs(v, rules_of(policy, now, policy.team_size), start, ticket),
                policy.newcomer_wait * measures["mixed"],
                policy.party_wait * measures["unlike"],
                _waived_worth(accepts, fields, len(start) - 1),
            ),
            axis=1,
        ),
        expired=expired,
        region_names=tuple(queue.region_names),
        role_names=tuple(policy.roles),
        accepts=accepts,
        fields=fields,
    )


def no_matches(queue: Queue, policy: Policy, expired: Whole) -> Proposals:
    """Proposals without a match."""
    return Proposals(
        expired=expired,
        region_names=tuple(queue.region_names),
        role_names=tuple(policy.roles),
        fields=fields_of(policy),
    )


def _common(v: QueueView, start: Whole, ticket: Whole) -> Masks:
    """The values that all tickets of each match accept."""
    common: Masks = np.bitwise_and.reduceat(v.accepts[ticket], start[:-1])
    return common


def _waived_worth(accepts: Masks, fields: Fields, matches: int) -> Floats:
    """The summed worth of the attributes on which each match does not agree, in seconds."""
    costs = np.zeros(matches)
    for field in fields:
        if field.worth is not None:
            costs += field.worth * ((accepts & np.uint64(field.named)) == 0)
    return costs


def _regions(queue: Queue, v: QueueView, start: Whole, ticket: Whole) -> tuple[Whole, Floats]:
    """The region where the highest ping of each match is lowest (ties by name), and that ping."""
    matches = len(start) - 1
    if not queue.region_names:
        return np.full(matches, -1, np.int64), np.zeros(matches)
    able = v.t["able"][ticket]
    if (able == ANYWHERE).all():
        return np.full(matches, -1, np.int64), np.zeros(matches)
    by_name = np.argsort(queue.region_names, kind="stable")
    ping = queue.ping[v.t["slot"][ticket]][:, by_name]
    can = able[:, None] >> by_name.astype(np.uint64) & np.uint64(1) == 1
    anywhere = able == ANYWHERE
    ping = np.where(anywhere[:, None], 0.0, np.where(can, ping, np.inf))
    worst = np.maximum.reduceat(ping, start[:-1], axis=0)
    best = worst.argmin(axis=1)
    free = np.logical_and.reduceat(anywhere, start[:-1])
    return np.where(free, -1, by_name[best]), np.where(free, 0.0, worst[np.arange(matches), best])
