"""The matchmaker's compiled kernels: the parts in which they are compiled, and what loads all of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenmatch.durations import SECOND
from evenmatch.matchmaking import Member, Met, Opening, Policy, Queue, Ticket, backfill, propose, why
from evenmatch.matchmaking.balance import divide
from evenmatch.matchmaking.conflict import keep_apart, worth
from evenmatch.matchmaking.match_details import asked_to_play, by_team, line_ups, measure, rematch_costs
from evenmatch.matchmaking.overdue_tickets import oldest_with
from evenmatch.matchmaking.passes import MatchRegions, TicketWindows, make_matches
from evenmatch.matchmaking.proposal_details import tell
from evenmatch.matchmaking.queue_columns import count_arrivals, fill_waiting, join, merge
from evenmatch.matchmaking.records import MEMBER, NAMED, WAITING, QueueView
from evenmatch.matchmaking.roles import add_party
from evenmatch.matchmaking.tick import TickState
from evenmatch.matchmaking.view import role_room, rules_of, view_of

# The first two take about as long to compile; the small last one is for the process that ends its own first.
SEARCH, TEAMS, LATER = "matchmaker: search", "matchmaker: teams", "matchmaker: overdue tickets"
MATCHMAKER: Mapping[str, tuple[object, ...]] = {  # by part: the kernels that are called from Python
    SEARCH: (make_matches,),
    TEAMS: (
        *(join, count_arrivals, merge, fill_waiting, keep_apart, divide, line_ups, by_team, measure),
        *(asked_to_play, rematch_costs),
    ),
    LATER: (oldest_with, worth, add_party),
}
NOW = 1000 * SECOND


def compile_matchmaker(part: str) -> None:
    """Compile a part of MATCHMAKER, or load it from the cache."""
    if part == SEARCH:
        _compile_search()
    elif part == TEAMS:
        _compile_teams()
    else:
        _compile_later()


def load_matchmaker() -> None:
    """Load all kernels of the matchmaker: match invented parties that use every option, and fill an open slot."""
    policy = Policy(team_size=3, min_team_size=2, smaller_after=0.0, roles={"guard": 1}, max_odds=None, uncertainty=1.0)
    queue = Queue()
    for ticket in _parties():
        queue.join(ticket)
    propose(queue, NOW, policy)
    why(0, queue, NOW, policy)
    inside = Ticket(id=100, queued=0, members=(_member(200),))
    backfill([Opening(match=0, formed=NOW, teams=((inside,), ()), seats=(2, 3))], queue, NOW, policy)
    for plain in (Policy(team_size=1), Policy(team_size=5), Policy(team_size=1, teams=4)):
        solos = Queue()
        for ticket in _parties():
            if len(ticket.members) <= plain.team_size:
                solos.join(ticket)
        propose(solos, NOW, plain)


def _parties() -> list[Ticket]:
    """Parties of one and two players; some have waited for long."""
    parties = []
    for number in range(24):
        members = tuple(_member(2 * number + place) for place in range(1 + number % 2))
        parties.append(Ticket(id=number, queued=0 if number % 3 else NOW - SECOND, members=members))
    return parties


def _member(player: int) -> Member:
    return Member(
        player=player,
        percentile=50.0 + player % 5,
        rating=1500.0 + player,
        within=20.0,
        deviation=1.0,
        newcomer=player % 2 == 0,
        roles=("guard",) if player % 3 == 0 else (),
        ping={"here": 20.0},
        avoid=(player + 10,),
        met=(Met(player + 3, NOW - SECOND),),
    )


def _compile_search() -> None:
    """Compile the search for matches. Its queue is empty and made by hand: other kernels are of the other parts."""
    policy, none, floats = Policy(team_size=1), np.empty(0, np.int64), np.empty(0)
    windows, taken = TicketWindows(floats, floats, floats, floats), np.empty(0, np.bool_)
    rules, room = rules_of(policy, SECOND, policy.team_size), role_room(policy, policy.team_size)
    view = _blank_view(0)
    make_matches(view, windows, MatchRegions(none, none), view.accepts, taken, rules, room)


def _compile_teams() -> None:
    """Compile joining, the division into teams, and what is said of a match."""
    policy, queue = Policy(team_size=1), Queue()
    for number in range(2):
        member = Member(player=number, percentile=50.0, rating=1500.0, within=20.0, ping={"here": 20.0})
        queue.join(Ticket(id=number, queued=0, members=(member,)))
    view, expired = view_of(queue, SECOND, policy)
    tick = TickState(queue, view, SECOND, policy)
    tick.make(np.array([0, 2]), np.array([0, 1]), rules_of(policy, SECOND, policy.team_size))
    tell(queue, tick.view, policy, SECOND, tick.matches(), expired)


def _compile_later() -> None:
    """Compile what serves overdue tickets, open seats and explanations, with a blank ticket made by hand."""
    policy, view, windows = Policy(team_size=1), _blank_view(1), np.zeros(1)
    rules, room = rules_of(policy, SECOND, policy.team_size), role_room(policy, policy.team_size)
    order, free = np.zeros(1, np.int64), np.ones(1, np.bool_)
    oldest_with(view, windows, windows, order, 0, 0, np.uint64(0), free, rules, room, np.zeros(1, np.int64), 1)
    worth(view, rules, 0, 0)
    add_party(np.zeros(len(room), np.int64), room, 1, view, 0)


def _blank_view(count: int) -> QueueView:
    """A view of as many tickets without members."""
    records = (np.zeros(count, WAITING), np.zeros(0, MEMBER), np.zeros(0, NAMED))
    start, none = np.zeros(count + 1, np.int64), np.empty(0, np.int64)
    return QueueView(*records, none, start, none, np.zeros(count, np.uint64))
