"""The rules of the matchmaker in plain Python: what proposals break of them, and whether any match could be made.

Nothing is shared with the package but its records of tickets, policies and proposals, and the policy's odds. Every
question is answered from the tickets alone, by trying everything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from evenmatch.matchmaking import LineUps
from evenmatch.matchmaking.proposal import Proposal, Proposals
from evenmatch.matchmaking.tickets import Member, Met, Ticket
from evenmatch.policy import Policy

SECOND = 1_000_000
Teams = Sequence[Sequence[Ticket]]


def broken(proposals: Proposals, tickets: Sequence[Ticket], now: int, policy: Policy) -> list[str]:
    """Every rule that these proposals break, a sentence each; `tickets` are all that waited."""
    due = sorted(ticket.id for ticket in tickets if is_given_up(ticket, now, policy))
    told = proposals.expired.tolist()
    late = [] if told == due else [f"expired are {told}, and should be {due}"]
    return late + broken_by(proposals, tickets, now, policy)


def broken_by(proposals: Iterable[Proposal], tickets: Sequence[Ticket], now: int, policy: Policy) -> list[str]:
    """The same without a look at who was given up."""
    by_id = {ticket.id: ticket for ticket in tickets}
    found, seen = [], Counter()
    for proposal in proposals:
        seen.update(proposal.tickets)
        unknown = [one for one in proposal.tickets if one not in by_id]
        if unknown:
            found.append(f"{proposal.tickets}: tickets {unknown} do not wait")
            continue
        teams = [[by_id[one] for one in team] for team in proposal.teams]
        faults = [*broken_by_teams(teams, now, policy), *misreported(proposal, teams, now, policy)]
        found += [f"{proposal.tickets}: {fault}" for fault in faults]
    return found + [f"ticket {ticket} is in {times} places" for ticket, times in seen.items() if times > 1]


def broken_by_teams(teams: Teams, now: int, policy: Policy) -> list[str]:
    """What a match of these teams breaks."""
    match = [ticket for team in teams for ticket in team]
    players = [member.player for ticket in match for member in ticket.members]
    found = [f"player {player} is in it {times} times" for player, times in Counter(players).items() if times > 1]
    found += [f"ticket {ticket.id} was given up" for ticket in match if is_given_up(ticket, now, policy)]
    found += _sizes(teams, now, policy)
    for ticket in match:
        found += _outside(ticket, match, now, policy)
        found += _unwelcome(ticket, match)
    if policy.max_rating_spread is not None:
        ratings = [member.rating for ticket in match for member in ticket.members]
        if max(ratings) - min(ratings) > policy.max_rating_spread:
            found.append(f"ratings from {min(ratings)} to {max(ratings)}")
    odds = odds_of(teams, policy)
    if policy.max_odds is not None and max(odds, 1 - odds) > policy.max_odds + 1e-12:
        found.append(f"odds of {odds}")
    if playable(match, policy) == []:
        found.append("there is no region where all can play")
    found += disagreements(match, now, policy)
    found += [f"team {at} does not cover the roles" for at, team in enumerate(teams) if not _covers(team, policy)]
    return found


def misreported(proposal: Proposal, teams: Teams, now: int, policy: Policy) -> list[str]:
    """What a proposal says that is not so."""
    match = [ticket for team in teams for ticket in team]
    members = [member for ticket in match for member in ticket.members]
    people = tuple(tuple(member.player for ticket in team for member in ticket.members) for team in teams)
    at = [member.percentile for member in members]
    waited = max(0.0, *(seconds(ticket, now) for ticket in match))
    found = [] if proposal.players == people else [f"players are told as {proposal.players}, and are {people}"]
    for name, told, right in (
        ("odds", proposal.odds, odds_of(teams, policy)),
        ("spread", proposal.spread, max(at) - min(at)),
        ("waited", proposal.waited, waited),
    ):
        if not math.isclose(told, right, rel_tol=1e-9, abs_tol=1e-9):
            found.append(f"{name} is told as {told}, and is {right}")
    places = playable(match, policy)
    best, ping = (None, 0.0) if places is None else min(places or [(math.inf, None)])[::-1]
    if (proposal.region, proposal.ping) != (best, ping):
        found.append(f"told is {proposal.region} at {proposal.ping} ms, the best is {best} at {ping}")
    shared = {name: common(match, name, own.values) for name, own in policy.attributes.items()}
    right = {name: values[0] for name, values in shared.items() if values}
    if (proposal.attributes, list(proposal.maps)) != (right, common(match, "map", policy.maps)):
        found.append(f"told are {proposal.attributes} on {proposal.maps}, right is {right}")
    waived = sum(policy.attributes[name].worth for name in shared.keys() - right.keys())
    if proposal.costs["attributes"] != waived:
        found.append(f"attributes cost {proposal.costs['attributes']}, right is {waived}")
    return found + _misassigned(proposal, teams, policy)


def accepted(ticket: Ticket, name: str, values: Sequence[str]) -> list[str]:
    """The declared values of an attribute, or maps, that all members of a ticket accept."""
    return [
        value
        for value in values
        if all(value in (member.attributes.get(name) or values) for member in ticket.members)
        and not (name == "map" and any(value in member.vetoes for member in ticket.members))
    ]


def common(match: Sequence[Ticket], name: str, values: Sequence[str]) -> list[str]:
    """The values that all tickets of a match accept."""
    return [value for value in values if all(value in accepted(ticket, name, values) for ticket in match)]


def disagreements(match: Sequence[Ticket], now: int, policy: Policy) -> list[str]:
    """The attributes without a common value on which a ticket still insists, and maps without a common one."""
    found = [] if not policy.maps or common(match, "map", policy.maps) else ["there is no map that all accept"]
    for name, attribute in policy.attributes.items():
        if common(match, name, attribute.values):
            continue
        worth = math.inf if attribute.worth is None else attribute.worth
        insisting = [
            ticket.id
            for ticket in match
            if seconds(ticket, now) < worth and set(accepted(ticket, name, attribute.values)) != set(attribute.values)
        ]
        if insisting:
            found.append(f"there is no common {name}, and {insisting} insist")
    return found


def seconds(ticket: Ticket, now: int) -> float:
    """How long a ticket has waited."""
    return max(now - ticket.queued, 0) / SECOND


def is_given_up(ticket: Ticket, now: int, policy: Policy) -> bool:
    """Whether a ticket has waited as long as the policy lets anybody wait."""
    return policy.max_wait is not None and seconds(ticket, now) >= policy.max_wait


def reached(ticket: Ticket, now: int, policy: Policy) -> float:
    """The step that a ticket has reached; 0 for a strict party."""
    if not all(member.loose for member in ticket.members):
        return 0.0
    width = 0.0
    for after, step in policy.steps:
        if seconds(ticket, now) >= after:
            width = step
    return width


def window(ticket: Ticket, now: int, policy: Policy) -> tuple[float, float]:
    """Where every player of every other ticket must be: a solo's own filter, or a party's hull."""
    step = reached(ticket, now, policy)
    own = [(member.percentile, max(member.within, step)) for member in ticket.members]
    return min(at - width for at, width in own), max(at + width for at, width in own)


def playable(match: Sequence[Ticket], policy: Policy) -> list[tuple[float, str]] | None:
    """Worst ping and name of each region where all can play; None: anywhere."""
    members = [member for ticket in match for member in ticket.members if member.ping]
    if not members:
        return None
    limit = math.inf if policy.max_ping is None else policy.max_ping
    names = {region for member in members for region in member.ping}
    return [
        (max(member.ping[region] for member in members), region)
        for region in sorted(names)
        if all(region in member.ping and member.ping[region] <= min(member.max_ping, limit) for member in members)
    ]


def odds_of(teams: Teams, policy: Policy) -> float:
    """The odds of the first of two teams, or of the strongest against the weakest."""
    means = [math.fsum(ratings) / len(ratings) for ratings in (_ratings(team) for team in teams)]
    first, second = means if len(means) == 2 else (max(means), min(means))
    if policy.odds is None:
        return 1 / (1 + 10 ** ((second - first) / policy.odds_scale))
    players = [[member.player for ticket in team for member in ticket.members] for team in teams]
    return float(policy.odds(LineUps.of(players, [_ratings(team) for team in teams]))[0])


def is_narrow_enough(match: Sequence[Ticket], now: int, policy: Policy, waiting: Sequence[Ticket]) -> bool:
    """Whether the policy prefers such a match to more waiting.

    Between its lowest and its highest player may be even_spread, and as much more as there is between the members of
    one of its tickets; any spread if no other of the waiting tickets that could be in it stands between them.
    """
    everybody = [member.percentile for ticket in match for member in ticket.members]
    apart = [
        max(one.percentile for one in ticket.members) - min(one.percentile for one in ticket.members)
        for ticket in match
    ]
    if max(everybody) - min(everybody) <= policy.even_spread + max(apart):
        return True
    places = sorted(
        waiting,
        key=lambda ticket: (min(member.percentile for member in ticket.members), ticket.queued, ticket.id),
    )
    chosen = [place for place, ticket in enumerate(places) if any(ticket is one for one in match)]
    return chosen[-1] - chosen[0] == len(match) - 1


def lawful(tickets: Sequence[Ticket], now: int, policy: Policy) -> Iterator[list[list[Ticket]]]:
    """Every match that breaks no rule, by trying all; for a dozen tickets at the most."""
    sizes = range(policy.min_team_size or policy.team_size, policy.team_size + 1)
    for count in range(policy.teams, policy.players + 1):
        for match in combinations(tickets, count):
            players = sum(len(ticket.members) for ticket in match)
            if players % policy.teams or players // policy.teams not in sizes:
                continue
            # what does not depend on the teams is looked at once
            if any(_outside(one, match, now, policy) or _unwelcome(one, match) for one in match):
                continue
            for teams in _divisions(match, policy.teams, players // policy.teams):
                if not broken_by_teams(teams, now, policy):
                    yield teams
                    break


def can_match(tickets: Sequence[Ticket], now: int, policy: Policy) -> bool:
    """Whether any match exists that breaks no rule."""
    return next(lawful(tickets, now, policy), None) is not None


def can_match_evenly(tickets: Sequence[Ticket], now: int, policy: Policy) -> bool:
    """Whether one exists that is not wider than the policy prefers either; for single players."""
    for teams in lawful(tickets, now, policy):
        match = [ticket for team in teams for ticket in team]
        smaller = len(match) < policy.players
        waiting = [one for one in tickets if not smaller or seconds(one, now) >= policy.smaller_after]
        if is_narrow_enough(match, now, policy, waiting):
            return True
    return False


def _divisions(match: Sequence[Ticket], teams: int, size: int) -> Iterator[list[list[Ticket]]]:
    """All ways to divide tickets into teams of `size` players, the first ticket in the first team."""
    if teams == 0:
        yield []
        return
    first, rest = match[0], match[1:]
    for count in range(size):
        for others in combinations(rest, count):
            team = [first, *others]
            if sum(len(ticket.members) for ticket in team) == size:
                left = [ticket for ticket in rest if ticket not in others]
                for more in _divisions(left, teams - 1, size) if left or teams == 1 else ():
                    yield [team, *more]


def _sizes(teams: Teams, now: int, policy: Policy) -> list[str]:
    sizes = [sum(len(ticket.members) for ticket in team) for team in teams]
    if len(sizes) != policy.teams or len(set(sizes)) != 1:
        return [f"team sizes are {sizes}"]
    if sizes[0] == policy.team_size:
        return []
    if policy.min_team_size is None or not policy.min_team_size <= sizes[0] < policy.team_size:
        return [f"teams of {sizes[0]}"]
    hasty = [ticket.id for team in teams for ticket in team if seconds(ticket, now) < policy.smaller_after]
    return [f"smaller teams though {hasty} have not waited for that"] if hasty else []


def _outside(ticket: Ticket, match: Sequence[Ticket], now: int, policy: Policy) -> list[str]:
    low, high = window(ticket, now, policy)
    return [
        f"player {member.player} at {member.percentile} is outside {ticket.id}'s [{low}, {high}]"
        for other in match
        if other.id != ticket.id
        for member in other.members
        if not low <= member.percentile <= high
    ]


def _unwelcome(ticket: Ticket, match: Sequence[Ticket]) -> list[str]:
    others = {member.player for other in match if other.id != ticket.id for member in other.members}
    return [
        f"player {member.player} avoids {sorted(others.intersection(member.avoid))}"
        for member in ticket.members
        if others.intersection(member.avoid)
    ]


def _ratings(team: Sequence[Ticket]) -> list[float]:
    return [member.rating for ticket in team for member in ticket.members]


def _plays(member: Member, role: str) -> bool:
    return not member.roles or role in member.roles


def _covers(team: Sequence[Ticket], policy: Policy) -> bool:
    """Whether somebody can be found for each seat that needs a role; seat after seat, with steps back."""
    seats = [role for role, count in policy.roles.items() for _ in range(count)]
    members = [member for ticket in team for member in ticket.members]

    def fill(at: int, taken: frozenset[int]) -> bool:
        return at == len(seats) or any(
            fill(at + 1, taken | {member.player})
            for member in members
            if member.player not in taken and _plays(member, seats[at])
        )

    return fill(0, frozenset())


def _misassigned(proposal: Proposal, teams: Teams, policy: Policy) -> list[str]:
    members = {member.player: member for team in teams for ticket in team for member in ticket.members}
    if not policy.roles:
        return [f"roles {proposal.roles} where there are none"] if proposal.roles else []
    if proposal.roles.keys() != members.keys():
        return ["not everybody is asked for a role, or a free choice"]
    found = [
        f"player {player} is asked for {role}, and offers {members[player].roles}"
        for player, role in proposal.roles.items()
        if role is not None and not _plays(members[player], role)
    ]
    for team in teams:
        asked = Counter(proposal.roles[member.player] for ticket in team for member in ticket.members)
        asked.pop(None, None)
        if asked != Counter(policy.roles):
            found.append(f"a team is asked for {dict(asked)}")
    return found


def with_choices(tickets: Sequence[Ticket], policy: Policy, seed: int) -> list[Ticket]:
    """The tickets with random values of the policy's attributes and vetoes; some values are not declared."""
    rng, chosen = np.random.default_rng(seed), []
    shy = rng.choice([0.1, 0.4, 0.8])  # how many name nothing
    for ticket in tickets:
        members = []
        leading = {name: str(rng.choice([*own.values, "old"])) for name, own in policy.attributes.items()}
        for member in ticket.members:
            wishes = {}
            for name, own in policy.attributes.items():
                others = [value for value in own.values if own.kind == "meet" and rng.random() < 0.3]
                if rng.random() >= shy:
                    wishes[name] = tuple(dict.fromkeys([leading[name], *others]))
            vetoes = tuple(name for name in policy.maps if rng.random() < 0.15 * (1 - shy))
            members.append(replace(member, attributes=wishes, vetoes=vetoes))
        chosen.append(replace(ticket, members=tuple(members)))
    return chosen


