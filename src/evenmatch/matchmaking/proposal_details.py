"""Convert created matches to proposals, with regions, roles and named costs."""

from __future__ import annotations

import numpy as np

from evenmatch.history import Floats
from evenmatch.matchmaking.attribute_fields import Fields, fields_of
from evenmatch.matchmaking.match_details import MEASURES, asked_to_play, by_team, measure, rematch_costs
from evenmatch.matchmaking.proposal import COSTS, Proposals
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import QueueView
from evenmatch.matchmaking.tickets import ANYWHERE, Masks, Whole, rows_of, starts
from evenmatch.matchmaking.view import rules_of
from evenmatch.policy import Policy

Made = tuple[Whole, Whole, Whole, Floats]  # start, ticket, team, odds


def tell(queue: Queue, v: QueueView, policy: Policy, now: int, made: Made, expired: Whole) -> Proposals:
    """Create the proposals for the matches in `made`, whose tickets are places in the view."""
    start, ticket, team, odds = made
    if len(start) == 1:
        return no_matches(queue, policy, expired)
    by_team(start, ticket, team)
    measures = np.zeros(len(start) - 1, MEASURES)
    measure(v, queue.tickets if policy.uncertainty > 0 else queue.tickets[:0], start, ticket, team, measures)
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
        role=asked_to_play(v, start, ticket, team, np.array(list(policy.roles.values()), np.int64)),
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
    none, numbers = np.empty(0, np.int64), np.empty(0)
    return Proposals(
        start=np.zeros(1, np.int64),
        ticket=none,
        team=none,
        member_start=np.zeros(1, np.int64),
        player=none,
        role=none,
        region=none,
        ping=numbers,
        odds=numbers,
        spread=numbers,
        rating_spread=numbers,
        waited=numbers,
        costs=np.empty((0, len(COSTS))),
        expired=expired,
        region_names=tuple(queue.region_names),
        role_names=tuple(policy.roles),
        accepts=np.empty(0, np.uint64),
        fields=fields_of(policy),
    )


def _common(v: QueueView, start: Whole, ticket: Whole) -> Masks:
    """The values that all tickets of each match accept."""
    common: Masks = np.bitwise_and.reduceat(v.accepts[ticket], start[:-1])
    return common


def _waived_worth(accepts: Masks, fields: Fields, matches: int) -> Floats:
    """Seconds that agreement on the attributes without a common value is worth, together."""
    costs = np.zeros(matches)
    for field in fields:
        if field.worth is not None:
            costs += field.worth * ((accepts & np.uint64(field.named)) == 0)
    return costs


def _regions(queue: Queue, v: QueueView, start: Whole, ticket: Whole) -> tuple[Whole, Floats]:
    """The region of each match with the lowest worst ping (ties by name), and that ping."""
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
