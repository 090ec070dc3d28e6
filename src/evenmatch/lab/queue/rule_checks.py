"""Check which rules the matches of a run break; independent of the code of any matchmaker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenmatch.attributes import MAP
from evenmatch.durations import SECOND
from evenmatch.history import Flags, Floats
from evenmatch.lab.queue.matches import RunMatches
from evenmatch.matchmaking.ticket_choice import TicketChoice
from evenmatch.matchmaking.tickets import FOREVER, Tickets, Whole, rows_of, starts
from evenmatch.policy import Policy

HAIR = 1e-9  # percentiles: tolerance for rounding in the bands of uncertainty


@dataclass(frozen=True, eq=False)
class BrokenRules:
    """For each of the K tickets in a match, whether a rule was broken for it; bool (K,) unless noted.

    window  a player of another ticket is outside its filter
    region  the region is not accepted by the ticket or exceeds the policy's ping
    avoid   a player whom it avoids is in the match
    attributes  its match has no value in common of an attribute on which it insists, or no map
    size    the teams of the match do not have the size or number that the policy requires
    roles   a team lacks a role that the policy requires, or a player has a role they do not offer
    sizes   int64 (K,)  number of players
    """

    window: Flags
    region: Flags
    avoid: Flags
    attributes: Flags
    size: Flags
    roles: Flags
    sizes: Whole

    @property
    def players(self) -> int:
        """Players for whom at least one rule was broken."""
        return self.count(self.window | self.region | self.avoid | self.attributes | self.size | self.roles)

    def count(self, tickets: Flags) -> int:
        """Number of players in these tickets."""
        return int(self.sizes[tickets].sum())


def broken(matches: RunMatches, tickets: Tickets, policy: Policy) -> BrokenRules:
    """Check all rules for each ticket of a run's matches."""
    sizes = np.diff(tickets.start)[matches.ticket]
    if not len(matches):
        never = np.zeros(0, np.bool_)
        return BrokenRules(never, never, never, never, never, never, sizes)
    return BrokenRules(
        window=_windows(matches, tickets, policy),
        region=_regions(matches, tickets, policy),
        avoid=_avoided(matches, tickets),
        attributes=_attributes(matches, tickets, policy),
        size=_sizes(matches, tickets, policy)[matches.match],
        roles=_roles(matches, tickets, policy)[matches.match],
        sizes=sizes,
    )


def widths(policy: Policy, waited: Floats) -> Floats:
    """Widening of loose filters, in percentiles, after these waits in seconds."""
    after, width = np.array(policy.steps).T
    reached: Floats = width[np.searchsorted(after, np.maximum(waited, 0.0), side="right") - 1]
    return reached


def _windows(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    sizes = np.diff(tickets.start)
    loose = np.logical_and.reduceat(tickets.loose, tickets.start[:-1])[matches.ticket]
    waited = (matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND
    widened = np.where(loose, widths(policy, waited), 0.0)
    member = rows_of(tickets.start[matches.ticket], sizes[matches.ticket])
    first = starts(sizes[matches.ticket])[:-1]
    within = np.maximum(tickets.within[member], np.repeat(widened, sizes[matches.ticket]))
    percentile = tickets.percentile[member]
    band = np.minimum(policy.uncertainty * tickets.deviation[member], within)  # no wider than the own filter
    bottom, top = np.minimum.reduceat(percentile - within, first), np.maximum.reduceat(percentile + within, first)
    low, high = np.minimum.reduceat(percentile - band, first), np.maximum.reduceat(percentile + band, first)
    # A ticket always satisfies its own filter, so it need not be excluded from the check.
    starting, hair = matches.start[:-1], HAIR if policy.uncertainty else 0.0
    lowest = np.minimum.reduceat(low, starting)[matches.match]
    highest = np.maximum.reduceat(high, starting)[matches.match]
    return np.asarray((lowest < bottom - hair) | (highest > top + hair))


def _regions(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    ping = tickets.ping[matches.ticket]
    anywhere = np.isnan(ping).all(axis=1)
    column = {name: index for index, name in enumerate(tickets.region_names)}
    known = [column.get(name, -1) for name in matches.region_names]
    chosen = np.array([*known, -1], np.int64)[matches.region][matches.match]
    most = np.inf if policy.max_ping is None else policy.max_ping
    padded = np.column_stack((ping, np.full(len(ping), np.inf)))  # column of region -1: unknown or no region
    there = padded[np.arange(len(ping)), chosen]
    return np.asarray(~anywhere & ~((there <= most) & (there < np.inf)))


def _avoided(matches: RunMatches, tickets: Tickets) -> Flags:
    hit = np.zeros(len(matches.ticket), np.bool_)
    if not (tickets.met == FOREVER).any():
        return hit
    sizes, names = np.diff(tickets.start)[matches.ticket], np.diff(tickets.named_start)[matches.ticket]
    name = rows_of(tickets.named_start[matches.ticket], names)
    asking = np.repeat(np.arange(len(matches.ticket)), names)[tickets.met[name] == FOREVER]
    avoided = tickets.named[name][tickets.met[name] == FOREVER]
    players_here = tickets.player[rows_of(tickets.start[matches.ticket], sizes)]
    players, number = np.unique(np.concatenate((avoided, players_here)), return_inverse=True)
    key = np.concatenate((matches.match[asking], np.repeat(matches.match, sizes))) * len(players) + number
    hit[asking[np.isin(key[: len(asking)], key[len(asking) :])]] = True
    return hit


def _attributes(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
    wronged = np.zeros(len(matches.ticket), np.bool_)
    if not len(tickets.choice):
        return wronged
    declared = {name: (attribute.values, attribute.worth) for name, attribute in policy.attributes.items()}
    declared |= {MAP: (policy.maps, None)} if policy.maps else {}
    waited = (matches.time[matches.match] - tickets.queued[matches.ticket]) / SECOND
    for name, (values, worth) in declared.items():
        accepted = [_accepted(choice, name, values) for choice in tickets.choices]
        own = [accepted[row] for row in tickets.choice[matches.ticket].tolist()]
        for first, stop in pairwise(matches.start.tolist()):
            if not set(values).intersection(*own[first:stop]):
                for place in range(first, stop):
                    insists = len(own[place]) < len(values) and (worth is None or waited[place] < worth)
                    wronged[place] |= insists
    return wronged


def _accepted(choice: TicketChoice, name: str, values: Sequence[str]) -> set[str]:
    """The declared values that a ticket accepts."""
    accepted = set(values).intersection(dict(choice.accepted).get(name, values))
    return accepted - set(choice.vetoes) if name == MAP else accepted


def _sizes(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
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
    good &= ~np.logical_or.reduceat(times[number] > 1, matches.start[:-1])  # a ticket occurs twice
    return np.asarray(~good)


def _roles(matches: RunMatches, tickets: Tickets, policy: Policy) -> Flags:
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
        assigned = matches.role == number
        bad[of_team[np.bincount(team[assigned], minlength=len(of_team)) < needed]] = True
        bit = tickets.role_names.index(name) if name in tickets.role_names else len(tickets.role_names)
        able = (offered == 0) | (offered >> np.uint64(bit) & np.uint64(1) == 1)
        bad[match[assigned & ~able]] = True
    return bad