REGIONS, ROLES = ("north", "south", "west"), ("guard", "healer", "scout")


def made_up(seed: int, count: int, now: int, largest: int = 4) -> list[Ticket]:
    """Random tickets with everything mixed: parties, filters, equal places and times, regions, roles, avoid lists."""
    rng = np.random.default_rng(seed)
    told = [bool(rng.random() < 0.5) for _ in range(5)]  # what nobody tells: regions, roles, names, bands, newcomers
    centre, spread = rng.uniform(0, 100), rng.choice([1.0, 5.0, 30.0])
    tickets, player = [], 0
    for number in rng.permutation(count * 3)[:count].tolist():
        size = int(rng.choice([1, 1, 1, 2, 3, largest]))
        near = np.clip(rng.normal(centre, spread, size), 0, 100)
        at = np.round(near, int(rng.choice([0, 1, 9])))  # whole numbers meet on edges and in ties
        strangers = sorted({int(one) for one in rng.integers(0, 2 * count, 4)} - set(range(player, player + size)))
        home = {region: float(rng.integers(1, 12) * 10) for region in REGIONS if rng.random() < 0.7}
        loose, plays = bool(rng.random() < 0.6), rng.random(size)
        members = tuple(
            Member(
                player=player + i,
                percentile=float(at[i]),
                rating=float(1500 + 8 * (at[i] - 50) + rng.normal(0, 40)),
                within=float(rng.choice([0, 1, 2, 5, 12, 30])),
                loose=loose or plays[i] < 0.5,
                newcomer=told[4] and bool(rng.random() < 0.1),
                roles=tuple(role for role in (*ROLES, "bard") if rng.random() < 0.6) if told[1] else (),
                ping={region: ping + 5 * min(i, 4) for region, ping in home.items()}
                if told[0] and plays[i] < 0.9
                else {},
                max_ping=float(rng.choice([130, 150, math.inf])),
                avoid=tuple(one for one in strangers[:2] if rng.random() < 0.3) if told[2] else (),
                met=tuple(Met(one, now - 60 * SECOND) for one in strangers[2:] if rng.random() < 0.3),
            )
            for i in range(size)
        )
        queued = now - int(rng.choice([-30, 0, 14, 15, 29, 60, 120, 240, int(rng.integers(0, 700))])) * SECOND
        tickets.append(Ticket(id=number, queued=queued, members=members))
        player += size
    return tickets
