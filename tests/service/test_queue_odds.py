"""The odds of an offer are those of the ladder's own system, and the queue's cap goes by them."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from evenmatch import online, rules
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_service import QueueService
from evenmatch.systems import names
from far_levels import far_levels
from ledger.sample_matches import team_match
from service.sample_queues import ANYBODY, hold_lease, join_queue, party, select_rows, solos

PLAYERS = [f"p{number}" for number in range(8)]
STAND_IN = {"trophies": 0.08}  # how far the stand-in for odds may miss the most even teams


@pytest.fixture
def queue_service(service):
    return QueueService(service)


def new_ladder(service, queue_service, system, size, **policy):
    """A ladder whose players are at four levels far from each other, the lowest at the floor if there is one."""
    service.create_ladder("own", system, rules(system))
    levels = np.repeat(far_levels(system), 2)
    service.start_ratings("own", dict(zip(PLAYERS, levels.tolist(), strict=True)))
    queue_service.set_queue("own", "ranked", {**ANYBODY, "team_size": size, **policy})


def full_match(number, *teams):
    """A match in which everybody has what some system needs: score, seconds, places."""
    match = team_match(number, *teams, ladder="own")
    made = []
    for index, team in enumerate(match.teams):
        players = [
            replace(player, seconds=700.0, score=12.0 - 5 * index + at) for at, player in enumerate(team.players)
        ]
        made.append(replace(team, score=10.0 - 3 * index, players=tuple(players)))
    return replace(match, teams=tuple(made))


def play(service, first):
    """Matches of two and of four, won by favourites and by others."""
    for number, (winners, losers) in enumerate([("06", "35"), ("72", "14"), ("5", "6"), ("0", "1"), ("13", "27")]):
        sides = [(place, *(PLAYERS[int(player)] for player in side)) for place, side in ((1, winners), (2, losers))]
        service.record(full_match(first + number, *sides))


def make_offers(queue_service, *joins):
    """The numbers of the offers made after these parties joined."""
    join_queue(queue_service, "own", *joins)
    hold_lease(queue_service, "own")
    return Matchmaker(queue_service).step("own").offers


def offer(service, queue_service, *joins):
    """The teams and the odds of the only offer made to these parties."""
    assert len(make_offers(queue_service, *joins)) == 1
    return offered(service)


def offered(service):
    """The teams and the odds of the only open offer."""
    ((text,),) = select_rows(service, "SELECT body FROM offer WHERE state = 'open'")
    body = json.loads(text)
    return [[slot["player"] for slot in team] for team in body["teams"]], body["odds"]


def expected(service, teams):
    return LadderQueries(service).prospects("own", teams).odds.expected


def uneven(*players):
    """Parties of three and single players, so that levels cannot be evened out."""
    return [party(*players[:3]), party(*players[3:])] if len(players) == 6 else solos(*players)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("system", sorted(names()))
def test_an_offer_has_the_odds_of_the_ladders_own_system(service, queue_service, clock, system, size):
    """They equal those of `POST …/odds`: on a new ladder, where one player is not known yet, and after matches."""
    new_ladder(service, queue_service, system, size)
    teams, odds = offer(service, queue_service, *uneven(*["new", "p4", "p6", "p1", "p3", "p5"][: 2 * size]))
    assert odds == pytest.approx(expected(service, teams), abs=1e-9)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("system", sorted(names()))
def test_odds_follow_ordinary_play(service, queue_service, clock, system, size):
    new_ladder(service, queue_service, system, size)
    play(service, 1)
    maker = Matchmaker(queue_service)
    maker.step("own")  # reads the ladder
    play(service, 11)
    clock.move(days=20)
    teams, odds = offer(service, queue_service, *uneven(*["p7", "p0", "p6", "p1", "p3", "p5"][: 2 * size]))
    assert odds == pytest.approx(expected(service, teams), abs=1e-9)
    assert max(odds) > 0.5 or system == "planeswalker"


def test_a_wager_of_four_to_one_is_not_called_even(service, queue_service):
    """16 / 17 by its definition: P = YA² / (YA² + OA²) with 4.00 and 1.00."""
    service.create_ladder("own", "wager", rules("wager"))
    service.start_ratings("own", {"ann": 4.0, "bob": 1.0})
    queue_service.set_queue("own", "ranked", {**ANYBODY, "team_size": 1, "max_odds": 0.94})
    assert make_offers(queue_service, *solos("ann", "bob")) == ()
    queue_service.set_queue("own", "ranked", {**ANYBODY, "team_size": 1, "max_odds": 0.95})
    assert len(make_offers(queue_service)) == 1
    teams, odds = offered(service)
    assert odds[teams.index(["ann"])] == pytest.approx(16 / 17, abs=1e-12)


def test_each_of_three_teams_has_odds(service, queue_service):
    new_ladder(service, queue_service, "glicko2", 1, teams=3)
    teams, odds = offer(service, queue_service, *solos("p0", "p3", "p7"))
    assert odds == pytest.approx(expected(service, teams), abs=1e-9)
    assert sum(odds) == pytest.approx(1.5)


def test_where_a_system_cannot_predict_the_offer_says_so(service, queue_service):
    """`trophies` rates an attacker against a defender; it has no words for three teams."""
    new_ladder(service, queue_service, "trophies", 1, teams=3, max_odds=0.5)
    teams, odds = offer(service, queue_service, *solos("p0", "p3", "p7"))
    assert len(teams) == 3
    assert odds is None


def test_a_change_of_system_changes_the_odds_and_keeps_everybodys_place(service, queue_service, clock):
    new_ladder(service, queue_service, "elo", 1, max_odds=0.55)
    play(service, 1)
    tickets = join_queue(queue_service, "own", *solos("p0", "p2", "p7"))
    assert make_offers(queue_service) == ()
    clock.move(seconds=30)
    service.change_rules("own", "trueskill", rules("trueskill", beta=400.0))
    clock.move(seconds=30)
    service.view("own")
    assert len(make_offers(queue_service)) == 1
    teams, odds = offered(service)
    assert odds == pytest.approx(expected(service, teams), abs=1e-9)
    assert max(odds) < 0.55
    statuses = queue_service.statuses("own", tickets)
    assert [statuses[ticket].waited for ticket in tickets] == [60.0] * 3


@pytest.mark.parametrize("system", sorted(names()))
def test_teams_that_are_even_by_strength_are_even_by_odds(system):
    """The stand-in by which teams are divided, against the best of all 35 divisions of 4v4 by the system's own odds.

    Levels are those of a ladder's middle: within a tenth of the distance between its levels.
    """
    by, luck = rules(system), np.random.default_rng(5)
    lowest, _, middle, _ = far_levels(system)
    worst = 0.0
    for _ in range(40):
        ratings = middle + (middle - lowest) * luck.uniform(-0.1, 0.1, 8)
        state = by.starting(ratings)
        strength = by.system.strength(state, by.parameters)
        sides = [(0, *others) for others in combinations(range(1, 8), 3)]
        gaps = [abs(2 * strength[list(side)].sum() - strength.sum()) for side in sides]
        own = [abs(side_odds(by, state, side) - 0.5) for side in sides]
        worst = max(worst, own[int(np.argmin(gaps))] - min(own))
    assert worst <= STAND_IN.get(system, 0.001)


def side_odds(by, state, side):
    order = [*side, *(player for player in range(8) if player not in side)]
    return online.odds(by, state[order], [4, 4], 0).expected[0]
