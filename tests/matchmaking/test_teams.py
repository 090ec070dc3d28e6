"""Teams: which parties fill them, who goes into which, who plays what; against trying everything."""

from functools import cache
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch.matchmaking import Member, Ticket
from evenmatch.matchmaking.balance import EXACT, companions, divide
from evenmatch.matchmaking.exact_teams import choose, fills, has_room
from evenmatch.matchmaking.passes import pick
from evenmatch.matchmaking.roles import add, assign
from evenmatch.matchmaking.view import role_room, rules_of, view_of
from matchmaking.sample_tickets import NOW, party, plain_policy, queue_of, solo


@cache
def ways_of_one_team(size):
    """All ways to make a team of parties: how many of each size, from 1 on."""
    return [
        way
        for way in product(*(range(size // one + 1) for one in range(1, size + 1)))
        if sum(one * count for one, count in enumerate(way, 1)) == size
    ]


@cache
def can_fill(counts, teams, size):
    """Whether so many teams can be filled exactly from these parties, each team in any way."""
    if teams == 0:
        return True
    return any(
        can_fill(tuple(have - need for have, need in zip(counts, way, strict=True)), teams - 1, size)
        for way in ways_of_one_team(size)
        if all(have >= need for have, need in zip(counts, way, strict=True))
    )


@cache
def can_fill_with(counts, teams, size, party, mixed):
    """The same where a party of this size must be in it, and one of the largest there are.

    not mixed: all teams in the same way.
    """
    must = {party, max(at for at, count in enumerate(counts, 1) if count)}
    if not mixed:
        return any(
            all(way[one - 1] for one in must)
            and all(have >= teams * need for have, need in zip(counts, way, strict=True))
            for way in ways_of_one_team(size)
        )
    return can_fill_exactly(counts, teams, size, tuple(must))


@cache
def can_fill_exactly(counts, teams, size, must):
    """Whether so many teams can be filled with a party of each of the sizes in `must` among them."""
    if teams == 0:
        return not must
    return any(
        can_fill_exactly(
            tuple(have - need for have, need in zip(counts, way, strict=True)),
            teams - 1,
            size,
            tuple(one for one in must if not way[one - 1]),
        )
        for way in ways_of_one_team(size)
        if all(have >= need for have, need in zip(counts, way, strict=True))
    )


def said_to_fill(counts, teams, size, party, mixed):
    largest = max(at for at, count in enumerate(counts, 1) if count)
    scratch = np.zeros(max(teams, size + 1), np.int64)
    return bool(fills(start_column(counts), teams, size, party, largest, mixed, scratch))


def chosen(counts, teams, size, party, mixed):
    """How many parties of each size are taken, from 1 on."""
    largest = max(at for at, count in enumerate(counts, 1) if count)
    wanted = np.full(size + 1, 99, np.int64)
    choose(start_column(counts), teams, size, party, largest, mixed, wanted)
    return tuple(wanted[1:].tolist())


def start_column(counts):
    return np.array([0, *counts], np.int64)


def drawn_counts(draw, teams, size):
    """How many parties of each size, of which one at the least has a size: about as many players as a match needs."""
    counts = [0] * size
    for one in draw.choice(size, p=draw.dirichlet(np.ones(size)), size=int(draw.integers(1, teams * size + 3))):
        counts[one] += 1
    return tuple(counts)


SHAPES = [(teams, size) for teams in (2, 3) for size in (2, 3, 4, 5, 6)]


@pytest.mark.parametrize(("teams", "size"), SHAPES)
@pytest.mark.parametrize("mixed", [False, True])
def test_teams_are_filled_exactly_where_brute_force_can_fill_them(teams, size, mixed):
    draw = np.random.default_rng(100 * teams + 10 * size + mixed)
    seen = {True: 0, False: 0}
    for _ in range(700):
        counts = drawn_counts(draw, teams, size)
        for one in range(1, size + 1):
            if not counts[one - 1]:
                continue
            possible = can_fill_with(counts, teams, size, one, mixed)
            said = said_to_fill(counts, teams, size, one, mixed)
            if teams == 2 or not mixed:
                assert said == possible, (counts, one)
            else:
                assert possible or not said, (counts, one)  # of three teams each is filled with what fits first
            seen[said] += 1
            if said:
                taken = chosen(counts, teams, size, one, mixed)
                assert all(0 <= need <= have for need, have in zip(taken, counts, strict=True))
                assert sum(need * at for at, need in enumerate(taken, 1)) == teams * size
                assert can_fill_with(taken, teams, size, one, mixed), (counts, one, taken)
                assert taken[max(at for at in range(size) if counts[at])]  # one of the largest
    assert min(seen.values()) > 50


def test_three_teams_of_any_parties_are_seldom_missed():
    """Filling with what fits first misses some of the fills that exist: one in seventeen of these."""
    draw, missed, possible = np.random.default_rng(7), 0, 0
    for _ in range(4000):
        size = int(draw.integers(2, 7))
        counts = drawn_counts(draw, 3, size)
        for one in range(1, size + 1):
            if counts[one - 1] and can_fill_with(counts, 3, size, one, True):
                possible += 1
                missed += not said_to_fill(counts, 3, size, one, True)
    assert possible > 1000
    assert missed < 0.08 * possible


# Teams, size, parties by size from 1, the party that must be in, mixed; whether that goes
FILLS = [
    (2, 2, (4, 0), 1, True, True),
    (2, 2, (3, 0), 1, True, False),
    (2, 2, (2, 1), 2, False, False),  # a party of two against two single players
    (2, 2, (4, 1), 1, False, False),  # the party must be in it
    (2, 3, (3, 0, 1), 1, True, True),
    (2, 2, (0, 2), 2, False, True),
    (2, 6, (0, 3, 2, 0, 0, 0), 2, True, True),  # 2 2 2 against 3 3
    (2, 6, (0, 3, 2, 0, 0, 0), 2, False, False),
    (2, 6, (0, 0, 0, 3, 0, 0), 4, True, False),  # 12 players, but no team has 6
    (3, 6, (0, 9, 0, 0, 0, 0), 2, False, True),
    (3, 6, (0, 3, 2, 1, 0, 0), 3, True, False),  # 16 players
    (3, 2, (2, 2), 1, True, True),
]


@pytest.mark.parametrize(("teams", "size", "counts", "one", "mixed", "expected"), FILLS)
def test_fills_worked_by_hand(teams, size, counts, one, mixed, expected):
    assert said_to_fill(counts, teams, size, one, mixed) == expected
    assert can_fill_with(counts, teams, size, one, mixed) == expected


@pytest.mark.parametrize(("teams", "size"), [(2, 3), (2, 6), (3, 4)])
def test_there_is_room_only_where_all_go_in(teams, size):
    draw, scratch = np.random.default_rng(size), np.zeros(max(teams, size + 1), np.int64)
    seen = {True: 0, False: 0}
    for _ in range(500):
        counts = drawn_counts(draw, teams, size)
        players = sum(count * at for at, count in enumerate(counts, 1))
        padded = (counts[0] + teams * size - players, *counts[1:])  # the free seats as single players
        possible = players <= teams * size and can_fill(padded, teams, size)
        said = bool(has_room(start_column(counts), teams, size, scratch))
        assert possible or not said
        assert said or not possible or size > 4  # from 5 on first fit may miss one
        seen[said] += 1
    assert min(seen.values()) > 30


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 1.0, 5.0, 5.5, 8.25])), max_size=14))
@settings(max_examples=300)
def test_the_matches_picked_are_disjoint_and_worth_the_most(spans):
    """Value 0 stands for no match that begins there."""
    count = len(spans)
    last = np.array([at + length if worth and at + length < count else -1 for at, (length, worth) in enumerate(spans)])
    value = np.array([worth for _, worth in spans])
    picked = pick(last.astype(np.int64).reshape(-1), value.astype(np.float64).reshape(-1)).tolist()
    assert all(last[one] >= 0 for one in picked)
    assert all(last[one] < other for one, other in pairwise(picked))

    def most(at):
        if at >= count:
            return 0.0
        return max(most(at + 1), value[at] + most(int(last[at]) + 1) if last[at] >= 0 else 0.0)

    starts = [at for at in range(count) if last[at] >= 0]
    everything = max(
        (
            float(value[list(some)].sum())
            for number in range(len(starts) + 1 if len(starts) <= 9 else 1)
            for some in combinations(starts, number)
            if all(last[one] < other for one, other in pairwise(some))
        ),
        default=0.0,
    )
    assert sum(value[one] for one in picked) == pytest.approx(most(0))
    if len(starts) <= 9:
        assert most(0) == pytest.approx(everything)


