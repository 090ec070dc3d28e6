"""The odds of an offer are those of the ladder's own system, and the queue's cap goes by them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evenmatch import rules
from evenmatch.service.queries.ladder_queries import LadderQueries
from evenmatch.service.queues.matchmaker import Matchmaker
from evenmatch.service.queues.queue_service import QueueService
from evenmatch.systems import names
from ledger.sample_matches import team_match
from service.sample_queues import ANYBODY, hold_lease, join_queue, party, select_rows, solos

PLAYERS = [f"p{number}" for number in range(8)]
LEVELS = {"wager": (1.0, 1.5, 4.0, 9.0), "scorefactor": (100, 160, 300, 700), "trueskill": (0, 8, 15, 30)}
LEVELS |= {"wenglin": (0, 8, 15, 30), "trophies": (0, 100, 400, 900), "planeswalker": (0, 10, 40, 200)}
LEVELS |= {"battlepoints": (700, 900, 1300, 2100)}


@pytest.fixture
def queue_service(service):
    return QueueService(service)


def new_ladder(service, queue_service, system, size, **policy):
    """A ladder whose players are at four levels far from each other, the lowest at the floor if there is one."""
    service.create_ladder("own", system, rules(system))
    levels = np.repeat(LEVELS.get(system, (900, 1300, 1600, 2400)), 2).astype(float)
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


def offer(service, queue_service, *joins):
    """The teams and the odds of the only offer made to these parties."""
    join_queue(queue_service, "own", *joins)
    hold_lease(queue_service, "own")
    Matchmaker(queue_service).step("own")
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
