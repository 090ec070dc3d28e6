"""Fill open seats of running matches with waiting tickets, by the same rules as for new matches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenmatch.errors import InputError
from evenmatch.history import Flags
from evenmatch.matchmaking.attributes import Fields, agree, fields_of, mask_of
from evenmatch.matchmaking.conflict import worth
from evenmatch.matchmaking.odds import LineUps, predicted_odds
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.records import QueueView, Records
from evenmatch.matchmaking.roles import add_party
from evenmatch.matchmaking.tickets import ANYWHERE, Ticket, TicketChoice, Tickets, Whole
from evenmatch.matchmaking.view import role_room, rules_of, view_of
from evenmatch.policy import Policy


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A running match with open seats. Raises InputError for invalid values.

    match   its number
    formed  when it was created, microseconds since the epoch; its players' windows are as of that time
    teams   the tickets of its remaining players, by team; a team may be empty
    seats   number of open seats of each team
    region  where it is played; None: anywhere
    attributes  the values it is played with, as in Proposal, and its map as `map`; an attribute that is left out allows
            every value that all players accept
    """

    match: int
    formed: int
    teams: tuple[tuple[Ticket, ...], ...]
    seats: tuple[int, ...]
    region: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.seats) != len(self.teams) or any(seats < 0 for seats in self.seats):
            raise InputError(
                f"match {self.match} has {len(self.teams)} teams and seats {self.seats}; expected a number from 0 "
                "for each team"
            )
        if not any(self.seats):
            raise InputError(f"match {self.match} has no open seat; expected at least one")
        if not any(self.teams):
            raise InputError(f"match {self.match} has no players left; expected at least one")


@dataclass(frozen=True)
class Filling:
    """Tickets that take the open seats of a match, by team.

    odds  chance of the first team once they have joined, as in Proposal
    """

    match: int
    teams: tuple[tuple[int, ...], ...]
    odds: float


def backfill(openings: Sequence[Opening], queue: Queue, now: int, policy: Policy) -> list[Filling]:
    """Choose tickets for the open seats of running matches, the longest-waiting first. Does not change the queue.

    Every player must lie in every other player's window: for current players the window at the creation of the match,
    for new ones the present window. Regions, pings, attributes, maps, avoid lists, roles and caps apply as in
    `propose`. A ticket joins the team that leaves the odds most even; odds beyond the policy's cap are never made
    worse. Openings are served in the order of their match numbers. A match that no ticket fits has no Filling.
    Raises InputError for an opening that does not fit the policy.
    """
    view, _ = view_of(queue, now, policy)
    free = np.ones(len(view.t), np.bool_)
    fillings = []
    for opening in openings:
        _check_seats(opening, policy)
    for opening in sorted(openings, key=lambda opening: opening.match):
        seats = _Seats(opening, queue, now, policy)
        fitting = np.flatnonzero(free & seats.could_take(view))
        for place in fitting[np.lexsort((view.t["id"][fitting], -view.t["waited"][fitting]))].tolist():
            if not any(seats.open):
                break
            if seats.admit(view, place):
                free[place] = False
        if any(seats.taken):
            fillings.append(Filling(opening.match, tuple(map(tuple, seats.taken)), seats.odds()))
    return fillings