ROLES = ("damage", "healer", "tank")


def covers_by_trying(offers, need):
    """Whether players (sets of role numbers) can take the seats, each player one at the most; by trying everything."""
    seats = [role for role, count in enumerate(need) for _ in range(count)]
    return any(
        all(role in offers[player] for role, player in zip(seats, way, strict=True))
        for way in permutations(range(len(offers)), len(seats))
    )


OFFERS = st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=6)
NEED = st.lists(st.integers(0, 2), min_size=3, max_size=3)


def mask(offer):
    return sum(1 << role for role in offer)


@given(OFFERS, NEED)
@settings(max_examples=300)
def test_roles_are_given_wherever_that_is_possible(offers, need):
    if sum(need) > len(offers):
        return
    out = np.full(len(offers), 99, np.int64)
    masks = np.array([mask(offer) for offer in offers], np.int64)
    good = bool(assign(masks, np.array(need, np.int64), out))
    assert good == covers_by_trying(offers, need)
    if good:
        given_roles = out.tolist()
        assert all(role == -1 or role in offer for role, offer in zip(given_roles, offers, strict=True))
        assert [given_roles.count(role) for role in range(3)] == need
        assert given_roles.count(-1) == len(offers) - sum(need)


@given(OFFERS, NEED, st.integers(0, 2), st.sampled_from([1, 2]))
@settings(max_examples=300)
def test_a_player_is_added_only_while_the_teams_can_still_be_completed(offers, need, free, times):
    """Whoever fills the rest plays anything: what is counted can be completed, and what is refused cannot."""
    counts = {name: count for name, count in zip(ROLES, need, strict=True) if count}
    size = sum(need) + free
    if not size or not counts:
        return
    kept_roles = [at for at, count in enumerate(need) if count]
    policy = plain_policy(team_size=size, roles=counts)
    room = role_room(policy, size)
    held, inside = np.zeros(len(room), np.int64), []
    for offer in offers:
        own = {kept_roles.index(role) for role in offer if role in kept_roles}  # as the policy numbers them
        with_them = [*inside, own]
        seats = times * size
        fits = (
            len(with_them) <= seats
            and covers_by_trying(
                [*with_them, *[set(range(len(counts)))] * (seats - len(with_them))],
                [times * count for count in counts.values()],
            )
            if seats <= 7
            else None
        )
        before = held.copy()
        said = bool(add(held, room, times, mask(own)))
        assert fits is None or said == fits
        if said:
            inside.append(own)
        else:
            assert held.tolist() == before.tolist()


