"""Whose rules a run's matches broke: the rules written once more, knowing nothing of how any matchmaker keeps them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.history import Flags, Floats
from evenmatch.lab.queue_matches import SECOND, Matches
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.tickets import FOREVER, Tickets, Whole, rows_of, starts

HAIR = 1e-9  # of a percentile: bands of uncertainty are products, which may be rounded in more than one way


@dataclass(frozen=True, eq=False)
class Broken:
    """For each of the K tickets in a match, whether a rule was broken for it; all bool (K,).

    window  somebody of another ticket stands outside its filter
    region  it cannot play there, or the policy does not let it
    avoid   somebody whom it avoids is in the match
    size    the match has not the teams that the policy asks for
    roles   a team lacks a role that the policy asks for, or a player has one that they do not offer
    sizes   int64 (K,)  its players
    """

    window: Flags
    region: Flags
    avoid: Flags
    size: Flags
    roles: Flags
    sizes: Whole

    @property
    def players(self) -> int:
        """Players for whom a rule was broken, whatever it was."""
        return self.count(self.window | self.region | self.avoid | self.size | self.roles)

    def count(self, tickets: Flags) -> int:
        """The players of these tickets."""
        return int(self.sizes[tickets].sum())


def broken(matches: Matches, tickets: Tickets, policy: Policy) -> Broken:
    """Which tickets of a run's matches had a rule broken."""
    sizes = np.diff(tickets.start)[matches.ticket]
    if not len(matches):
        never = np.zeros(0, np.bool_)
        return Broken(never, never, never, never, never, sizes)
    return Broken(
        window=_windows(matches, tickets, policy),
        region=_regions(matches, tickets, policy),
        avoid=_avoided(matches, tickets),
        size=_sizes(matches, tickets, policy)[matches.match],
        roles=_roles(matches, tickets, policy)[matches.match],
        sizes=sizes,
    )


def widths(policy: Policy, waited: Floats) -> Floats:
    """How far loose filters are widened after so many seconds each, in percentiles."""
    after, width = np.array(policy.steps).T
    reached: Floats = width[np.searchsorted(after, np.maximum(waited, 0.0), side="right") - 1]
    return reached


def _windows(matches: Matches, tickets: Tickets, policy: Policy) -> Flags:
    sizes = np.diff(tickets.start)
    loose = np.logical_and.reduceat(tickets.loose, tickets.start[:-1])[matches.ticket]
    waited = (matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND
    widened = np.where(loose, widths(policy, waited), 0.0)
    member = rows_of(tickets.start[matches.ticket], sizes[matches.ticket])
    first = starts(sizes[matches.ticket])[:-1]
    within = np.maximum(tickets.within[member], np.repeat(widened, sizes[matches.ticket]))
    at = tickets.percentile[member]
    band = np.minimum(policy.uncertainty * tickets.deviation[member], within)  # no wider than their own filter
    bottom, top = np.minimum.reduceat(at - within, first), np.maximum.reduceat(at + within, first)
    low, high = np.minimum.reduceat(at - band, first), np.maximum.reduceat(at + band, first)
    # A party lies within its own hull, and a band within its own filter: so everybody may be asked, not only others.
    starting, hair = matches.start[:-1], HAIR if policy.uncertainty else 0.0
    lowest = np.minimum.reduceat(low, starting)[matches.match]
    highest = np.maximum.reduceat(high, starting)[matches.match]
    return np.asarray((lowest < bottom - hair) | (highest > top + hair))


def _regions(matches: Matches, tickets: Tickets, policy: Policy) -> Flags:
    ping = tickets.ping[matches.ticket]
    anywhere = np.isnan(ping).all(axis=1)
    column = {name: at for at, name in enumerate(tickets.region_names)}
    known = [column.get(name, -1) for name in matches.region_names]
    chosen = np.array([*known, -1], np.int64)[matches.region][matches.match]
    most = np.inf if policy.max_ping is None else policy.max_ping
    padded = np.column_stack((ping, np.full(len(ping), np.inf)))  # -1: a region that nobody knows, or none at all
    there = padded[np.arange(len(ping)), chosen]
    return np.asarray(~anywhere & ~((there <= most) & (there < np.inf)))


def _avoided(matches: Matches, tickets: Tickets) -> Flags:
    hit = np.zeros(len(matches.ticket), np.bool_)
    if not (tickets.met == FOREVER).any():
        return hit
    sizes, names = np.diff(tickets.start)[matches.ticket], np.diff(tickets.named_start)[matches.ticket]
    name = rows_of(tickets.named_start[matches.ticket], names)
    asking = np.repeat(np.arange(len(matches.ticket)), names)[tickets.met[name] == FOREVER]
    avoided = tickets.named[name][tickets.met[name] == FOREVER]
    here = tickets.player[rows_of(tickets.start[matches.ticket], sizes)]
    players, number = np.unique(np.concatenate((avoided, here)), return_inverse=True)
    key = np.concatenate((matches.match[asking], np.repeat(matches.match, sizes))) * len(players) + number
    hit[asking[np.isin(key[: len(asking)], key[len(asking) :])]] = True
    return hit


def _sizes(matches: Matches, tickets: Tickets, policy: Policy) -> Flags:
    sizes = np.diff(tickets.start)[matches.ticket]
    first, count = matches.team_start[:-1], np.diff(matches.team_start)
    filled = np.bincount(matches.team_start[matches.match] + matches.team, sizes, int(matches.team_start[-1]))
    least, most = np.minimum.reduceat(filled, first), np.maximum.reduceat(filled, first)
    good = (count == policy.teams) & (least == most) & (most <= policy.team_size)
    waited = (matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND
    patient = np.minimum.reduceat(waited, matches.start[:-1]) >= policy.smaller_after
    fewest = policy.team_size if policy.min_team_size is None else policy.min_team_size
    good &= (least == policy.team_size) | ((least >= fewest) & patient)
    _, number, times = np.unique(matches.ticket, return_inverse=True, return_counts=True)
    good &= ~np.logical_or.reduceat(times[number] > 1, matches.start[:-1])  # a party in two places
    return np.asarray(~good)


def _roles(matches: Matches, tickets: Tickets, policy: Policy) -> Flags:
    bad = np.zeros(len(matches), np.bool_)
    if not policy.roles:
        return bad
    sizes = np.diff(tickets.start)[matches.ticket]
    match = np.repeat(matches.match, sizes)
    team = np.repeat(matches.team_start[matches.match] + matches.team, sizes)
    of_team = np.repeat(np.arange(len(matches)), np.diff(matches.team_start))
    offered = tickets.roles[rows_of(tickets.start[matches.ticket], sizes)]
    for name, needed in policy.roles.items():
        number = matches.role_names.index(name) if name in matches.role_names else len(matches.role_names)
        asked = matches.role == number
        bad[of_team[np.bincount(team[asked], minlength=len(of_team)) < needed]] = True
        bit = tickets.role_names.index(name) if name in tickets.role_names else len(tickets.role_names)
        able = (offered == 0) | (offered >> np.uint64(bit) & np.uint64(1) == 1)
        bad[match[asked & ~able]] = True
    return bad