class _Seats:
    """A match whose open seats are being filled."""

    def __init__(self, opening: Opening, queue: Queue, now: int, policy: Policy) -> None:
        self.opening, self.queue = opening, queue
        self.policy = policy = replace(policy, max_wait=None)  # current players no longer wait
        self.rules = rules_of(policy, now, policy.team_size)
        self.room = role_room(policy, policy.team_size)
        self.now = now
        self.open = list(opening.seats)
        self.taken: list[list[int]] = [[] for _ in opening.teams]
        inside = Queue()
        inside.join_all(_numbered(Tickets.of([ticket for team in opening.teams for ticket in team]), 0))
        self.inside = inside
        v, _ = view_of(inside, opening.formed, policy)
        self.able = ANYWHERE  # regions where all players can play, for a match without a region
        for ticket in (ticket for team in opening.teams for ticket in team):
            self.able &= self._bits_of(ticket)
        self.fields = fields_of(policy)
        self.accepts = np.bitwise_and.reduce(v.accepts) & _played(opening, self.fields)
        self.low, self.high = float(v.t["low"].min()), float(v.t["high"].max())
        self.lo, self.hi = float(v.t["lo"].max()), float(v.t["hi"].min())
        self.rating_low, self.rating_high = float(v.t["rating_low"].min()), float(v.t["rating_high"].max())
        self.teams = [[member.player for ticket in team for member in ticket.members] for team in opening.teams]
        self.ratings = [[member.rating for ticket in team for member in ticket.members] for team in opening.teams]
        self.players = {member.player for team in opening.teams for ticket in team for member in ticket.members}
        self.held = [self._roles_of(view_of(_queue_of(team), now, policy)[0]) for team in opening.teams]

    def odds(self) -> float:
        """The odds as in Filling; 0.5 if a team is empty."""
        if not all(self.ratings):
            return 0.5
        return float(predicted_odds(self.policy, LineUps.of(self.teams, self.ratings))[0])

    def could_take(self, view: QueueView) -> Flags:
        """Mask of the tickets that fit the seats, windows, region, attributes and rating cap."""
        t = view.t
        fits: Flags = (t["size"] <= max(self.open)) & self._reaches(t)
        fits &= (t["low"] >= self.lo) & (t["high"] <= self.hi) & (t["lo"] <= self.low) & (t["hi"] >= self.high)
        rating_spread = np.maximum(self.rating_high, t["rating_high"]) - np.minimum(self.rating_low, t["rating_low"])
        fits &= rating_spread <= self.rules.rating_cap
        return fits & agree(view.accepts & self.accepts, self.fields)

    def admit(self, view: QueueView, place: int) -> bool:
        """Seat a ticket in the best team and return True, or return False if it fits no team."""
        t = view.t[place]
        if not self.could_take(_only(view, place))[0] or self._conflicts(view, place):
            return False
        team = self._best_team(view, place)
        if team is None:
            return False
        columns = self.queue.tickets_of((int(t["id"]),))
        add_party(self.held[team], self.room, 1, view, place)
        self.able &= int(t["able"])
        self.accepts &= view.accepts[place]
        self.open[team] -= int(t["size"])
        self.taken[team].append(int(t["id"]))
        self.teams[team] += columns.player.tolist()
        self.ratings[team] += columns.rating.tolist()
        self.players |= set(columns.player.tolist())
        self.inside.join_all(_numbered(columns, len(self.inside)))
        self.low, self.high = min(self.low, float(t["low"])), max(self.high, float(t["high"]))
        self.lo, self.hi = max(self.lo, float(t["lo"])), min(self.hi, float(t["hi"]))
        self.rating_low = min(self.rating_low, float(t["rating_low"]))
        self.rating_high = max(self.rating_high, float(t["rating_high"]))
        return True

    def _best_team(self, view: QueueView, place: int) -> int | None:
        """The team that leaves the odds most even; None if no team has room within the odds cap."""
        t, before = view.t[place], self._unevenness()
        limit = 0.5 if self.policy.max_odds is None else self.policy.max_odds - 0.5
        members = view.members[int(t["first"]) : int(t["first"] + t["size"])]
        players, ratings = members["player"].tolist(), members["rating"].tolist()
        best, least = None, float("inf")
        for team, seats in enumerate(self.open):
            if seats < t["size"] or not add_party(self.held[team].copy(), self.room, 1, view, place):
                continue
            self.teams[team] += players
            self.ratings[team] += ratings
            off = self._unevenness()
            del self.teams[team][-len(players) :]
            del self.ratings[team][-len(ratings) :]
            if off < least and off <= max(limit, before):
                best, least = team, off
        return best

    def _unevenness(self) -> float:
        """The distance of the odds from 0.5; 0 if they cannot be predicted."""
        odds = self.odds()
        return 0.0 if math.isnan(odds) else abs(odds - 0.5)

    def _bits_of(self, ticket: Ticket) -> int:
        """The queue's region bits of the regions where a ticket of the match can play."""
        if ticket.regions is None:
            return ANYWHERE
        names = self.queue.region_names
        return sum(1 << names.index(region) for region in ticket.regions if region in names)

    def _reaches(self, t: Records) -> Flags:
        """Mask of the tickets that can play in the region of the match."""
        region, names = self.opening.region, self.queue.region_names
        if region is None:
            reaches: Flags = (t["able"] & np.uint64(self.able)) > 0
        elif region in names:
            reaches = t["able"] >> np.uint64(names.index(region)) & np.uint64(1) == 1
        else:
            reaches = t["able"] == ANYWHERE
        return reaches

    def _conflicts(self, view: QueueView, place: int) -> bool:
        """Whether a player of the ticket is already in the match, or must not meet one of its players yet."""
        own = self.queue.tickets_of((int(view.t["id"][place]),))
        if self.players & set(own.player.tolist()):
            return True
        if not self._may_conflict(view.t[place]):
            return False
        both = Queue()
        both.join_all(self.inside.tickets_of(self.inside.ids))
        number = len(self.inside)
        both.join_all(_numbered(own, number))
        v, _ = view_of(both, self.now, self.policy)
        own_place = int(np.flatnonzero(v.t["id"] == number)[0])
        waited = float(v.t["waited"][own_place])
        return any(worth(v, self.rules, own_place, other) > waited for other in range(len(v.t)) if other != own_place)

    def _may_conflict(self, t: np.void) -> bool:
        """A fast test with the player bits. False means that neither names a player of the other."""
        inside = self.inside.tickets[self.inside.order()]
        players, names = (np.bitwise_or.reduce(inside[name]) for name in ("players", "names"))
        return bool((t["names"] & players) | (t["players"] & names))

    def _roles_of(self, v: QueueView) -> Whole:
        held = np.zeros(len(self.room), np.int64)
        for place in range(len(v.t)):
            add_party(held, self.room, 1, v, place)
        return held


def _check_seats(opening: Opening, policy: Policy) -> None:
    """Raise InputError if the opening does not match the policy."""
    if len(opening.teams) != policy.teams:
        raise InputError(f"match {opening.match} has {len(opening.teams)} teams; expected {policy.teams}")
    for team, seats in zip(opening.teams, opening.seats, strict=True):
        players = sum(len(ticket.members) for ticket in team)
        if players + seats > policy.team_size:
            raise InputError(
                f"match {opening.match} has a team of {players} with {seats} open seats; expected teams of at most "
                f"{policy.team_size}"
            )


def _only(view: QueueView, place: int) -> QueueView:
    """The view of one ticket."""
    return view._replace(t=view.t[place : place + 1], accepts=view.accepts[place : place + 1])


def _played(opening: Opening, fields: Fields) -> np.uint64:
    """The mask of the values that a running match is played with. Attributes with a worth are waived."""
    played = TicketChoice(tuple((name, (value,)) for name, value in sorted(opening.attributes.items())))
    return np.uint64(mask_of(played, fields) | sum(field.waived for field in fields))


def _queue_of(tickets: Sequence[Ticket]) -> Queue:
    queue = Queue()
    queue.join_all(Tickets.of(tickets))
    return queue


def _numbered(tickets: Tickets, first: int) -> Tickets:
    """Renumber tickets from `first`, because waiting tickets may use the same ids."""
    return replace(tickets, id=np.arange(first, first + len(tickets)))