def divided(tickets, policy, gap_cost=1.0):
    """The team of each ticket by number, or None; and the tickets in the order of the view."""
    view, _ = view_of(queue_of(*tickets), NOW, policy)
    rules = rules_of(policy, NOW, policy.team_size)
    table = companions(rules.size) if rules.teams == 2 else companions(1)
    team = np.full(len(tickets), -1, np.int64)
    good = divide(
        *(view, rules, role_room(policy, rules.size), np.array([0, len(tickets)]), np.arange(len(tickets))),
        *(table, gap_cost, team),
    )
    return dict(zip(view.t["id"].tolist(), team.tolist(), strict=True)) if good[0] else None


def offers_of(tickets, policy):
    names = list(policy.roles)
    return [
        {names.index(role) for role in one.roles if role in names} if one.roles else set(range(len(names)))
        for ticket in tickets
        for one in ticket.members
    ]


def is_team(tickets, policy):
    """Whether these fill one team."""
    if sum(len(ticket.members) for ticket in tickets) != policy.team_size:
        return False
    return not policy.roles or covers_by_trying(offers_of(tickets, policy), list(policy.roles.values()))


def strength(tickets):
    return sum(one.rating for ticket in tickets for one in ticket.members)


def price(first, other, policy, gap_cost):
    """What a division into two teams costs, in words of the policy: uneven means, and unlike largest parties."""
    gap = abs(strength(first) - strength(other)) / policy.team_size
    largest = [max(len(ticket.members) for ticket in team) for team in (first, other)]
    return gap * gap_cost + policy.party_wait * abs(largest[0] - largest[1])


def least_price(tickets, policy, gap_cost):
    """Of all divisions; None where there is none."""
    prices = []
    for ways in product((0, 1), repeat=len(tickets)):
        teams = [[one for one, side in zip(tickets, ways, strict=True) if side == number] for number in (0, 1)]
        if all(is_team(team, policy) for team in teams):
            prices.append(price(*teams, policy, gap_cost))
    return min(prices, default=None)


def drawn_match(draw, size, teams, *, solos, roles, level):
    """Tickets with as many players as a match has; `level`: ratings are often equal."""
    tickets, left = [], size * teams
    while left:
        count = 1 if solos else min(int(draw.choice([1, 1, 2, 2, 3, 4])), size, left)
        number = len(tickets) + 1
        tickets.append(
            Ticket(
                id=number,
                queued=NOW,
                members=tuple(
                    Member(
                        player=100 * number + at,
                        percentile=50.0,
                        rating=float(draw.integers(0, 4)) * 100 if level else float(draw.normal(1500, 300)),
                        roles=tuple(name for name in ROLES if roles and draw.random() < 0.5),
                    )
                    for at in range(count)
                ),
            )
        )
        left -= count
    return tickets


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("need", [{}, {"tank": 1, "healer": 1}])
@pytest.mark.parametrize("solos", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_two_teams_are_the_best_of_all_divisions(size, solos, need, level):
    need = need if size > 1 else ({"tank": 1} if need else {})
    draw = np.random.default_rng(1000 * size + 100 * solos + 10 * len(need) + level)
    policy = plain_policy(team_size=size, roles=need, party_wait=7.0)
    seen = {True: 0, False: 0}
    for turn in range(40):
        gap_cost = [0.0, 0.02, 1.0][turn % 3]
        tickets = drawn_match(draw, size, 2, solos=solos, roles=bool(need), level=level)
        least, teams = least_price(tickets, policy, gap_cost), divided(tickets, policy, gap_cost)
        seen[teams is not None] += 1
        assert (teams is None) == (least is None)
        if teams is not None:
            sides = [[one for one in tickets if teams[one.id] == number] for number in (0, 1)]
            assert all(is_team(side, policy) for side in sides)
            assert price(*sides, policy, gap_cost) == pytest.approx(least)
    assert seen[True] > 5


def test_six_against_six_single_players_are_the_best_of_all_462():
    draw = np.random.default_rng(6)
    policy = plain_policy(team_size=6)
    for _ in range(20):
        tickets = drawn_match(draw, 6, 2, solos=True, roles=False, level=False)
        ratings = [ticket.members[0].rating for ticket in tickets]
        least = min(abs(sum(ratings) - 2 * (ratings[0] + sum(some))) / 6 for some in combinations(ratings[1:], 5))
        teams = divided(tickets, policy)
        sides = [[one for one in tickets if teams[one.id] == number] for number in (0, 1)]
        assert [len(side) for side in sides] == [6, 6]
        assert price(*sides, policy, 1.0) == pytest.approx(least, abs=1e-9)


def test_of_equal_divisions_the_same_is_taken_whoever_joined_first():
    tickets = [solo(at, 50, rating=1500.0 + 100 * (at % 2)) for at in range(6)]
    policy = plain_policy(team_size=3)
    taken = [divided([tickets[at] for at in order], policy) for order in permutations(range(6), 6)][::37]
    assert all(one == taken[0] for one in taken)


# What a point between the means costs, and whether two pairs play with each other against single players
WEIGHED = [(0.09, False), (0.11, True)]


@pytest.mark.parametrize(("gap_cost", "expected"), WEIGHED)
def test_uneven_ratings_are_weighed_against_unlike_parties(gap_cost, expected):
    """Both pairs in one team: means of 1600 on both sides, at 10 seconds; one in each: 1650 and 1550."""
    tickets = [
        party(1, [50, 50], ratings=[1700.0, 1700.0]),
        party(2, [50, 50], ratings=[1500.0, 1500.0]),
        *(solo(at, 50, rating=1600.0) for at in (3, 4, 5, 6)),
    ]
    teams = divided(tickets, plain_policy(team_size=4, party_wait=10.0), gap_cost)
    assert (teams[1] == teams[2]) == expected


def dealt_start(ratings, teams):
    """Sums of the teams when the strongest that is left goes to the weakest team that has a seat."""
    total, dealt = [0.0] * teams, [0] * teams
    for rating in sorted(ratings, reverse=True):
        to = min((one for one in range(teams) if dealt[one] < len(ratings) // teams), key=lambda one: total[one])
        total[to] += rating
        dealt[to] += 1
    return total


@pytest.mark.parametrize(("teams", "size"), [(3, 1), (3, 2), (3, 5), (4, 3), (5, 2), (2, 9), (2, 12), (8, 8)])
@pytest.mark.parametrize("level", [False, True])
def test_more_or_larger_teams_of_single_players_are_full_and_no_less_even_than_dealt(teams, size, level):
    draw = np.random.default_rng(100 * teams + size)
    policy = plain_policy(team_size=size, teams=teams)
    for _ in range(10):
        tickets = drawn_match(draw, size, teams, solos=True, roles=False, level=level)
        found = divided(tickets, policy)
        sides = [[one for one in tickets if found[one.id] == number] for number in range(teams)]
        assert [len(side) for side in sides] == [size] * teams
        total = [strength(side) for side in sides]
        assert np.var(total) <= np.var(dealt_start([strength([one]) for one in tickets], teams)) * (1 + 1e-9) + 1e-9
        for (one, first), (two, other) in combinations(enumerate(sides), 2):
            if size == 1:
                continue
            gap = abs(total[one] - total[two])
            least = min(
                abs(total[one] - total[two] - 2 * (strength([a]) - strength([b]))) for a in first for b in other
            )
            assert least >= gap - 1e-5  # no two players could change places and make it more even


@pytest.mark.parametrize("need", [{}, {"tank": 1, "healer": 1}])
@pytest.mark.parametrize(("teams", "size"), [(3, 2), (3, 4), (4, 3), (2, 14), (2, 18)])
def test_more_or_larger_teams_of_parties_are_full_and_cover_their_roles(teams, size, need):
    draw = np.random.default_rng(100 * teams + size + len(need))
    policy = plain_policy(team_size=size, teams=teams, roles=need)
    found = 0
    for _ in range(40):
        tickets = drawn_match(draw, size, teams, solos=False, roles=bool(need), level=False)
        if teams == 2 and len(tickets) <= EXACT:
            continue
        given_teams = divided(tickets, policy)
        if given_teams is None:
            continue
        found += 1
        for number in range(teams):
            assert is_team_of_many([one for one in tickets if given_teams[one.id] == number], policy)
    assert found >= 1


def is_team_of_many(tickets, policy):
    """The same as `is_team` for teams that are too large to try everything: by Hall's theorem over sets of roles."""
    if sum(len(ticket.members) for ticket in tickets) != policy.team_size:
        return False
    offers, need = offers_of(tickets, policy), list(policy.roles.values())
    sets = [set(some) for count in range(1, len(need) + 1) for some in combinations(range(len(need)), count)]
    return all(sum(need[role] for role in some) <= sum(bool(offer & some) for offer in offers) for some in sets)


def test_parties_that_fill_three_teams_are_divided_wherever_they_were_chosen():
    """What `choose` takes is found a division, whatever the sizes."""
    draw, checked = np.random.default_rng(11), 0
    for _ in range(400):
        size = int(draw.integers(2, 7))
        counts = drawn_counts(draw, 3, size)
        one = int(draw.choice([at for at, count in enumerate(counts, 1) if count]))
        if not said_to_fill(counts, 3, size, one, True):
            continue
        taken = chosen(counts, 3, size, one, True)
        sizes = [at for at, count in enumerate(taken, 1) for _ in range(count)]
        tickets = [party(number, [50.0] * at) for number, at in enumerate(sizes, 1)]
        policy = plain_policy(team_size=size, teams=3)
        teams = divided(tickets, policy)
        assert teams is not None, sizes
        for number in range(3):
            assert sum(len(ticket.members) for ticket in tickets if teams[ticket.id] == number) == size
        checked += 1
    assert checked > 50
